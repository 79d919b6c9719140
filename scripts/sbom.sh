#!/bin/sh
# Writes the list of all that the program is built from, in CycloneDX's form: target/sbom/cipherbench.cdx.json.
# cargo-cyclonedx is built the first time, which takes two minutes.
set -eu
cd "$(dirname "$0")/.."

PATH=$PATH:$(scripts/tools.sh cyclonedx)
export PATH
work=$(mktemp -d "${TMPDIR:-/tmp}/cipherbench-sbom.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
# It writes a file beside each manifest: not into the working tree.
tar --exclude=./target --exclude=./runs --exclude=./.git -cf - . | tar -xf - -C "$work"
# The time of the commit makes the list the same each time.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH
cargo metadata --locked --format-version 1 --manifest-path "$work/Cargo.toml" >/dev/null
cargo cyclonedx --quiet --manifest-path "$work/Cargo.toml" --format json --spec-version 1.5 --target all
mkdir -p target/sbom
# Without the place of the copy.
sed "s#file://$work/#file:///cipherbench/#g" "$work/crates/cipherbench/cipherbench.cdx.json" > target/sbom/cipherbench.cdx.json
echo "target/sbom/cipherbench.cdx.json: $(grep -c '"purl": "pkg:cargo/' target/sbom/cipherbench.cdx.json) crates"
