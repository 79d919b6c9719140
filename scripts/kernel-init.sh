#!/bin/busybox sh
# The first process of the kernel that scripts/kernel.sh boots: puts a file system in memory over this machine's,
# which is read-only, and runs the task there. Called a second time, it is in that file system.
busybox=/bin/busybox
if [ "$1" != inside ]; then
    $busybox mkdir -p /proc /sys /dev /host /kernel /work /memory /new
    $busybox mount -t proc none /proc
    $busybox mount -t devtmpfs none /dev
    for module in /modules/*; do
        $busybox insmod "$module" || echo "no module $module"
    done
    options=trans=virtio,version=9p2000.L,msize=262144,cache=loose
    for tag in host kernel work; do
        $busybox mount -t 9p -o ro,$options $tag /$tag || { echo "no 9p: $tag"; $busybox poweroff -f; }
    done
    $busybox mount -t tmpfs none /memory
    $busybox mkdir /memory/upper /memory/inner
    $busybox mount -t overlay -o lowerdir=/host,upperdir=/memory/upper,workdir=/memory/inner none /new
    $busybox mkdir -p /new/proc /new/sys /new/dev /new/tmp /new/run /new/lib/modules /new/mnt/work
    $busybox mount -t proc none /new/proc
    $busybox mount -t sysfs none /new/sys
    $busybox mount --move /dev /new/dev
    $busybox mount -t tmpfs none /new/run
    $busybox mount -t tmpfs none /new/tmp
    $busybox mount --bind /kernel/lib/modules /new/lib/modules
    $busybox mount --bind /work /new/mnt/work
    $busybox cp /init /new/run/init
    $busybox cp $busybox /new/run/busybox
    exec $busybox switch_root /new /run/busybox sh /run/init inside
fi
busybox=/run/busybox
# The kernel calls it to load modules; machines without their own modules may not have it.
if [ ! -x /sbin/modprobe ]; then
    $busybox ln -s $busybox /sbin/modprobe
fi
$busybox mkdir -p /dev/pts /dev/shm /dev/net
$busybox mount -t devpts none /dev/pts
$busybox ip link set lo up
/sbin/modprobe tun
echo "=== begin"
# The machine's own programs, not busybox's built-in ones of the same names.
/bin/sh /mnt/work/task 2>&1
echo "=== end $?"
$busybox sync
$busybox poweroff -f
