#!/bin/sh
# Tests the package in python/, checks its types and its style, and builds its wheel: `make python`.
#
#   scripts/python.sh [ARGUMENT...]     arguments of pytest
#   scripts/python.sh --setup           only installs what that needs: 400 MB, in about a minute
#   scripts/python.sh --installed       whether it is installed
#
# The environment has the versions in python/requirements.txt, which need Python 3.11 or newer: PYTHON, by default
# python3. It is in $TOOLS, by default ~/.cache/cipherbench-tools, for all clones. The package itself also works with
# older ones.
set -eu
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
environment=${TOOLS:-$HOME/.cache/cipherbench-tools}/python
built=$(pwd)/target/python

fail() {
    echo "python: $1" >&2
    exit 1
}
installed() { cmp -s python/requirements.txt "$environment/requirements.txt"; }
if [ "${1:-}" = --installed ]; then
    installed
    exit
fi

# Made again for other versions: pip does not remove what is not required any more.
if ! installed; then
    command -v "$python" >/dev/null || fail "$python is missing: install it (apt-get install python3 python3-venv)"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "$("$python" --version) is too old for these checks: set PYTHON to a Python 3.11 or newer"
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$python cannot make an environment: install python3-venv"
    echo "python: installing what the checks need (pandas, matplotlib, mypy, pytest, ruff) into $environment" >&2
    rm -rf "$environment"
    "$python" -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
        --only-binary :all: --requirement python/requirements.txt ||
        fail "the packages in python/requirements.txt cannot be installed: they come from PyPI, or from pip's index"
    cp python/requirements.txt "$environment/requirements.txt"
fi
[ "${1:-}" != --setup ] || exit 0
bin=$environment/bin
cd python
"$bin/ruff" format --check --quiet .
"$bin/ruff" check --quiet .
"$bin/mypy"
# Without isolation, which would fetch another version of hatchling.
rm -rf "$built/dist" "$built/installed"
"$bin/python" -m build --no-isolation --outdir "$built/dist" . >/dev/null
# The tests run on the wheel as it is installed: a file that is not in it is missed. It is installed outside of the
# environment, which another clone may use meanwhile.
"$bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-index --target "$built/installed" \
    "$built/dist"/cipherbench_results-*.whl
PYTHONPATH=$built/installed "$bin/python" -m pytest "$@"
