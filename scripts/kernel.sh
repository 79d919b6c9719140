#!/bin/sh
# Runs the tests of the kernel's own tunnels (WireGuard, IPsec by strongSwan and with static keys, L2TPv3; IPsec in
# one direction too, bare and in UDP, with the station as the peer) on a kernel that has them: Debian's or Ubuntu's own,
# under emulation, on top of this machine's files. The kernels of most containers and small virtual machines lack these
# tunnels.
#
#   scripts/kernel.sh              boot it, run the tests in it, report the results
#   scripts/kernel.sh COMMAND...   the same with another command, as root
#
# The emulator (qemu-system-x86) and a static busybox are installed when they are missing. The kernel's package is
# only fetched and unpacked, into $KERNELS or ~/.cache/cipherbench-kernel: this machine's boot menu stays
# unchanged. The guest reads this machine's files by 9p, and writes only to its own memory. It has no network.
#
# Emulation is in software (TCG): slow, but the same everywhere. KERNEL_ACCEL=kvm uses the processor's
# virtualization instead.
set -eu
cd "$(dirname "$0")/.."

cache=${KERNELS:-$HOME/.cache/cipherbench-kernel}
accelerator=${KERNEL_ACCEL:-tcg}
# Seconds without output from the guest until it counts as hanging. The longest test takes minutes.
limit=${KERNEL_LIMIT:-1200}
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:$HOME/.cargo/bin
export PATH

say() { echo "kernel: $*" >&2; }
fail() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

[ "$(uname -m)" = x86_64 ] || fail "this script supports x86-64 only"

packages=
have qemu-system-x86_64 || packages="$packages qemu-system-x86"
busybox=$(command -v busybox || true)
if [ -z "$busybox" ] || ! "$busybox" --list 2>/dev/null | grep -qx switch_root; then
    packages="$packages busybox-static"
fi
if [ -n "$packages" ]; then
    as_root=
    [ "$(id -u)" -eq 0 ] || as_root=sudo
    say "installing$packages"
    # shellcheck disable=SC2086 # one word each
    $as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
        apt-get -qq -y -o Dpkg::Use-Pty=0 install --no-install-recommends $packages >&2 ||
        fail "run: sudo apt-get update && sudo apt-get install -y$packages"
    busybox=$(command -v busybox)
fi

