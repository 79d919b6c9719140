#!/bin/sh
# Makes the packages of a release from the program that scripts/portable.sh built, into target/dist: a .deb, an .rpm and a
# wheel.
#
#   scripts/packages.sh [deb|rpm|wheel]...     by default all
#
# Everything but the wheel takes the program as it is. The same program and commit make the same bytes: files have the
# time of the commit, or SOURCE_DATE_EPOCH.
# crates/cipherbench/Cargo.toml lists the files of both packages; its `target` is target/portable here.
set -eu
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- deb rpm wheel
target=${CARGO_TARGET_DIR:-target}
target=$(mkdir -p "$target" && cd "$target" && pwd)
dist=$target/dist
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
# Names of months and the order of files.
LC_ALL=C.UTF-8
export SOURCE_DATE_EPOCH LC_ALL
PATH=$PATH:$HOME/.cargo/bin
umask 022

program=$target/portable/release/cipherbench
[ -x "$program" ] || { echo "packages: there is no $program: scripts/portable.sh makes it" >&2; exit 1; }
# A program for another machine does not run here: name one of the same version that does.
generator=${GENERATOR:-$program}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
maintainer=$(sed -n 's/^maintainer = "\(.*\)"$/\1/p' crates/cipherbench/Cargo.toml)
mkdir -p "$dist"

# What the packages have besides the program.
stage=$target/portable/release/package
rm -rf "$stage"
mkdir -p "$stage/completions" "$stage/units" "$stage/man.gz"
"$generator" generate man --output "$stage/man" >/dev/null
"$generator" generate completions bash > "$stage/completions/cipherbench.bash"
"$generator" generate completions zsh > "$stage/completions/_cipherbench"
"$generator" generate completions fish > "$stage/completions/cipherbench.fish"
for page in "$stage"/man/*.1; do
    gzip -n -9 < "$page" > "$stage/man.gz/${page##*/}.gz"
done
for unit in packaging/*.service; do
    sed 's|@PREFIX@|/usr|' "$unit" > "$stage/units/${unit##*/}"
done
scripts/changelog.py "$version-1" "$maintainer" | gzip -n -9 > "$stage/changelog.Debian.gz"
scripts/licences.py "$stage" >/dev/null
mkdir -p "$stage/doc/top" "$stage/doc/docs" "$stage/doc/start" "$stage/doc/how-to" "$stage/doc/methodology" "$stage/doc/schema"
cp README.md SECURITY.md "$stage/doc/top/"
gzip -n -9 < CHANGELOG.md > "$stage/doc/top/changelog.gz"
gzip -n -9 < "$stage/licences.txt" > "$stage/doc/top/licences.txt.gz"
cp docs/*.md docs/*.png "$stage/doc/docs/"
for folder in start how-to methodology schema; do
    find "docs/$folder" -maxdepth 1 -type f -exec cp {} "$stage/doc/$folder/" \;
done
find "$stage" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +

for product in "$@"; do
    case $product in
    deb)
        tools=$(scripts/tools.sh packager-deb)
        rm -f "$dist"/*.deb
        # The program is stripped already.
        CARGO_TARGET_DIR=$target/portable "$tools/cargo-deb" deb --no-build --no-strip --package cipherbench --locked \
            --deb-version "$version-1" --output "$dist/"
        ;;
    rpm)
        tools=$(scripts/tools.sh packager-rpm)
        rm -f "$dist"/*.rpm
        "$tools/cargo-generate-rpm" generate-rpm --package crates/cipherbench --target-dir "$target/portable" \
            --auto-req builtin --source-date "$SOURCE_DATE_EPOCH" --output "$dist/"
        ;;
    wheel)
        rm -f "$dist"/*.whl
        scripts/wheel.sh "$dist"
        ;;
    *)
        echo "usage: scripts/packages.sh [deb|rpm|wheel]..." >&2
        exit 2
        ;;
    esac
done
