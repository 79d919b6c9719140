#!/bin/sh
# Builds target/quick/cipherbench for `make run`, and says how long that takes: the first time minutes, later seconds. Its packet path
# is optimized as in a release; `make build` builds the release, which takes several times as long.
set -eu
cd "$(dirname "$0")/.."

if [ ! -e target/quick/cipherbench ]; then
    echo "build: compiles the program and 300 libraries, once: about $((8 / $(nproc) + 1)) min of this machine's $(nproc) cores" >&2
fi
exec cargo build --profile quick --locked --package cipherbench
