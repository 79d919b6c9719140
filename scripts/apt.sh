# Installation of distribution packages, for the scripts that source this file; they define `say` and `have`.

become_root=
# Whether packages can be installed: as root, or through sudo if that needs no password or a terminal can provide it.
can_install() {
    have apt-get && have dpkg-query || return 1
    [ "$(id -u)" -ne 0 ] || return 0
    have sudo || return 1
    become_root=sudo
    sudo -n true 2>/dev/null || [ -t 0 ]
}

# No questions from the installation of iperf3, strongSwan and wireshark, or from needrestart.
apt() {
    $become_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
        apt-get -qq -y -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" >&2
}

# Names of the installed packages, one per line.
installed_packages() {
    dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p' | sort
}

# Installs packages, and leaves none of their services running or enabled: Debian's packages of nginx, snmpd,
# openssh-server, openvpn and strongSwan begin to serve the network when they are installed, and campaigns start their
# own instances in namespaces. Packages that were installed before keep their services as they are.
install_packages() {
    before=$(mktemp)
    installed_packages >"$before"
    # While this file exists and forbids it, maintainer scripts start no service (policy-rc.d, Debian policy 9.3.3.1).
    policy=/usr/sbin/policy-rc.d
    if [ -e "$policy" ]; then
        policy=
    else
        printf '#!/bin/sh\nexit 101\n' | $become_root tee "$policy" >/dev/null && $become_root chmod 755 "$policy"
    fi
    status=0
    apt install --no-install-recommends "$@" || status=$?
    [ -z "$policy" ] || $become_root rm -f "$policy"
    for package in $(installed_packages | comm -13 "$before" -); do
        units=$(dpkg-query -L "$package" 2>/dev/null |
            sed -n 's,^.*/systemd/system/\([^/@]*\.\(service\|socket\|timer\)\)$,\1,p' | sort -u)
        for unit in $units; do
            $become_root deb-systemd-helper disable "$unit" >/dev/null 2>&1 || true
            [ ! -d /run/systemd/system ] || $become_root systemctl stop "$unit" >/dev/null 2>&1 || true
        done
    done
    rm -f "$before"
    return "$status"
}
