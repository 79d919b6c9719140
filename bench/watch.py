#!/usr/bin/env python3
"""Cost of the watch on the cipher link, in CPU time a frame.

A load of frames passes the bare path of a lab. On gw2's end of the cipher link filtering packet
sockets like the watch's (every received frame passes a classic BPF program, none is delivered) are opened
and closed in turn, and the busy time of all cores is read from /proc/stat each time. Many sockets
at once make the difference visible; the cost of one is that part of it. Needs root and an otherwise
idle machine.

usage: watch.py [PROGRAM]
"""

import ctypes
import os
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

SOCKETS = 16
PAIRS = 12
STEP_S = 1.2
RATE = 60_000
CLONE_NEWNET = 0x40000000
SO_ATTACH_FILTER = 26
SOL_PACKET = 263
PACKET_IGNORE_OUTGOING = 23
ETH_P_ALL = 3

CAMPAIGN = f"""
campaign: watch
title: Cost of the watch
repeats: 1
calibrate: false
duts: [direct]
trials:
  - load: {{ frame: 64 B, rate: {RATE} frames/s, duration: 90 s }}
"""


def program():
    """The tests that a frame of UDP meets in the watch, all of which end with dropping it."""
    load, alu, jump, ret, ldx = 0, 4, 5, 6, 1
    word, half, byte = 0, 8, 16
    absolute, indirect, length, msh = 0x20, 0x40, 0x80, 0xA0
    equal, at_least, any_bit, subtract_x = 0x10, 0x30, 0x40, 0x18
    code = []

    def add(op, k, when=0, otherwise=0):
        code.append(struct.pack("HBBI", op, when, otherwise, k & 0xFFFFFFFF))

    def drop():
        add(ret, 0)

    add(load | word | absolute, -0x1000 + 48)
    add(jump | equal, 0, 1)
    drop()
    add(load | word | length, 0)
    add(jump | at_least, 34, 1)
    drop()
    add(load | half | absolute, 12)
    for ethertype in (0x0806, 0x86DD):
        add(jump | equal, ethertype, 0, 1)
        drop()
    add(load | byte | absolute, 23)
    for protocol in (50, 6):
        add(jump | equal, protocol, 0, 1)
        drop()
    add(load | half | absolute, 20)
    add(jump | any_bit, 0x1FFF, 0, 1)
    drop()
    add(ldx | byte | msh, 14)
    add(load | word | length, 0)
    add(alu | subtract_x, 0)
    add(jump | at_least, 23, 1)
    drop()
    for port_at in (14, 16):
        add(load | half | indirect, port_at)
        add(jump | equal, 4500, 0, 1)
        drop()
    add(load | word | indirect, 22)
    drop()
    return len(code), b"".join(code)


def open_sockets(interface):
    count, code = program()
    buffer = ctypes.create_string_buffer(code)
    attached = struct.pack("HL", count, ctypes.addressof(buffer))
    opened = []
    for _ in range(SOCKETS):
        one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        one.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, attached)
        one.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        one.bind((interface, ETH_P_ALL))
        opened.append(one)
    return opened


def busy_ns():
    with open("/proc/stat") as stat:
        user, nice, system, _, _, irq, softirq = map(int, stat.readline().split()[1:8])
    ticks = user + nice + system + irq + softirq
    return ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def frames(interface):
    with open("/proc/self/net/dev") as table:
        for line in table:
            name, _, counters = line.partition(":")
            if name.strip() == interface:
                return int(counters.split()[1])
    sys.exit(f"there is no interface {interface}")


def ns_per_frame(interface):
    time.sleep(0.2)
    busy, received = busy_ns(), frames(interface)
    time.sleep(STEP_S)
    return (busy_ns() - busy) / max(1, frames(interface) - received)


def enter(path):
    with open(path) as namespace:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
            sys.exit(f"cannot enter {path}: {os.strerror(ctypes.get_errno())}")


def measure(interface):
    without, within = [], []
    for _ in range(PAIRS):
        without.append(ns_per_frame(interface))
        opened = open_sockets(interface)
        within.append(ns_per_frame(interface))
        for one in opened:
            one.close()
    return without, within


def main():
    cipherbench = sys.argv[1] if len(sys.argv) > 1 else "target/release/cipherbench"
    with tempfile.TemporaryDirectory() as folder:
        campaign = os.path.join(folder, "watch.yaml")
        with open(campaign, "w") as file:
            file.write(CAMPAIGN)
        out = os.path.join(folder, "runs")
        log = open(os.path.join(folder, "log"), "w")
        run = subprocess.Popen(
            [cipherbench, "run", campaign, "--out", out], stdout=log, stderr=log
        )
        try:
            time.sleep(6)
            words = ["pgrep", "-P", str(run.pid), "-f", "station --node gw2"]
            gateway = subprocess.run(words, capture_output=True, text=True).stdout.strip()
            if not gateway:
                sys.exit("the lab did not come up")
            with open("/proc/self/ns/net") as own:
                enter(f"/proc/{gateway}/ns/net")
                without, within = measure("w1")
                # The lab ends whatever is in its namespaces.
                enter(f"/proc/self/fd/{own.fileno()}")
        finally:
            run.send_signal(signal.SIGINT)
            run.wait()
    differences = [(b - a) / SOCKETS for a, b in zip(without, within)]
    error = statistics.stdev(differences) / len(differences) ** 0.5
    print(
        f"one watch costs {statistics.mean(differences):.0f} ns a frame, "
        f"standard error {error:.0f} ns, of {statistics.mean(without):.0f} ns of CPU time "
        f"that all of the path takes ({SOCKETS} at once, {PAIRS} pairs at {RATE} frames/s)"
    )


if __name__ == "__main__":
    main()
