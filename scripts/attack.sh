#!/bin/sh
# Attacks everything that docs/security.md promises to withstand, and compares the results with the bounds stated there.
#
#   scripts/attack.sh [FILTER]    only attacks whose names contain FILTER
#
# Runs the tests in modules named `attack`; a crate without any runs none. Each attack reports a line
# `attack: …` (`testing::attack`), of which a table is printed at the end. Those that need a lab run as root or where
# the kernel lets users create namespaces, and all traffic stays in namespaces and on the loopback interface.
set -eu
cd "$(dirname "$0")/.."

set -- "${1:-attack}"
# As scripts/test.sh compiles, packages included, so that both share the result.
if command -v clippy-driver >/dev/null; then
    RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/compiler.sh
    CLIPPY_ARGS=--deny__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
    export RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# The exit code of a pipe is that of `tee`.
code=0
{ cargo test --workspace --locked --no-fail-fast --tests -- "$1" 2>&1 || echo "attack failed: exit code $?"; } | tee "$log"
if grep -q '^attack failed: ' "$log"; then code=1; fi

# attack: WHAT: ACHIEVED (at most BOUND)
table=$(sed -n 's/^.*attack: \(.*\): \([^:]*\) (at most \(.*\))$/\2|\3|\1/p' "$log" | sort -t '|' -k 3)
if [ -z "$table" ]; then
    echo "error: no attack reported a result" >&2
    exit 1
fi
echo
printf 'Achieved|At most|Attack\n%s\n' "$table" | column -t -s '|'
echo
if [ "$code" = 0 ]; then
    echo "$(echo "$table" | wc -l) attacks stayed within their bounds"
else
    echo "error: a bound was exceeded, or a test failed: see above" >&2
fi
exit "$code"
