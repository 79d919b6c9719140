#!/bin/sh
# Measures two builds of an encryptor by one campaign, and gates the second by the first: the steps of action.yml,
# which can be run anywhere. Settings are variables of the environment, named like the inputs of the action:
#
#   BASE_PROGRAM=old/cipherbench HEAD_PROGRAM=new/cipherbench GATES='mrr throughput drops > 10 %' scripts/action.sh
#
#   CAMPAIGN        campaign file, or the name of a built-in one (gate)
#   LAB             lab file or built-in lab, instead of the campaign's
#   PROGRAM         the program that measures and compares (cipherbench)
#   BASE_PROGRAM    the program of the first run, if our encryptor is the device (PROGRAM)
#   HEAD_PROGRAM    the program of the second run (PROGRAM)
#   BASE_SETUP      shell command before the first run, which puts the base's build in place
#   HEAD_SETUP      the same before the second run
#   GATES           one gate per line, as of `cipherbench compare --gate`; without any, changes are only reported
#   REPEATS         repeats of each cell, instead of the campaign's number
#   QUICK           `true` measures the campaign's short form
#   RETRIES         how often invalid trials of a run are repeated (1)
#   CONTROL         `true` measures the base once more after the head: if the gates do not pass between the two runs of
#                   one build, the machine changed, and the result is undecided
#   UNDECIDED       `fail` or `pass`: whether undecided gates fail (fail)
#   RUNS            folder for the runs and results; must be new (cipherbench-runs)
#
# Exit codes are those of `cipherbench compare`: 0 passed, 1 violated, 5 undecided; 2 and 3 if a run was not possible.
set -eu

campaign=${CAMPAIGN:-gate}
program=${PROGRAM:-cipherbench}
runs=${RUNS:-cipherbench-runs}
undecided=${UNDECIDED:-fail}
retries=${RETRIES:-1}

say() { echo "action: $*" >&2; }
usage() {
    say "$*"
    exit 2
}
# For GitHub: an annotation of the job, and an output of the step.
annotate() { [ "${GITHUB_ACTIONS:-}" != true ] || echo "::$1 title=cipherbench::$2"; }
output() { [ -z "${GITHUB_OUTPUT:-}" ] || echo "$1=$2" >>"$GITHUB_OUTPUT"; }

case $undecided in
fail | pass) ;;
*) usage "UNDECIDED is \`$undecided\`, and can be \`fail\` or \`pass\`" ;;
esac
case $retries in
'' | *[!0-9]*) usage "RETRIES is \`$retries\`, and must be a number" ;;
esac
# The runs of another comparison must not be taken for those of this one.
[ ! -e "$runs" ] || usage "\`$runs\` exists: remove it, or name another folder in RUNS"
mkdir -p "$runs"

# Prints the only run below a folder.
run_in() {
    for run in "$1"/*/; do
        [ -e "${run}journal.jsonl" ] && echo "${run%/}" && return
    done
    return 1
}

# Measures one side, `base`, `head` or `control`, by a program, after a command.
measure() {
    side=$1 with=$2 setup=$3
    if [ -n "$setup" ]; then
        say "$side: $setup"
        CIPHERBENCH_SIDE=$side sh -c "$setup" || {
            say "the command before the run of $side failed"
            exit 2
        }
    fi
    say "$side: $("$with" --version | head -n 1)"
    set -- run "$campaign" --out "$runs/$side" --quiet
    [ -z "${LAB:-}" ] || set -- "$@" --lab "$LAB"
    [ -z "${REPEATS:-}" ] || set -- "$@" --repeats "$REPEATS"
    [ "${QUICK:-}" != true ] || set -- "$@" --quick
    code=0
    "$with" "$@" || code=$?
    # Only cells without a valid figure are repeated. 1 and 5 leave a run that can be compared, if only partly.
    left=$retries
    while [ "$code" = 1 ] && [ "$left" -gt 0 ]; do
        left=$((left - 1))
        say "$side: repeating the invalid trials"
        code=0
        "$with" resume "$(run_in "$runs/$side")" --invalid --quiet || code=$?
    done
    case $code in
    0) ;;
    1 | 5) say "$side: some trials have no valid figure" ;;
    *)
        say "$side: the run ended with $code"
        annotate error "The run of the $side ended with $code"
        output outcome failed
        exit "$code"
        ;;
    esac
}

# Compares two runs by the gates; the result is in `code`.
compare() {
    first=$1 second=$2
    shift 2
    while read -r gate; do
        case $gate in
        *[![:space:]]*) set -- "$@" --gate "$gate" ;;
        esac
    done <<END
${GATES:-}
END
    code=0
    "$program" compare "$first" "$second" "$@" || code=$?
}

measure base "${BASE_PROGRAM:-$program}" "${BASE_SETUP:-}"
measure head "${HEAD_PROGRAM:-$program}" "${HEAD_SETUP:-}"
base=$(run_in "$runs/base")
head=$(run_in "$runs/head")
output base-run "$base"
output head-run "$head"

controlled=0
if [ "${CONTROL:-}" = true ]; then
    measure control "${BASE_PROGRAM:-$program}" "${BASE_SETUP:-}"
    compare "$base" "$(run_in "$runs/control")" --markdown "$runs/control.md"
    controlled=$code
    case $controlled in
    0 | 1 | 5) ;;
    *) exit "$controlled" ;;
    esac
fi

compare "$base" "$head" --markdown "$runs/comparison.md" --junit "$runs/gates.xml"
case $code in
0 | 1 | 5) ;;
*) exit "$code" ;;
esac
note=
if [ "$controlled" != 0 ]; then
    code=5
    note="The gates do not pass between two runs of the base, before the head and after it: the machine changed
meanwhile, so that the comparison below shows nothing. Both runs of the base are compared in \`$runs/control.md\`."
    say "$note"
fi

if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
    {
        [ -z "$note" ] || printf '> %s\n\n' "$(echo "$note" | tr '\n' ' ')"
        # GitHub accepts 1 MiB for a step.
        head -c 1000000 "$runs/comparison.md"
        echo
    } >>"$GITHUB_STEP_SUMMARY"
fi
output markdown "$runs/comparison.md"
output junit "$runs/gates.xml"

case $code in
0)
    output outcome passed
    ;;
1)
    output outcome violated
    annotate error "A gate is violated: see the summary"
    ;;
5)
    output outcome undecided
    if [ "$undecided" = pass ]; then
        annotate warning "The gates are undecided: see the summary"
        code=0
    else
        annotate error "The gates are undecided: see the summary"
    fi
    ;;
esac
exit "$code"
