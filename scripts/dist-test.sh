#!/bin/sh
# Installs, uses, upgrades and purges the .deb of target/dist in fresh roots of Debian and Ubuntu: `make dist-test`.
#
#   scripts/dist-test.sh [bookworm|trixie|noble]...     by default all: Debian 12 and 13, Ubuntu 24.04
#   scripts/dist-test.sh --first [ROOT]...              only measures the time from nothing to the first report
#
# Needs root, mmdebstrap and the archives of both distributions; a root that cannot be made is reported as SKIPPED, and
# so is Ubuntu's without its keyring (the package ubuntu-keyring, or UBUNTU_KEYRING=FILE). Roots are kept in
# target/roots for the next time. Services run under the root's systemd, in namespaces: the host is not changed.
set -eu
cd "$(dirname "$0")/.."

first=
[ "${1:-}" != --first ] || { first=1; shift; }
[ $# -gt 0 ] || set -- bookworm trixie noble
target=${CARGO_TARGET_DIR:-target}
target=$(cd "$target" && pwd)
roots=$target/roots
say() { echo "dist-test: $*" >&2; }
fail() { say "$*"; exit 1; }
skip() { echo "SKIPPED: dist-test: $*" >&2; }

[ "$(id -u)" = 0 ] || fail "needs root: sudo make dist-test"
command -v mmdebstrap >/dev/null || fail "mmdebstrap is missing: apt-get install mmdebstrap"
new=$(find "$target/dist" -name '*.deb' 2>/dev/null | head -n 1)
[ -n "$new" ] || fail "there is no .deb in $target/dist: \`make dist\` makes it"
if [ -n "$first" ]; then
    :
elif command -v lintian >/dev/null; then
    # Overrides, with their reasons: packaging/debian/lintian-overrides.
    lintian --fail-on error --tag-display-limit 0 "$new"
    say "lintian has no error"
else
    skip "lintian: apt-get install lintian"
fi
mkdir -p "$roots"
work=$(mktemp -d "$roots/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
# The same files as an older version: an upgrade.
dpkg-deb --raw-extract "$new" "$work/old"
sed -i 's/^Version: .*/Version: 0.1.9-1/' "$work/old/DEBIAN/control"
dpkg-deb --root-owner-group -Zgzip -z1 --build "$work/old" "$work/old.deb" >/dev/null
rm -r "$work/old"
cp "$new" "$work/new.deb"

keyring=${UBUNTU_KEYRING:-/usr/share/keyrings/ubuntu-archive-keyring.gpg}
# Makes a root as an archive, once.
make_root() {
    archive=$roots/$1.tar
    [ ! -e "$archive" ] || return 0
    packages=apt,man-db,bash-completion,systemd,systemd-sysv,iproute2,ca-certificates
    case $1 in
    noble)
        [ -e "$keyring" ] || { skip "$1: there is no $keyring to verify Ubuntu's archive with"; return 1; }
        set -- noble "deb [signed-by=$keyring] http://archive.ubuntu.com/ubuntu noble main universe"
        ;;
    *) set -- "$1" "" ;;
    esac
    say "making a root of $1"
    if ! mmdebstrap --quiet --variant=minbase --include="$packages" "$1" "$roots/$1.new.tar" ${2:+"$2"} \
        > "$work/mmdebstrap" 2>&1; then
        rm -f "$roots/$1.new.tar"
        skip "$1: mmdebstrap cannot make a root: $(grep -E '^E:' "$work/mmdebstrap" | head -n 1)"
        return 1
    fi
    mv "$roots/$1.new.tar" "$archive"
}

# Runs a command in a root: in_root [--boot] ROOT COMMAND... With `--boot` it is the root's process 1, with a network of
# its own; otherwise the host's network is there, for apt.
in_root() {
    more=
    [ "$1" != --boot ] || { more="--net --cgroup"; shift; }
    # shellcheck disable=SC2016,SC2086 # expanded there; several words
    timeout 900 unshare --mount --pid --fork --kill-child --uts --ipc $more sh -eu -c '
        root=$1; shift
        mount --make-rprivate /
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"
        mount -t sysfs -o ro sysfs "$root/sys"
        mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup" || true
        mount -t tmpfs tmpfs "$root/run"
        mount -t tmpfs -o mode=755 tmpfs "$root/dev"
        mkdir "$root/dev/net" "$root/dev/pts" "$root/dev/shm"
        for device in null zero full random urandom tty net/tun; do
            touch "$root/dev/$device"
            mount --bind "/dev/$device" "$root/dev/$device"
        done
        ln -s /proc/self/fd "$root/dev/fd"
        # nft 1.0.9 reads rules from /dev/stdin.
        ln -s fd/0 "$root/dev/stdin"
        # systemd takes both over into the /dev of a service with `PrivateDevices`, or fails.
        mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts "$root/dev/pts"
        ln -s pts/ptmx "$root/dev/ptmx"
        exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
            DEBIAN_FRONTEND=noninteractive container=other "$@"
    ' sh "$@"
}

tested=0
for suite in "$@"; do
    make_root "$suite" || continue
    root=$work/$suite
    mkdir "$root"
    tar -C "$root" -xf "$roots/$suite.tar"
    cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
    # The root's list of sources names the keyring by its place here.
    [ "$suite" != noble ] || [ ! -e "$keyring" ] || install -D -m 644 "$keyring" "$root$keyring"
    mkdir "$root/packages"
    cp "$work/old.deb" "$work/new.deb" packaging/test/*.sh "$root/packages/"
    if [ -n "$first" ]; then
        say "$suite: from nothing to the first report"
        in_root "$root" sh -eu /packages/first.sh || fail "$suite: failed"
        rm -rf "$root"
        tested=$((tested + 1))
        continue
    fi
    say "$suite: install, use, upgrade"
    in_root "$root" sh -eu /packages/use.sh || fail "$suite: failed"
    say "$suite: services"
    install -D -m 644 packaging/test/dist-test.service "$root/etc/systemd/system/dist-test.service"
    mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
    ln -s ../dist-test.service "$root/etc/systemd/system/multi-user.target.wants/"
    booted=0
    in_root --boot "$root" /lib/systemd/systemd --log-target=null --show-status=0 > "$work/boot" 2>&1 || booted=$?
    cat "$root/packages/services.log" 2>/dev/null || cat "$work/boot"
    [ "$booted" -eq 0 ] || fail "$suite: services failed ($booted)"
    say "$suite: purge"
    in_root "$root" sh -eu /packages/purge.sh || fail "$suite: purge failed"
    rm -rf "$root"
    tested=$((tested + 1))
    say "$suite: passed"
done
[ "$tested" -gt 0 ] || fail "no root could be made"
say "$tested of $# distributions passed"
