#!/bin/sh
# Checks everything that CI checks; its last lines are cargo's own test results.
#
#   scripts/test.sh          format, lints, documentation, tests
#   scripts/test.sh lint     format and lints only
#
# Clippy and rustdoc share one set of checked dependencies; tests use the same profile, so that C code is
# compiled once.
set -eu
cd "$(dirname "$0")/.."

# Where scripts/peers.sh puts what is not in the search path; a variable that is set stays.
peers=${PEERS:-$HOME/.cache/cipherbench-peers}/bin
named() {
    [ ! -x "$peers/$2" ] || eval "export $1=\${$1:-$peers/$2}"
}
named WIREGUARD_GO wireguard
named BORINGTUN boringtun-cli
named GOTATUN gotatun

# A distribution's Rust may come without its linters. A developer is told; CI must not pass without them.
skip() {
    echo "SKIPPED: $1 is not installed, so $2 was not checked" >&2
    [ "${CI:-}" != true ] || exit 1
}

if cargo fmt --version >/dev/null 2>&1; then
    cargo fmt --all --check
else
    skip rustfmt "the format of the code"
fi
if cargo clippy --version >/dev/null 2>&1; then
    cargo clippy --workspace --all-targets --locked -- --deny warnings
else
    skip clippy "the code for lints"
fi
[ "${1:-}" != lint ] || exit 0

# The programs of the fuzz targets, a workspace of their own. Nothing is linked, so libFuzzer, which is C++, need
# not be built, and all else is built already.
CUSTOM_LIBFUZZER_PATH=/nonexistent/libfuzzer.a \
    cargo check --manifest-path fuzz/Cargo.toml --target-dir target --locked

RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps --locked
# Advisories change without the code: they are for `make deny`, not for this.
if cargo deny --version >/dev/null 2>&1; then
    cargo deny --locked check --hide-inclusion-graph bans licenses sources
fi
exec cargo test --workspace --locked --no-fail-fast
