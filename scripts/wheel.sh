#!/bin/sh
# Makes a wheel that carries the program, for `pip install`: scripts/wheel.sh FOLDER
#
# maturin builds the program as scripts/portable.sh does, so that cargo has nothing to do after that.
set -eu
cd "$(dirname "$0")/.."

folder=${1:?the folder for the wheel}
tools=$(scripts/tools.sh maturin)
. scripts/glibc.sh
cd packaging/wheel
# PyPI's name for what scripts/needs.py checks.
"$tools/maturin" build --release --locked --strip false --target "$triple" \
    --compatibility "manylinux_$(echo "$glibc" | tr . _)" --auditwheel skip --out "$folder"
