#!/bin/sh
# Builds the program twice from copies of this tree in two folders, and compares the results byte by byte.
#
#   scripts/reproducible.sh [cargo's arguments]     by default: --release --package cipherbench
#
# A file in the copies differs in no path: those of the tree, of the build and of cargo's registry are replaced in what the
# compilers write. Two machines build the same program with the same toolchain, C compiler and libraries.
set -eu
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- --release --package cipherbench
work=$(mktemp -d "${TMPDIR:-/tmp}/cipherbench-reproducible.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
home=${CARGO_HOME:-$HOME/.cargo}
for name in one another/folder; do
    copy=$work/$name
    mkdir -p "$copy"
    tar --exclude=./target --exclude=./runs --exclude=./.git -cf - . | tar -xf - -C "$copy"
    (
        cd "$copy"
        export CARGO_INCREMENTAL=0 CARGO_TARGET_DIR="$copy/target"
        export RUSTFLAGS="--remap-path-prefix=$copy=/build --remap-path-prefix=$home=/cargo"
        export CFLAGS="-ffile-prefix-map=$copy=/build -ffile-prefix-map=$home=/cargo"
        export SOURCE_DATE_EPOCH=0
        cargo build --locked "$@"
        find target -type f -perm -u+x -not -path '*/build/*' -not -path '*/deps/*' -exec sha256sum {} + | sort -k 2
    ) > "$work/hashes-${name%/*}"
    # Leaves room for the other.
    rm -rf "$copy"
done
cat "$work/hashes-one"
[ -s "$work/hashes-one" ] || { echo "reproducible: no program was built" >&2; exit 1; }
if ! diff "$work/hashes-one" "$work/hashes-another" >&2; then
    echo "reproducible: the two builds differ" >&2
    exit 1
fi
echo "reproducible: both builds are the same"
