#!/bin/sh
# Installs what is missing on Debian 12 or Ubuntu 24.04, by package name only.
#
#   scripts/setup.sh run     requirements of building and running a campaign
#   scripts/setup.sh test    also requirements of tests and lints
#
# If nothing is missing, it calls no package manager and ends at once. It acts as root, or through sudo if that
# needs no password or a terminal can provide it. Otherwise it prints the command to run, and fails only if
# something essential is missing.
set -eu
cd "$(dirname "$0")/.."

mode=${1:-run}
case $mode in
run | test) ;;
*)
    echo "usage: scripts/setup.sh run|test" >&2
    exit 2
    ;;
esac

msrv=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
channel=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)

say() { echo "setup: $*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }
. scripts/apt.sh
# Whether version $1 is at least version $2.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# sbin is where Debian keeps ip and ethtool, and is not in every user's PATH.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export PATH

# Packages to install. `needed` packages are essential; without `wanted` ones something is slower or skipped.
needed=
wanted=
need() { have "$1" || needed="$needed $2"; }

need cc "gcc libc6-dev"
need ip iproute2
need iperf3 iperf3
need ping iputils-ping
need ethtool ethtool
[ -e /etc/ssl/certs/ca-certificates.crt ] || needed="$needed ca-certificates"
# Its providers and engines are devices, and our engines are compared with it.
/sbin/ldconfig -p 2>/dev/null | grep -q 'libcrypto\.so\.[3-9] ' || wanted="$wanted openssl"
# A router that translates addresses is one of the devices.
have nft || wanted="$wanted nftables"
# Intel's multi-buffer engine is built in where its header is; it exists for x86-64 only.
if [ "$(uname -m)" = x86_64 ] && [ ! -e /usr/include/intel-ipsec-mb.h ]; then
    wanted="$wanted libipsec-mb-dev"
fi

# What the Rust toolchain lacks; empty if nothing.
rust_lacks() {
    if have rustup; then
        rustup toolchain list 2>/dev/null | grep -q "^$channel" || echo "toolchain $channel"
    elif ! have cargo || ! have rustc; then
        echo "cargo and rustc"
    elif ! at_least "$(rustc --version | cut -d ' ' -f 2)" "$msrv"; then
        echo "rustc $msrv or newer"
    fi
}

candidate() {
    apt-cache policy "$1" 2>/dev/null | sed -n 's/^  Candidate: \([^(].*\)$/\1/p'
}

# The distribution's packages for a recent Rust: rustup (Ubuntu 24.04, Debian 13), or the compiler that Debian
# 12 updates for its browsers.
rust_packages() {
    if [ -n "$(candidate rustup)" ]; then
        echo rustup
    elif at_least "$(candidate rustc-web)" "$msrv"; then
        echo rustc-web cargo-web
    fi
}

install_rust() {
    packages=$(rust_packages)
    if [ -z "$packages" ]; then
        say "no package here has Rust $msrv or newer: install rustup from https://rustup.rs, then try again"
        return 1
    fi
    # shellcheck disable=SC2086
    install_packages $packages
}

rust=$(rust_lacks)
install_rust_packages=
[ -z "$rust" ] || have rustup || install_rust_packages=yes
if [ "$mode" = test ] && [ -z "$install_rust_packages" ] && ! have rustup; then
    have cargo-fmt || wanted="$wanted rustfmt-web"
    have cargo-clippy || wanted="$wanted rust-web-clippy"
fi
if [ "$mode" = test ]; then
    # Hops of a path.
    have traceroute || wanted="$wanted traceroute"
    # Servers and a client of HTTP.
    have nginx || wanted="$wanted nginx-light"
    have wget2 || wanted="$wanted wget2"
    # Players of video.
    have ffmpeg || wanted="$wanted ffmpeg"
    have cvlc || wanted="$wanted vlc-bin vlc-plugin-base"
    # An independent ESP stack for the interop tests, which use the distribution's Python.
    /usr/bin/python3 -c 'import scapy.layers.ipsec, cryptography' 2>/dev/null ||
        wanted="$wanted python3-scapy python3-cryptography"
    # A dissector of captures, ESP and L2TPv3 that is not ours.
    have tshark || wanted="$wanted tshark"
    # A parser of OpenMetrics that is not ours.
    /usr/bin/python3 -c 'import prometheus_client.openmetrics' 2>/dev/null ||
        wanted="$wanted python3-prometheus-client"
    # Independent GOST ciphers, used through OpenSSL's command line.
    openssl engine -t gost 2>/dev/null | grep -q 'available ]' ||
        wanted="$wanted openssl libengine-gost-openssl"
    # Engines that lie, for the tests of devices.
    [ -e /usr/include/openssl/engine.h ] || wanted="$wanted libssl-dev"
    # An independent DES and HMAC-MD5 (soname of its ABI).
    /sbin/ldconfig -p 2>/dev/null | grep -q 'libgcrypt\.so\.20 ' || wanted="$wanted libgcrypt20"
    # Signs and verifies runs independently.
    have minisign || wanted="$wanted minisign"
    # A token, for the tests of PKCS#11.
    have softhsm2-util || wanted="$wanted softhsm2"
    # An independent HTTP and TLS client, for the tests of KMEs.
    have curl || wanted="$wanted curl"
    # Clocks that are wrong by a day, for the tests of a fleet.
    ls /usr/lib/*/faketime/libfaketime.so.1 /usr/lib*/faketime/libfaketime.so.1 2>/dev/null | grep -q . ||
        wanted="$wanted libfaketime"
    # Hosts that are reached by ssh only.
    [ -x /usr/sbin/sshd ] || wanted="$wanted openssh-server"
    # net-snmp's agent, as a box that is monitored.
    [ -x /usr/sbin/snmpd ] || wanted="$wanted snmpd"
    # The checks of dependencies are installed with pip.
    python3 -c 'import ensurepip' 2>/dev/null || wanted="$wanted python3-venv"
    # Readers of manual pages, and shells with completions, other than bash.
    for program in mandoc zsh fish; do
        have "$program" || wanted="$wanted $program"
    done
    have man || wanted="$wanted man-db"
    # A browser, for the layout of the report's pages.
    have chromium || have chromium-browser || have google-chrome || wanted="$wanted chromium"
    # The metrics that the charts reckon with.
    ls /usr/share/fonts/truetype/liberation*/LiberationSans-Regular.ttf >/dev/null 2>&1 ||
        wanted="$wanted fonts-liberation"
fi

if [ -n "$needed$wanted$install_rust_packages" ]; then
    if can_install; then
        say "installing:$needed$wanted${install_rust_packages:+ Rust}"
        apt update || say "the package lists could not be updated; continuing with the existing ones"
        # shellcheck disable=SC2086
        [ -z "$needed" ] || install_packages $needed ||
            say "could not install:$needed"
        for package in $wanted; do
            install_packages "$package" || say "continuing without $package"
        done
        if [ -n "$install_rust_packages" ]; then
            install_rust || true
            if [ "$mode" = test ] && ! have rustup; then
                install_packages rustfmt-web rust-web-clippy ||
                    say "continuing without rustfmt and clippy"
            fi
        fi
    else
        say "this needs root, which is not available here. Missing:$needed$wanted${rust:+ $rust}"
        rust_hint=
        [ -z "$install_rust_packages" ] || rust_hint=" $(rust_packages)"
        say "run: sudo apt-get update && sudo apt-get install -y$needed$wanted$rust_hint"
    fi
fi

if have rustup && [ -n "$(rust_lacks)" ]; then
    say "fetching the pinned Rust toolchain $channel"
    rustup toolchain install "$channel" --no-self-update --profile minimal \
        --component rustfmt --component clippy >&2 || true
fi

# Checks the dependencies' licences, sources and advisories.
[ "$mode" != test ] || scripts/tools.sh nats >/dev/null || say "continuing without nats-server, which the tests of a fleet need"
# The tests of the package in python/, with pandas.
[ "$mode" != test ] || scripts/python.sh --setup || say "continuing without the tests of the Python package"
[ "$mode" != test ] || [ -n "$(rust_lacks)" ] || scripts/tools.sh deny >/dev/null || say "continuing without cargo-deny"

missing=$(rust_lacks)
for program in cc ip iperf3 ping ethtool; do
    have "$program" || missing="$missing $program"
done
if [ -n "$missing" ]; then
    say "cannot continue without: $missing"
    exit 1
fi
