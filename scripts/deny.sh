#!/bin/sh
# Checks the dependencies by cargo-deny, as deny.toml says.
#
#   scripts/deny.sh [CHECK...]     bans, licenses, sources, advisories; by default all of them
#   scripts/deny.sh --installed    only says whether it can
#
# Without a database of advisories, which is at github.com, these are skipped with a message: it cannot be had everywhere.
set -eu
cd "$(dirname "$0")/.."

PATH=$PATH:${TOOLS:-$HOME/.cache/cipherbench-tools}/bin
export PATH
deny() { cargo deny --locked "$@"; }
if [ "${1:-}" = --installed ]; then
    deny --version >/dev/null 2>&1
    exit
fi

[ $# -gt 0 ] || set -- bans licenses sources advisories
case " $* " in
*" advisories "*)
    if ! reason=$(deny fetch db 2>&1); then
        echo "$reason" >&2
        echo "SKIPPED: no database of advisories could be fetched, so the dependencies were NOT checked against it" >&2
        set -- bans licenses sources
    fi
    ;;
esac
deny check --hide-inclusion-graph "$@"
