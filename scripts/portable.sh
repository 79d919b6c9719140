#!/bin/sh
# Builds the program of a release, which runs on every Linux with glibc 2.31 or newer, and checks that: target/portable.
#
#   scripts/portable.sh [cargo's arguments]     by default: --release --package cipherbench
set -eu
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- --release --package cipherbench
. scripts/glibc.sh
cargo build --locked --target "$triple" "$@"
# In the place of a build without `--target`, where the packagers look.
for program in "$CARGO_TARGET_DIR/$triple"/*/cipherbench; do
    [ -x "$program" ] || continue
    scripts/needs.py --glibc "$glibc" "$program"
    folder=$CARGO_TARGET_DIR/$(basename "$(dirname "$program")")
    mkdir -p "$folder"
    cp "$program" "$folder/cipherbench.new"
    mv "$folder/cipherbench.new" "$folder/cipherbench"
done
