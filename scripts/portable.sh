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
    # Loaded where its library is installed; a program without it is slower on every machine that has the library.
    if [ -e /usr/include/intel-ipsec-mb.h ] && "$program" --version | grep 'engine ipsec-mb: not built in' >&2; then
        echo "portable: the program lacks the engine ipsec-mb, although its header is installed" >&2
        exit 1
    fi
    folder=$CARGO_TARGET_DIR/$(basename "$(dirname "$program")")
    mkdir -p "$folder"
    cp "$program" "$folder/cipherbench.new"
    mv "$folder/cipherbench.new" "$folder/cipherbench"
done
