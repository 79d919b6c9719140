#!/bin/sh
# Packs a release: target/dist/cipherbench-VERSION-MACHINE-linux.tar.gz with the program, its manual pages, completions
# and files for systemd, campaigns, labs and documents; the list of what it is built from; SHA256SUMS, and a .sha256 for
# each file. `make dist` builds the program and the packages first, which scripts/packages.sh puts there.
set -eu
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
dist=$target/dist
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
# A tag names the version that the program prints.
tag=${GITHUB_REF_NAME:-}
if [ "${GITHUB_REF_TYPE:-}" = tag ] && [ "$tag" != "v$version" ]; then
    echo "dist: the tag is $tag, and the version in Cargo.toml is $version" >&2
    exit 1
fi
name=cipherbench-$version-$(uname -m)-linux
work=$(mktemp -d "${TMPDIR:-/tmp}/cipherbench-dist.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

mkdir -p "$work/$name/bin" "$work/$name/share" "$dist"
rm -f "$dist"/*.tar.gz "$dist"/*.cdx.json "$dist"/*.sha256 "$dist/SHA256SUMS" "$dist/Containerfile"
cp "$target/portable/release/cipherbench" "$work/$name/bin/"
# Made for the packages.
cp -r "$target/portable/release/package/man" "$target/portable/release/package/completions" "$target/portable/release/package/licences.txt" \
    "$work/$name/share/"
cp -r campaigns labs docs packaging reference README.md CHANGELOG.md SECURITY.md LICENSE-APACHE LICENSE-MIT "$work/$name/"
# The same files make the same archive.
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
tar --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
    -C "$work" -cf - "$name" | gzip -n -9 > "$dist/$name.tar.gz"
cp target/sbom/cipherbench.cdx.json "$dist/$name.cdx.json"
cp packaging/Containerfile "$dist/"
cd "$dist"
sha256sum -- * > "$work/SHA256SUMS"
for file in *; do
    sha256sum -- "$file" > "$work/$file.sha256"
done
cp "$work"/*.sha256 "$work/SHA256SUMS" .
cat SHA256SUMS
