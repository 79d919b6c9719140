#!/bin/sh
# Makes a wheel that carries the program, for `pip install`: scripts/wheel.sh FOLDER
#
# maturin builds the program as `make build` does, so that cargo has nothing to do after that. The wheel is for machines
# with glibc and OpenSSL 3 (libcrypto.so.3) of the build machine's age or newer; docs/install.md lists them.
set -eu
cd "$(dirname "$0")/.."

folder=${1:?the folder for the wheel}
tools=$(scripts/tools.sh maturin)
# Without the tag of a platform of PyPI: those have no OpenSSL, on which the program depends.
cd packaging/wheel
"$tools/maturin" build --release --locked --strip false --compatibility linux --auditwheel skip --out "$folder"