# The newest kernel of this distribution, by its metapackage.
for whole in linux-image-amd64 linux-image-generic; do
    package=$(apt-cache depends "$whole" 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
    [ -z "$package" ] || break
done
[ -n "$package" ] || fail "apt knows no package linux-image-amd64 or linux-image-generic; run: sudo apt-get update"
release=${package#linux-image-}
root=$cache/$release
if [ ! -e "$root/complete" ]; then
    say "fetching $package"
    rm -rf "$root"
    mkdir -p "$root/packages"
    # Ubuntu has the modules in separate packages.
    for part in "$package" "linux-modules-$release" "linux-modules-extra-$release"; do
        apt-cache show "$part" >/dev/null 2>&1 || continue
        (cd "$root/packages" && apt-get -qq download "$part") || fail "cannot fetch $part"
    done
    for part in "$root"/packages/*.deb; do
        dpkg-deb -x "$part" "$root"
    done
    rm -r "$root/packages"
    # Debian's /lib is a link to /usr/lib, and packages may have either.
    [ -d "$root/lib/modules" ] || ln -s usr/lib "$root/lib"
    "$busybox" depmod -b "$root" "$release"
    touch "$root/complete"
fi

# As reported by cargo: there may be several builds.
built() {
    cargo test --locked --package "cipherbench-$1" --test lab --no-run --message-format json 2>/dev/null |
        sed -n 's/.*"name":"lab".*"executable":"\([^"]*\)".*/\1/p' | tail -n 1
}
of_lab='' of_trial=''
if [ $# -eq 0 ]; then
    say "building the tests"
    of_lab=$(built lab)
    of_trial=$(built trial)
    [ -x "$of_lab" ] && [ -x "$of_trial" ] ||
        fail "the tests do not build: cargo test -p cipherbench-lab -p cipherbench-trial --test lab --no-run"
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/cipherbench-kernel.XXXXXX")
emulator=
trap '[ -z "$emulator" ] || kill "$emulator" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
mkdir -p "$work/initrd/bin" "$work/initrd/modules"
cp "$busybox" "$work/initrd/bin/busybox"
cp scripts/kernel-init.sh "$work/initrd/init"
chmod 755 "$work/initrd/init"

# The modules for the first steps, in the order of their dependencies; the kernel loads the rest itself.
"$busybox" awk -F ':' -v wanted="virtio_pci 9pnet_virtio 9p overlay" '
    { path = $1; name = path; sub(".*/", "", name); sub("\\.ko.*", "", name); where[name] = path; needs[path] = $2 }
    function load(path,   list, count, i) {
        if (path in done) return
        done[path] = 1
        count = split(needs[path], list, " ")
        for (i = count; i > 0; i--) load(list[i])
        print path
    }
    END { count = split(wanted, names, " "); for (at = 1; at <= count; at++) if (names[at] in where) load(where[names[at]]) }
' "$root/lib/modules/$release/modules.dep" > "$work/initrd/modules/order"
number=0
while read -r path; do
    number=$((number + 1))
    cp "$root/lib/modules/$release/$path" "$work/initrd/modules/$(printf '%03d' $number)-${path##*/}"
done < "$work/initrd/modules/order"
rm "$work/initrd/modules/order"
(cd "$work/initrd" && find . | "$busybox" cpio -o -H newc 2>/dev/null) | gzip -1 > "$work/initrd.gz"

# Copied, since other builds may run meanwhile.
[ $# -gt 0 ] || { cp "$of_lab" "$work/lab" && cp "$of_trial" "$work/trial"; }

# The guest's task and environment.
cat > "$work/task" <<EOF
# The first start of a daemon and its tool reads all their libraries through 9p, and nobody waits for that.
find -L /usr/lib/ipsec -type f -exec cat {} + > /dev/null 2>&1
swanctl --version > /dev/null 2>&1
cd '$PWD/crates/bench/lab'
export PATH='$PATH' HOME='$HOME' CIPHERBENCH_KERNEL=full
EOF
if [ $# -eq 0 ]; then
    cat >> "$work/task" <<'EOF'
/mnt/work/lab the_kernels --test-threads 1 --color never || failed=yes
/mnt/work/trial the_kernels --test-threads 1 --color never || failed=yes
[ -z "${failed:-}" ]
EOF
else
    for word; do
        printf "'%s' " "$(printf '%s' "$word" | sed "s/'/'\\\\''/g")"
    done >> "$work/task"
fi

say "booting Linux $release under $accelerator; this takes a minute or two"
processor=max
qemu-system-x86_64 -accel "$accelerator" -cpu "$processor" -smp 2 -m 2048 \
    -display none -monitor none -serial "file:$work/console" -nic none -no-reboot \
    -kernel "$root/boot/vmlinuz-$release" -initrd "$work/initrd.gz" \
    -virtfs "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap" \
    -virtfs "local,path=$root,mount_tag=kernel,security_model=none,readonly=on" \
    -virtfs "local,path=$work,mount_tag=work,security_model=none,readonly=on" \
    -append "console=ttyS0 quiet loglevel=3 panic=-1 random.trust_cpu=on" < /dev/null &
emulator=$!

# No overall time limit, so that slow machines can finish as long as they make progress.
quiet=0
said=0
while kill -0 "$emulator" 2>/dev/null; do
    sleep 1
    now=$(stat -c %s "$work/console" 2>/dev/null || echo 0)
    if [ "$now" != "$said" ]; then
        said=$now
        quiet=0
        continue
    fi
    quiet=$((quiet + 1))
    if [ "$quiet" -ge "$limit" ]; then
        say "no output from the guest for $limit s (KERNEL_LIMIT): it hangs"
        kill "$emulator" 2>/dev/null || true
        break
    fi
done
wait "$emulator" || say "the emulator ended with $?"
emulator=

tr -d '\r' < "$work/console" > "$work/log"
sed -n '/^=== begin/,/^=== end/p' "$work/log" | grep -v '^===' || true
outcome=$(sed -n 's/^=== end //p' "$work/log" | tail -n 1)
if [ -z "$outcome" ]; then
    tail -n 40 "$work/log" >&2
    fail "Linux $release did not complete the tests; the end of its console is above"
fi
if grep -q '^SKIPPED' "$work/log"; then
    say "NOT RUN, for the reasons above: tests marked SKIPPED"
fi
[ "$outcome" = 0 ] || fail "failed on Linux $release ($outcome)"
if [ $# -eq 0 ] && ! grep -q '^test result: ok\. [1-9]' "$work/log"; then
    fail "no test ran on Linux $release: no name begins with the_kernels"
fi
say "all passed on Linux $release"
