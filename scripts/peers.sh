#!/bin/sh
# Installs the tunnels of other projects that campaigns compare with ours, and clients that the tests run against our
# KMEs, by package name only, on Debian 12 or Ubuntu 24.04; then prints the version of each.
#
#   scripts/peers.sh         all of them
#   scripts/peers.sh test    those that the tests require: one WireGuard in Rust is enough
#
# WireGuard in Rust comes from crates.io, if Go is installed the one in Go from its own module, and clients of
# ETSI GS QKD 014 from PyPI: into $PEERS, by default ~/.cache/cipherbench-peers. Installed programs are not changed. The
# script runs as root, or uses sudo if that needs no password or a terminal can answer it. A peer that cannot be
# installed is named and skipped: campaigns mark its cells and continue.
set -eu

peers=${PEERS:-$HOME/.cache/cipherbench-peers}
bin=$peers/bin
# sbin is where Debian keeps openvpn and swanctl, and is not in every user's PATH; rustup's installer puts cargo
# into its own folder.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:$HOME/.cargo/bin
export PATH

say() { echo "peers: $*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }
installed() { dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }
known() { apt-cache policy "$1" 2>/dev/null | grep -q '^  Candidate: [^(]'; }

become_root=
can_install() {
    have apt-get && have dpkg-query || return 1
    [ "$(id -u)" -ne 0 ] || return 0
    have sudo || return 1
    become_root=sudo
    sudo -n true 2>/dev/null || [ -t 0 ]
}

# strongSwan asks a question when installed, needrestart asks after: neither may.
apt() {
    $become_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
        apt-get -qq -y -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" >&2
}

# charon with its plug-ins and swanctl; all but kernel-libipsec, which is for kernels without ESP, is in the
# first three.
packages="wireguard-tools openvpn openssl iperf
    strongswan-charon strongswan-swanctl libstrongswan-standard-plugins
    strongswan-pki libcharon-extra-plugins libstrongswan-extra-plugins"

# The one in Go: the distribution's if it has one, unless Go provides a newer one.
wireguard_go() {
    for program in "${WIREGUARD_GO:-}" "$bin/wireguard" wireguard-go; do
        [ -z "$program" ] || ! have "$program" || { command -v "$program"; return; }
    done
}
[ -n "$(wireguard_go)" ] || have go || packages="$packages wireguard-go"
# Debian's Python lacks the module that creates environments.
python3 -c 'import ensurepip' 2>/dev/null || packages="$packages python3-venv"

missing=
for package in $packages; do
    installed "$package" || missing="$missing $package"
done
if [ -n "$missing" ]; then
    if can_install; then
        had_starter=
        ! installed strongswan-starter || had_starter=yes
        apt update || say "the package lists could not be updated; continuing with the existing ones"
        for package in $missing; do
            if ! known "$package"; then
                say "this distribution has no package $package"
                continue
            fi
            say "installing $package"
            apt install --no-install-recommends "$package" || say "continuing without $package"
        done
        # Debian's package of charon includes a service that runs it on this machine. Campaigns start their own,
        # in namespaces; a service that was here before does not change.
        if [ -z "$had_starter" ] && installed strongswan-starter && [ -d /run/systemd/system ]; then
            $become_root systemctl disable --now strongswan-starter >&2 ||
                say "the service strongswan-starter runs, and no campaign needs it"
        fi
    else
        say "this needs apt and root, which cannot be requested here. Missing:$missing"
        say "give: sudo apt-get update && sudo apt-get install -y$missing"
    fi
fi

# Programs by their crate.
from_crates_io() {
    crate=$1 program=$2
    [ ! -x "$bin/$program" ] && ! have "$program" || return 0
    if ! have cargo; then
        say "continuing without $program: there is no cargo to build it (make setup)"
        return 0
    fi
    say "building $crate"
    cargo install --quiet --locked --root "$peers" "$crate" || say "continuing without $program"
}
from_crates_io boringtun-cli boringtun-cli
[ "${1:-}" = test ] || from_crates_io gotatun-cli gotatun
if [ -z "$(wireguard_go)" ] && have go; then
    say "building golang.zx2c4.com/wireguard"
    GOBIN=$bin go install golang.zx2c4.com/wireguard@latest || say "continuing without wireguard-go"
fi

# In a separate environment: they need other packages than the distribution's Python has.
qkd=$peers/qkd014
if ! "$qkd/bin/python" -c 'import etsi_qkd_014_client, qkdsec.doctor' 2>/dev/null; then
    say "installing etsi-qkd-014-client and qkdsec"
    { python3 -m venv "$qkd" && "$qkd/bin/pip" install --quiet --disable-pip-version-check \
        etsi-qkd-014-client==0.9.0 qkdsec==0.3.0; } >&2 || say "continuing without clients of ETSI GS QKD 014"
fi

# A row: a peer's name, and its version, or that it is missing.
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

# These variables name programs outside of the search path to campaigns and benchmarks.
show() {
    [ ! -x "$bin/$2" ] || echo "export $1=$bin/$2"
}
echo
show WIREGUARD_GO wireguard
show BORINGTUN boringtun-cli
show GOTATUN gotatun
