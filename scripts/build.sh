#!/bin/sh
# Builds target/quick/cipherbench for `make run`, and says how long that takes: the first time minutes, later seconds. Its packet path
# is optimized as in a release, and it has no command `fleet`; `make build` builds the release, which takes several times as long.
set -eu
cd "$(dirname "$0")/.."

if [ ! -e target/quick/cipherbench ]; then
    # 439 s of CPU time were measured on two cores (CONTRIBUTING.md).
    cores=$(nproc)
    echo "build: compiles the program and 300 libraries, once: about $((8 / cores + 1)) min on this machine's $cores cores" >&2
fi
exec cargo build --profile quick --locked --package cipherbench --no-default-features
