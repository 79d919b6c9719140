#!/bin/sh
# Installs other tunnels, which campaigns compare with ours, and clients that the tests run against our KMEs, by
# package name only, on Debian 12 or Ubuntu 24.04; then prints their versions.
#
#   scripts/peers.sh         all of them
#   scripts/peers.sh test    those that the tests require: one WireGuard in Rust is enough
#
# WireGuard in Rust comes from crates.io, the one in Go from its own module where Go is installed, and clients of
# ETSI GS QKD 014 from PyPI. They are installed into $PEERS, by default ~/.cache/cipherbench-peers, where
# `cipherbench` looks after PATH (crates/bench/lab/src/programs). What is already installed stays unchanged. It
# acts as root, or through sudo if that needs no password or a terminal can provide it. An unavailable peer is
# reported and skipped. Versions are those of scripts/versions.sh.
set -eu
# Root runs no program that a group may write to.
umask 022
. "$(dirname "$0")/versions.sh"

peers=${PEERS:-$HOME/.cache/cipherbench-peers}
bin=$peers/bin
# sbin is where Debian keeps openvpn and swanctl, and is not in every user's PATH; rustup's installer puts cargo
# into a folder of its own.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:$HOME/.cargo/bin
export PATH

say() { echo "peers: $*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }
installed() { dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }
known() { apt-cache policy "$1" 2>/dev/null | grep -q '^  Candidate: [^(]'; }

. "$(dirname "$0")/apt.sh"

# charon with its plug-ins and swanctl. The first three contain all but kernel-libipsec, which is for kernels
# without ESP.
packages="wireguard-tools openvpn openssl iperf
    strongswan-charon strongswan-swanctl libstrongswan-standard-plugins
    strongswan-pki libcharon-extra-plugins libstrongswan-extra-plugins"

# Go names the program after its module; everyone else calls it wireguard-go.
name_wireguard_go() {
    [ ! -x "$bin/wireguard" ] || [ -e "$bin/wireguard-go" ] || ln -s wireguard "$bin/wireguard-go"
}
name_wireguard_go

# WireGuard in Go: the distribution's package where there is one, unless Go can build a newer version.
wireguard_go() {
    for program in "${WIREGUARD_GO:-}" wireguard-go "$bin/wireguard-go"; do
        [ -z "$program" ] || ! have "$program" || { command -v "$program"; return; }
    done
}
[ -n "$(wireguard_go)" ] || have go || packages="$packages wireguard-go"
# Debian packages the creation of environments separately.
python3 -c 'import ensurepip' 2>/dev/null || packages="$packages python3-venv"

missing=
for package in $packages; do
    installed "$package" || missing="$missing $package"
done
if [ -n "$missing" ]; then
    if can_install; then
        apt update || say "the package lists could not be updated; continuing with the existing ones"
        for package in $missing; do
            if ! known "$package"; then
                say "this distribution has no package $package"
                continue
            fi
            say "installing $package"
            install_packages "$package" || say "continuing without $package"
        done
    else
        say "this needs apt and root, which are not available here. Missing:$missing"
        say "run: sudo apt-get update && sudo apt-get install -y$missing"
    fi
fi

# Installs a program from its crate.
from_crates_io() {
    crate=$1 program=$2 version=$3
    [ ! -x "$bin/$program" ] && ! have "$program" || return 0
    if ! have cargo; then
        say "continuing without $program: there is no cargo to build it (make setup)"
        return 0
    fi
    say "building $crate $version"
    cargo install --quiet --locked --root "$peers" --version "=$version" "$crate" ||
        say "continuing without $program"
}
from_crates_io boringtun-cli boringtun-cli "$boringtun"
[ "${1:-}" = test ] || from_crates_io gotatun-cli gotatun "$gotatun"
if [ -z "$(wireguard_go)" ] && have go; then
    say "building golang.zx2c4.com/wireguard $wireguard_go"
    GOBIN=$bin go install "golang.zx2c4.com/wireguard@$wireguard_go" || say "continuing without wireguard-go"
    name_wireguard_go
fi

# In a separate environment: they need other packages than the distribution's Python has.
qkd=$peers/qkd014
if ! "$qkd/bin/python" -c 'import etsi_qkd_014_client, qkdsec.doctor' 2>/dev/null; then
    say "installing etsi-qkd-014-client and qkdsec"
    # A process substitution is not in POSIX.
    requirements=$(mktemp)
    printf "%s" "$qkd_clients" > "$requirements"
    { python3 -m venv "$qkd" && "$qkd/bin/pip" install --quiet --disable-pip-version-check \
        --require-hashes --only-binary :all: --requirement "$requirements"; } >&2 ||
        say "continuing without clients of ETSI GS QKD 014"
    rm "$requirements"
fi

# Prints a row: a peer's name, and its version or that it is missing.
row() {
    name=$1
    shift
    version=missing
    ! have "$1" || version=$("$@" 2>&1 | grep -m 1 '[0-9]\.[0-9]') || version="no answer"
    printf '%-16s %s\n' "$name" "$version"
}
in_peers() {
    if [ -x "$bin/$1" ]; then echo "$bin/$1"; else echo "$1"; fi
}
charon=charon
for path in /usr/lib/ipsec/charon /usr/libexec/ipsec/charon /usr/lib/strongswan/charon; do
    [ ! -x "$path" ] || charon=$path
done
go_program=$(wireguard_go)
row wireguard-tools wg --version
row wireguard-go "${go_program:-wireguard-go}" --version
row boringtun "$(in_peers boringtun-cli)" --version
row gotatun "$(in_peers gotatun)" --version
row openvpn openvpn --version
row strongswan "$charon" --version
row swanctl swanctl --version
row iperf iperf --version
for client in etsi_qkd_014_client qkdsec; do
    row "$client" "$qkd/bin/python" -c "import $client; print($client.__version__)"
done
