#!/bin/sh
# Checks the dependencies by cargo-deny, as deny.toml says.
#
#   scripts/deny.sh [CHECK...]     bans, licenses, sources, advisories; by default all of them
#   scripts/deny.sh --installed    only says whether it can
#   scripts/deny.sh --record       checks the advisories, and records date and crates in scripts/advisories.txt
#
# The database of advisories is at github.com. ADVISORY_DB names a clone of it for machines that cannot reach that.
# Without either the check fails in CI, unless CIPHERBENCH_OFFLINE_ADVISORIES names the date of the database that the
# recorded check used: then that record is shown, with its age and the crates that are newer, and nothing is checked.
set -eu
cd "$(dirname "$0")/.."

PATH=$PATH:${TOOLS:-$HOME/.cache/cipherbench-tools}/bin
export PATH
record=scripts/advisories.txt
deny() { cargo deny --locked "$@"; }
if [ "${1:-}" = --installed ]; then
    deny --version >/dev/null 2>&1
    exit
fi

# The crates from registries, with their versions.
crates() { awk -F '"' '/^name/ { name = $2 } /^version/ { version = $2 } /^source/ { print name, version }' Cargo.lock | sort; }
day() { date --utc --date "$1" +%s; }

# Checks by a clone of the database; the name of its folder is cargo-deny's for the default address.
by_clone() {
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    ln -s "$(cd "$1" && pwd)" "$work/advisory-db-3157b0e258782691"
    sed "s|^\[advisories\]|&\\ndb-path = \"$work\"|" deny.toml > "$work/deny.toml"
    deny --offline --config "$work/deny.toml" check --hide-inclusion-graph advisories
}

# Shows what was checked last, and what was not.
by_record() {
    date=$(awk '$1 == "database" { print $2 }' "$record")
    checked=$(awk '$1 == "checked" { print $2 }' "$record")
    age=$((($(date +%s) - $(day "$date")) / 86400))
    newer=$(mktemp)
    awk '$1 == "crate" { print $2, $3 }' "$record" | sort > "$newer.old"
    crates | comm -23 - "$newer.old" > "$newer"
    cat >&2 <<END
NOT CHECKED TODAY: the database of advisories could not be fetched.
Last check: on $checked, against the database of $date, which is $age days old now: no advisory for $(wc -l < "$newer.old") crates.
Newer crates, checked against none: $(if [ -s "$newer" ]; then paste -sd , "$newer" | sed 's/,/, /g'; else echo none; fi)
END
    rm -f "$newer" "$newer.old"
    if [ "${CI:-}" = true ] && [ "${CIPHERBENCH_OFFLINE_ADVISORIES:-}" != "$date" ]; then
        cat >&2 <<END
error: CI needs the database of advisories
help: let it reach github.com, name a clone in ADVISORY_DB, or accept that last check by CIPHERBENCH_OFFLINE_ADVISORIES=$date
END
        return 1
    fi
}

advisories() {
    if [ -n "${ADVISORY_DB:-}" ]; then
        by_clone "$ADVISORY_DB"
    elif reason=$(deny fetch db 2>&1); then
        deny check --hide-inclusion-graph advisories
    else
        echo "$reason" >&2
        by_record
    fi
}

if [ "${1:-}" = --record ]; then
    [ -n "${ADVISORY_DB:-}" ] || { echo "usage: ADVISORY_DB=CLONE scripts/deny.sh --record" >&2; exit 2; }
    by_clone "$ADVISORY_DB"
    {
        echo "# The last check of Cargo.lock against the database of advisories: \`scripts/deny.sh --record\` writes this file."
        echo "checked $(date --utc +%F)"
        git -C "$ADVISORY_DB" log -1 --date=format:%Y-%m-%d --format='database %cd %H'
        crates | sed 's/^/crate /'
    } > "$record"
    exit
fi

[ $# -gt 0 ] || set -- bans licenses sources advisories
others=
for check; do
    if [ "$check" != advisories ]; then others="$others $check"; fi
done
# shellcheck disable=SC2086 # a list of words
[ -z "$others" ] || deny check --hide-inclusion-graph $others
case " $* " in
*" advisories "*) advisories ;;
esac
