#!/bin/sh
# Tests the package in python/, checks its types and its style, and builds its wheel: `make python`.
#
#   scripts/python.sh [ARGUMENT...]     arguments of pytest
#
# Its environment is target/python, with the versions in python/requirements.txt, which need Python 3.11 or newer: PYTHON,
# by default python3. The package itself also works with older ones.
set -eu
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
environment=target/python

fail() {
    echo "python: $1" >&2
    exit 1
}
command -v "$python" >/dev/null || fail "$python is missing: install it (apt-get install python3 python3-venv)"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$python" --version) is too old for these checks: set PYTHON to a Python 3.11 or newer"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "$python cannot make an environment: install python3-venv"

# Made again for other versions: pip does not remove what is not required any more.
if ! cmp -s python/requirements.txt "$environment/requirements.txt"; then
    rm -rf "$environment"
    "$python" -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
        --only-binary :all: --requirement python/requirements.txt ||
        fail "the packages in python/requirements.txt cannot be installed: they come from PyPI, or from pip's index"
    cp python/requirements.txt "$environment/requirements.txt"
fi
bin=$(pwd)/$environment/bin
cd python
"$bin/ruff" format --check --quiet .
"$bin/ruff" check --quiet .
"$bin/mypy"
# Without isolation, which would fetch another version of hatchling.
"$bin/python" -m build --no-isolation --outdir "../$environment/dist" . >/dev/null
# The tests run on the wheel as it is installed: a file that is not in it is missed.
"$bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall \
    "../$environment/dist"/cipherbench_results-*.whl
"$bin/python" -m pytest "$@"
