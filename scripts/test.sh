#!/bin/sh
# Checks everything that CI checks; its last lines are cargo's own test results.
#
#   scripts/test.sh          format, lints, documentation, tests
#   scripts/test.sh lint     format and lints only
#
# Everything uses one profile, so that C code is compiled once.
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
clippy=$(command -v clippy-driver || true)
[ -n "$clippy" ] || skip clippy "the code for lints"
if [ "${1:-}" = lint ]; then
    [ -z "$clippy" ] || cargo clippy --workspace --all-targets --locked -- --deny warnings
    exit 0
fi

# The fuzz targets' programs are a workspace of their own: its lock file must fit its manifest. (That each program does
# nothing but call its body, which is compiled below, is a test of crates/fuzz; to build them takes two minutes.)
cargo metadata --manifest-path fuzz/Cargo.toml --locked --format-version 1 >/dev/null
# Advisories change without the code: they are for `make deny`, not for this.
if cargo deny --version >/dev/null 2>&1; then
    cargo deny --locked check --hide-inclusion-graph bans licenses sources
fi

# Nothing is compiled twice here, and nobody sits at a debugger: what is kept for either is only time lost.
[ "${CI:-}" != true ] || export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0

# Tests compiled by the compiler that `cargo clippy` runs, in the way in which it does that, and documentation checked beside: lints,
# programs and documentation come of one compilation, where each apart would take seven minutes more.
tests() {
    if [ -n "$clippy" ]; then
        RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/compiler.sh CLIPPY_ARGS=--deny__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__ \
            cargo test --workspace --locked "$@"
    else
        cargo test --workspace --locked "$@"
    fi
}
tests --all-targets --no-run
[ -n "$clippy" ] || RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps --locked
tests --no-fail-fast
