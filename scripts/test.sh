#!/bin/sh
# Checks everything that CI checks; its last lines name each test that failed.
#
#   scripts/test.sh          format, lints, documentation, tests
#   scripts/test.sh lint     format and lints only
#
# Everything uses one profile, so that C code is compiled once.
set -eu
cd "$(dirname "$0")/.."

# A distribution's Rust may come without its linters, or a library's package may be missing. Developers get a note; CI must not pass without them.
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

# Without it the tests of an engine would pass because there are none.
if [ "$(uname -m)" = x86_64 ] && [ ! -e /usr/include/intel-ipsec-mb.h ]; then
    skip libipsec-mb-dev "the engine ipsec-mb"
fi
openssl engine -t gost 2>/dev/null | grep -q 'available ]' ||
    skip libengine-gost-openssl "the GOST ciphers against OpenSSL's"

# The fuzz targets' programs are a separate workspace, whose lock file must match its manifest. (They are not built
# here, which would take a quarter of an hour of one core: a test of crates/fuzz checks that each only calls its body,
# which is compiled below, and runs the minimised corpora.)
cargo metadata --manifest-path fuzz/Cargo.toml --locked --format-version 1 >/dev/null
# Each page is in the table of contents, and each link leads to a page, a file or a heading.
scripts/site.py
if scripts/deny.sh --installed; then
    # Advisories change independently of the code: a developer checks them by `make deny`.
    if [ "${CI:-}" = true ]; then scripts/deny.sh; else scripts/deny.sh bans licenses sources; fi
else
    skip cargo-deny "the licences and sources of dependencies"
fi

scripts/python.sh --installed ||
    skip "what python/requirements.txt lists (scripts/python.sh --setup)" "the Python package of results"

# CI neither compiles incrementally nor debugs, so it needs no data for that.
[ "${CI:-}" != true ] || export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0

# Compiles the tests with the compiler of `cargo clippy`, and checks documentation too: lints, programs and documentation share one
# compilation. Separate ones would take seven minutes more.
tests() {
    if [ -n "$clippy" ]; then
        RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/compiler.sh CLIPPY_ARGS=--deny__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__ \
            cargo test --workspace --locked "$@"
    else
        cargo test --workspace --locked "$@"
    fi
}
# Examples as programs, as the tests below have them: as tests of their own they would be compiled twice.
tests --no-run
[ -n "$clippy" ] || RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps --locked
# A developer checks the manifests by `make kubernetes`: the schemas are a download of 23 MB.
[ "${CI:-}" != true ] || scripts/kubernetes.sh target/debug/cipherbench
# A failure among three thousand tests is far from the end of what they print, so the end names it again.
log=$(mktemp) failed=$(mktemp)
trap 'rm -f "$log" "$failed"' EXIT
logged() {
    { "$@" 2>&1 || echo "$*" >>"$failed"; } | tee -a "$log"
}
again() {
    tests --no-run --message-format json 2>/dev/null | scripts/executables.py "$@"
}
logged tests --no-fail-fast
# The tutorial that measures nothing; the others take minutes of an idle machine (`make tutorials`).
[ "$(id -u)" != 0 ] || logged scripts/tutorials.py --program target/debug/cipherbench docs/start/gateway-pair.md
# The Python package reads what the program of the tests writes.
! scripts/python.sh --installed || logged scripts/python.sh
# Programs that create files for others to read, or for nobody else, again under the umask of distributions that let the
# user's group write, and under the closed one: what trusts a file or folder sets its mode. (Tests that only compute are left out.)
for mask in 002 077; do
    umask "$mask"
    logged again guard/lib "keying/lib=--skip rollover::" "keying/keying=static_keys:: ppk:: attack::" control/lib qkd/lib qkd/qkd=client:: \
        journal/lib journal/journal encryptor/encryptor=config report/report=disk "device/lib=--skip speed:: --skip fatigue:: --skip kat::" \
        memory-lab/lib=gateways
done
if [ -s "$failed" ]; then
    echo "FAILED:"
    grep -E "^test .* FAILED|^FAILED |panicked at|^error: .*(failed|doc|test)|^    .-p .*" "$log" | sort -u | cut -c1-200
    exit 1
fi
