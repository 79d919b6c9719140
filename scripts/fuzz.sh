#!/bin/sh
# Runs one fuzz target under libFuzzer, on the pinned stable toolchain; fuzz/README.md has the rest.
#
#   scripts/fuzz.sh TARGET [SECONDS] [libFuzzer's own options]
#   scripts/fuzz.sh TARGET FILE      runs it on one input
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
    # Removes packages that the targets do not need, and adds libFuzzer.
    exec cargo metadata --manifest-path fuzz/Cargo.toml --format-version 1 >/dev/null
fi
if [ ! -f "fuzz/fuzz_targets/$target.rs" ]; then
    echo "error: there is no fuzz target '$target'" >&2
    echo "help: the targets are: $(ls fuzz/fuzz_targets | sed 's/\.rs$//' | tr '\n' ' ')" >&2
    exit 2
fi

# The compiler flags of cargo-fuzz, without the sanitizers, which need a nightly compiler. libFuzzer needs coverage
# of edges and traces of comparisons.
coverage='-Cpasses=sancov-module
    -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares'
host=$(rustc -vV | sed -n 's/^host: //p')

# With an explicit target, build scripts and procedural macros are not instrumented.
RUSTFLAGS="--cfg fuzzing $coverage" cargo build --locked --manifest-path fuzz/Cargo.toml \
    --target-dir target/fuzz --target "$host" --release --bin "$target"

program="target/fuzz/$host/release/$target"
[ ! -f "$seconds" ] || exec "$program" "$seconds"
mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target"
# New inputs go to the first folder; the others are only read.
seeds="fuzz/seeds/$target"
[ -d "$seeds" ] || seeds=
exec "$program" "fuzz/corpus/$target" $seeds \
    -artifact_prefix="fuzz/artifacts/$target/" -max_total_time="$seconds" \
    -max_len=4096 -len_control=10 "$@"
