#!/bin/sh
# Packs a release: target/dist/cipherbench-VERSION-MACHINE-linux.tar.gz with the program, its files for systemd, campaigns,
# labs and documents; the list of what it is built from; and SHA256SUMS. `make dist` builds the program and calls it.
set -eu
cd "$(dirname "$0")/.."

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

mkdir -p "$work/$name/bin" target/dist
rm -f target/dist/*
cp target/release/cipherbench "$work/$name/bin/"
cp -r campaigns labs docs packaging reference README.md CHANGELOG.md SECURITY.md LICENSE-APACHE LICENSE-MIT "$work/$name/"
# The same files make the same archive.
epoch=$(git log -1 --format=%ct 2>/dev/null || echo 0)
tar --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
    -C "$work" -cf - "$name" | gzip -n -9 > "target/dist/$name.tar.gz"
cp target/sbom/cipherbench.cdx.json "target/dist/$name.cdx.json"
(cd target/dist && sha256sum -- * > "$work/SHA256SUMS" && cp "$work/SHA256SUMS" .)
cat target/dist/SHA256SUMS
