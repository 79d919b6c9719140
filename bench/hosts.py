#!/usr/bin/env python3
"""What a lab of two hosts costs beside the lab of namespaces, and how fast and exact it is.

The hosts are namespaces of this machine with an sshd each, which are reached only by ssh; the
second has a clock of its own (time_namespaces(7)).

1. How long until a lab is up: from the start of a run until its journal is there, so with the
   connections, the program where it is sent, the stations, the cable, and what the hosts say of
   themselves. Beside it one command by ssh.
2. How well the clocks of both hosts are known: the bound of each frame trial.
3. TCP over `direct` on the hosts and in the lab of namespaces, in turn: the median of their ratios,
   and the interval of 95 % that signs give it.

Needs root, openssh-server and an otherwise idle machine.

usage: hosts.py [PAIRS] [PROGRAM]
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from direct import SECONDS, STREAMS, TESTS, arguments, in_pairs, interval_of_median, of_run

SSHD = "/usr/sbin/sshd"
STARTS = 7
CLOCKS = """campaign: clocks
repeats: 10
calibrate: false
duts: [direct]
trials: [load: { frame: 512 B, rate: 500 frames/s, duration: 1 s }]
"""
PING = """campaign: start
repeats: 1
calibrate: false
duts: [direct]
trials: [ping: { mtu: 1400 B, count: 5, interval: 10 ms }]
"""
HOSTS = ["left", "right"]


class Place:
    """A namespace of network and mounts, which goes with its holder."""

    def __init__(self, *options):
        script = (
            "mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/tmp && mkdir /run/sshd && "
            "ip link set lo up && echo ready && exec cat"
        )
        words = ["unshare", "--net", "--mount", "--propagation", "private", *options, "sh", "-c", script]
        self.holder = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            sys.exit("no namespaces can be made here: this needs root")
        self.enter = ["nsenter", "-t", str(self.holder.pid), "-n", "-m", "-T"]

    def run(self, script):
        subprocess.run([*self.enter, "sh", "-ec", script], check=True)

    def close(self):
        self.holder.stdin.close()
        self.holder.wait()


class Lab:
    """A tester and two hosts, in a folder for their files."""

    def __init__(self, folder, program):
        self.folder, self.program = folder, program
        self.tester = Place()
        self.hosts = [Place(), Place("--time", "--monotonic", "900")]
        self.daemons = []
        self.tester.run(
            f"ssh-keygen -q -t ed25519 -N '' -f {folder}/user; ssh-keygen -q -t ed25519 -N '' -f {folder}/host"
        )
        with open(f"{folder}/host.pub") as file:
            key = file.read()
        known = config = ""
        for number, (name, host) in enumerate(zip(HOSTS, self.hosts)):
            address = f"10.99.{number}"
            self.tester.run(
                f"ip link add t{number} type veth peer name m0 netns {host.holder.pid}; "
                f"ip addr add {address}.1/24 dev t{number}; ip link set t{number} up"
            )
            host.run(f"ip addr add {address}.2/24 dev m0; ip link set m0 up")
            known += f"{address}.2 {key}"
            config += (
                f"Host {name}\n HostName {address}.2\n User root\n IdentityFile {folder}/user\n"
                f" UserKnownHostsFile {folder}/known_hosts\n StrictHostKeyChecking yes\n"
            )
            self.write(
                f"sshd{number}",
                f"ListenAddress {address}.2\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n"
                "StrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\n",
            )
            sshd = [*host.enter, SSHD, "-D", "-f", f"{folder}/sshd{number}"]
            self.daemons.append(subprocess.Popen(sshd, stderr=subprocess.DEVNULL))
            host.run("until ss -Hltn | grep -q ':22 '; do sleep 0.05; done")
        self.write("known_hosts", known)
        self.write("ssh_config", config)
        other = self.hosts[1].holder.pid
        self.hosts[0].run(f"ip link add cable0 type veth peer name cable0 netns {other}")

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)

    def write_lab(self, more=""):
        reach = f"reach: ssh -F {self.folder}/ssh_config"
        a, b = (f"{{ {reach} {name}, interface: cable0{more} }}" for name in HOSTS)
        self.write("lab.yaml", f"lab: bench-hosts\nkind: hosts\nhosts:\n  a: {a}\n  b: {b}\n")

    def command(self):
        return [*self.tester.enter, "env", "-C", self.folder, self.program]

    def run(self, name, campaign):
        """Runs a campaign on the hosts. Returns the lines of its journal, and when that was there, in s."""
        self.write(f"{name}.yaml", campaign)
        out = os.path.join(self.folder, f"{name}-{time.monotonic_ns()}")
        words = [*self.command(), "run", f"{name}.yaml", "--lab", "lab.yaml", "--out", out, "--quiet"]
        begun, up = time.monotonic(), None
        with open(os.path.join(self.folder, "errors"), "w+") as errors:
            run = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=errors)
            while run.poll() is None:
                if up is None and journal_of(out):
                    up = time.monotonic() - begun
                time.sleep(0.005)
            if not journal_of(out):
                errors.seek(0)
                sys.exit(errors.read())
        with open(journal_of(out)) as file:
            return [json.loads(line) for line in file], up

    def ssh(self):
        begun = time.monotonic()
        ssh = [*self.tester.enter, "ssh", "-F", f"{self.folder}/ssh_config", HOSTS[0], "true"]
        subprocess.run(ssh, check=True)
        return time.monotonic() - begun

    def close(self):
        for daemon in self.daemons:
            daemon.kill()
            daemon.wait()
        for place in [*self.hosts, self.tester]:
            place.close()


def journal_of(out):
    runs = os.listdir(out) if os.path.isdir(out) else []
    paths = [os.path.join(out, run, "journal.jsonl") for run in runs]
    return next((path for path in paths if os.path.exists(path)), None)


def starts(lab):
    ssh = statistics.median(lab.ssh() for _ in range(STARTS))
    print(f"a command by ssh: {ssh:.2f} s")
    for what, more in [("sent", ""), ("installed", f", program: {lab.program}")]:
        lab.write_lab(more)
        up = [lab.run("start", PING)[1] for _ in range(STARTS)]
        print(
            f"up with the program {what}: {statistics.median(up):.2f} s ({min(up):.2f} to {max(up):.2f}), "
            f"{statistics.median(up) - ssh:.2f} s more than a command by ssh ({STARTS} starts)",
            flush=True,
        )


def clocks(lab):
    lines, _ = lab.run("clocks", CLOCKS)
    bounds = []
    for line in lines:
        outcome = line.get("outcome", {})
        measured = outcome.get("measured", outcome)
        for trial in (measured.get("frames") or {}).get("trials", []):
            if trial["readings"].get("clocks"):
                bounds.append(trial["readings"]["clocks"]["within_ns"] / 1000)
    if not bounds:
        sys.exit("no trial compared the clocks")
    print(
        f"clocks known to {statistics.median(bounds):.1f} us ({min(bounds):.1f} to {max(bounds):.1f}, "
        f"{sum(bound <= 20 for bound in bounds)} of {len(bounds)} frame trials within 20 us)",
        flush=True,
    )


def pairs_of(lab, pairs):
    # Both kinds of labs must use the same program.
    lab.write_lab(f", program: {lab.program}")
    on_hosts = lambda: of_run(lab.command(), lab.folder, lab=os.path.join(lab.folder, "lab.yaml"))
    in_namespaces = lambda: of_run([lab.program], lab.folder)
    in_namespaces()
    ratios = in_pairs(pairs, ("on hosts", on_hosts), ("in namespaces", in_namespaces))
    low, high = interval_of_median(ratios)
    print(
        f"on hosts {statistics.median(ratios):.3f} times as fast as in namespaces, 95 % interval {low:.3f} to "
        f"{high:.3f} ({pairs} pairs of {TESTS} tests of {SECONDS} s each, {STREAMS} streams)"
    )


def main():
    pairs, program = arguments(30)
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(folder, program)
        try:
            starts(lab)
            clocks(lab)
            pairs_of(lab, pairs)
        finally:
            lab.close()


if __name__ == "__main__":
    main()
