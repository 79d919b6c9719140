#!/bin/sh
# Checks everything that CI checks; its last lines are cargo's own test results.
#
#   scripts/test.sh          format, lints, documentation, tests
#   scripts/test.sh lint     format and lints only
#
# Everything uses one profile, so that C code is compiled once.
set -eu
cd "$(dirname "$0")/.."

# Programs that scripts/peers.sh installs outside of the search path; variables that are set keep their value.
peers=${PEERS:-$HOME/.cache/cipherbench-peers}/bin
named() {
    [ ! -x "$peers/$2" ] || eval "export $1=\${$1:-$peers/$2}"
}
named WIREGUARD_GO wireguard
named BORINGTUN boringtun-cli
named GOTATUN gotatun

# A distribution's Rust may come without its linters. A developer gets a warning; CI must not pass without them.
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

# The fuzz targets' programs are a separate workspace: its lock file must match its manifest. (A test of crates/fuzz checks
# that each program only calls its body, which is compiled below; building them takes two minutes.)
cargo metadata --manifest-path fuzz/Cargo.toml --locked --format-version 1 >/dev/null
# Advisories change without the code: they are for `make deny`, not for this.
if cargo deny --version >/dev/null 2>&1; then
    cargo deny --locked check --hide-inclusion-graph bans licenses sources
fi

# Nothing is compiled twice here, and no debugger runs: incremental and debug data would only take time.
[ "${CI:-}" != true ] || export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0

# Compiles tests with the compiler that `cargo clippy` runs, with the same flags, and checks documentation in the same step: lints,
# programs and documentation come from one compilation; separate ones would take seven minutes more.
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
