#!/bin/sh
# Runs one fuzz target under libFuzzer, on the pinned stable toolchain; fuzz/README.md has the rest.
#
#   scripts/fuzz.sh TARGET [SECONDS] [libFuzzer's own options]
#   scripts/fuzz.sh TARGET FILE      runs it on one input
#   scripts/fuzz.sh TARGET merge FOLDER  writes the fewest inputs of seeds and corpus with the same coverage to the folder
#   scripts/fuzz.sh build            builds all of them
#   scripts/fuzz.sh list
#   scripts/fuzz.sh lock             copies the versions of Cargo.lock to fuzz/Cargo.lock
set -eu
cd "$(dirname "$0")/.."

target=${1:-list}
seconds=${2:-60}
[ $# -lt 2 ] || shift
[ $# -lt 1 ] || shift
if [ "$target" = list ]; then
    ls fuzz/fuzz_targets | sed 's/\.rs$//'
    exit 0
fi
if [ "$target" = lock ]; then
    cp Cargo.lock fuzz/Cargo.lock
    # Removes the packages that the targets do not need, and adds libFuzzer.
    exec cargo metadata --manifest-path fuzz/Cargo.toml --format-version 1 >/dev/null
fi
if [ "$target" != build ] && [ ! -f "fuzz/fuzz_targets/$target.rs" ]; then
    echo "error: there is no fuzz target '$target'" >&2
    echo "help: the targets are: $(ls fuzz/fuzz_targets | sed 's/\.rs$//' | tr '\n' ' ')" >&2
    exit 2
fi

# The compiler flags of cargo-fuzz without sanitizers, which need a nightly compiler: libFuzzer needs the
# covered edges and the compared values.
coverage='-Cpasses=sancov-module
    -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares'
host=$(rustc -vV | sed -n 's/^host: //p')

# With a named target, build scripts and procedural macros are not instrumented.
build() {
    RUSTFLAGS="--cfg fuzzing $coverage" cargo build --locked --manifest-path fuzz/Cargo.toml \
        --target-dir target/fuzz --target "$host" --release "$@"
}
if [ "$target" = build ]; then
    build --bins
    exit
fi
# fuzz/all.py has built it.
[ -n "${FUZZ_BUILT:-}" ] || build --bin "$target"

program="target/fuzz/$host/release/$target"
# Milliseconds are usual; by default libFuzzer waits for 20 minutes before it calls that a failure.
set -- -timeout=20 "$@"
[ ! -f "$seconds" ] || exec "$program" -timeout=20 "$seconds"
mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target"
# Interesting inputs are written to the first folder; the others are only read.
seeds="fuzz/seeds/$target"
[ -d "$seeds" ] || seeds=
[ "$seconds" != merge ] || exec "$program" -merge=1 -max_len=4096 "$@" "fuzz/corpus/$target" $seeds
exec "$program" "fuzz/corpus/$target" $seeds \
    -artifact_prefix="fuzz/artifacts/$target/" -max_total_time="$seconds" \
    -max_len=4096 -len_control=10 "$@"
