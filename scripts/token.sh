#!/bin/sh
# Tests our PKCS#11 devices on a token that has what SoftHSM2 lacks: version 3.2, ML-DSA and ML-KEM. It is Kryoptic, from crates.io,
# with its own OpenSSL.
#
#   scripts/token.sh [NAME...]     algorithms or classes; by default ML-DSA, ML-KEM and RSA signatures
#
# Runs the functional trial, then ten seconds of fatigue with eight threads. Needs libclang and pkcs11-tool; the token takes ten
# minutes to build the first time.
set -eu
cd "$(dirname "$0")/.."

fail() { echo "token: $*" >&2; exit 1; }
command -v pkcs11-tool >/dev/null 2>&1 || fail "pkcs11-tool is missing; run: sudo apt-get install opensc"
# Not libclang-cpp, the library for C++, which more machines have. LIBCLANG_PATH selects another folder.
ls "${LIBCLANG_PATH:-/nowhere}"/libclang*.so* >/dev/null 2>&1 || ls /usr/lib/llvm-*/lib/libclang-[0-9]*.so* >/dev/null 2>&1 ||
    fail "libclang is missing; run: sudo apt-get install libclang-dev"

CARGO_TARGET_DIR=target/token cargo build --release --locked --manifest-path scripts/token/Cargo.toml
cargo build --release --locked --package cipherbench

work=$(mktemp -d "${TMPDIR:-/tmp}/cipherbench-token.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
export KRYOPTIC_CONF="$work/conf"
printf '[[slots]]\nslot = 0\ndbtype = "sqlite"\ndbargs = "%s/token.sql"\n' "$work" >"$KRYOPTIC_CONF"
(umask 077 && printf 123456 >"$work/pin")
module=$PWD/target/token/release/libtoken.so
tool() { pkcs11-tool --module "$module" "$@" >/dev/null 2>&1 || fail "pkcs11-tool $* failed"; }
tool --init-token --label trial --so-pin 12345678
tool --login --login-type so --so-pin 12345678 --init-pin --pin 123456

[ $# -gt 0 ] || set -- ml-dsa ml-kem rsa-2048-pss
device="pkcs11: { module: $module, token: trial, pin_file: $work/pin }"
target/release/cipherbench kat --device "$device" "$@"
target/release/cipherbench fatigue --device "$device" --threads 8 --duration '10 s' "$@"
