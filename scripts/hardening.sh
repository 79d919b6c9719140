#!/bin/sh
# Looks for leaks of secrets through time, and for wrong accesses to memory.
#
#   scripts/hardening.sh timing       cycles of two classes of input (dudect), of the release build
#   scripts/hardening.sh secrets      the same code under valgrind's memcheck, with secrets marked (ctgrind)
#   scripts/hardening.sh sanitizers   the shims in C with AddressSanitizer and UndefinedBehaviorSanitizer: vectors and fuzz seeds
#   scripts/hardening.sh [all]        all of them; what cannot run here is SKIPPED
#
# Each part has a control that it must find. docs/security.md says what this shows, and what not.
set -eu
cd "$(dirname "$0")/.."

say() { echo "hardening: $*" >&2; }
fail() { say "$*"; exit 1; }
# CI must not pass without a part.
skip() {
    echo "SKIPPED: $*" >&2
    [ "${CI:-}" != true ] || exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

work=$(mktemp -d "${TMPDIR:-/tmp}/cipherbench-hardening.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

build_constant_time() {
    [ "$(uname -m)" = x86_64 ] || fail "the test reads counters of x86-64"
    cargo build --release --locked --package cipherbench-engine --example constant_time
}
constant_time=target/release/examples/constant_time

timing() {
    build_constant_time
    say "timing"
    $constant_time timing
}

secrets() {
    have valgrind || { skip "valgrind is not installed (sudo apt-get install valgrind): no secret was followed"; return; }
    build_constant_time
    say "secrets"
    # Its processor has no AVX-512, so that engines and kernels choose instructions that it knows.
    valgrind --quiet --error-limit=no --log-file="$work/memcheck" $constant_time secrets || {
        result=$?
        grep -v '^==[0-9]*== *$' "$work/memcheck" | head -n 60 >&2
        fail "see above for the places (exit code $result)"
    }
}

sanitizers() {
    asan=$(cc -print-file-name=libasan.so)
    if [ ! -e "$asan" ] || [ ! -e /usr/include/intel-ipsec-mb.h ]; then
        skip "the shims were not sanitized: libasan or libipsec-mb-dev is not installed"
        return
    fi
    say "sanitizers"
    # The control: reads one byte too far, by the flags of crates/crypto/engine/build.rs.
    printf '#include <stdlib.h>\nint main(int n, char **a) { (void)a; char *p = malloc(8); return p[7 + n]; }\n' > "$work/control.c"
    cc -fsanitize=address,undefined -fno-sanitize-recover=all "$work/control.c" -o "$work/control"
    ! LD_PRELOAD=$asan "$work/control" 2>"$work/control.log" || fail "AddressSanitizer did not find the control"
    grep -q heap-buffer-overflow "$work/control.log" || fail "AddressSanitizer did not find the control"
    host=$(rustc -vV | sed -n 's/^host: //p')
    variable=CARGO_TARGET_$(echo "$host" | tr a-z- A-Z_)_RUNNER
    # Leaks: test harnesses and lazily created engines keep memory until the end.
    env CIPHERBENCH_SANITIZE=1 "$variable=env LD_PRELOAD=$asan ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1" \
        cargo test --locked --target-dir "${HARDENING_TARGET:-target/hardening}" \
        --package cipherbench-engine --package cipherbench-fuzz
}

case ${1:-all} in
timing | secrets | sanitizers) "$1" ;;
all)
    timing
    secrets
    sanitizers
    ;;
*)
    sed -n 's/^#   //p' "$0" >&2
    exit 2
    ;;
esac
