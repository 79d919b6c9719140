#!/usr/bin/env python3
"""What our checks cost `direct`: its TCP beside bare iperf3 over a path of the same shape, on the same cores.

In turn, a campaign measures `direct` with all its checks, and iperf3 runs in namespaces that `ip`
alone made, with the same links, MTUs and addresses, where nothing of the program runs. What is
compared is pairs that lie seconds apart, since machines drift by more than checks cost: the median
of their ratios, and the interval of 95 % that signs give it, whatever the distribution. Needs root
and an otherwise idle machine.

usage: direct.py [PAIRS] [PROGRAM]
"""

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

SECONDS = 2
# Of each kind before the other's turn.
TESTS = 2
STREAMS = 2
# A busier machine is none for this.
ATTEMPTS = 4
# With fewer, signs give no interval of 95 %.
PAIRS_LEAST = 6
CAMPAIGN = f"""campaign: checked
repeats: {TESTS}
calibrate: false
duts: [direct]
trials: [tcp: {{ mtu: 1500 B, streams: {STREAMS}, duration: {SECONDS} s, warmup: 0 s }}]
"""

# The ends of each link with their addresses; the stations' routes lead over the gateways.
LINKS = [
    (("a", "a0", "10.1.0.2"), ("gw1", "a1", "10.1.0.1"), 1500),
    (("gw1", "w0", "192.0.2.1"), ("gw2", "w1", "192.0.2.2"), 1500),
    (("gw2", "b1", "10.2.0.1"), ("b", "b0", "10.2.0.2"), 1500),
]
ROUTES = [
    ("a", "10.2.0.0/24", "10.1.0.1"),
    ("gw1", "10.2.0.0/24", "192.0.2.2"),
    ("gw2", "10.1.0.0/24", "192.0.2.1"),
    ("b", "10.1.0.0/24", "10.2.0.1"),
]
NODES = ["a", "gw1", "gw2", "b"]


def sh(*words):
    subprocess.run(words, check=True, capture_output=True)


def name(node):
    return f"by-hand-{os.getpid()}-{node}"


def make_path():
    for node in NODES:
        sh("ip", "netns", "add", name(node))
        sh("ip", "-n", name(node), "link", "set", "lo", "up")
        sh("ip", "netns", "exec", name(node), "sysctl", "-qw", "net.ipv4.ip_forward=1")
    for near, far, mtu in LINKS:
        words = ["ip", "link", "add", near[1], "mtu", str(mtu), "netns", name(near[0]), "type", "veth"]
        sh(*words, "peer", "name", far[1], "mtu", str(mtu), "netns", name(far[0]))
        for node, interface, address in (near, far):
            sh("ip", "-n", name(node), "address", "add", f"{address}/24", "dev", interface)
            sh("ip", "-n", name(node), "link", "set", interface, "up")
    for node, network, gateway in ROUTES:
        sh("ip", "-n", name(node), "route", "add", network, "via", gateway)
    sh("ip", "netns", "exec", name("a"), "ping", "-c", "3", "-i", "0.2", "-W", "2", "-q", "10.2.0.2")


def remove_path():
    for node in NODES:
        subprocess.run(["ip", "netns", "delete", name(node)], capture_output=True)


def cores_of_tools(cores):
    """The cores that the program gives to the server and the client of iperf3, from outside."""
    for pid in subprocess.run(["pgrep", "-x", "iperf3"], capture_output=True, text=True).stdout.split():
        try:
            words = open(f"/proc/{pid}/cmdline").read().split("\0")
            status = open(f"/proc/{pid}/status").read()
        except OSError:
            continue
        allowed = next(line for line in status.splitlines() if line.startswith("Cpus_allowed_list"))
        cores["client" if "-c" in words else "server"] = allowed.split()[1]


def of_run(command, folder, lab="namespaces", meanwhile=lambda: None):
    """The median of the tests of CAMPAIGN, in bit/s; a run with an invalid test is made again, some times."""
    campaign = os.path.join(folder, "checked.yaml")
    with open(campaign, "w") as file:
        file.write(CAMPAIGN)
    for _ in range(ATTEMPTS):
        out = os.path.join(folder, f"runs-{time.monotonic_ns()}")
        words = [*command, "run", campaign, "--lab", lab, "--out", out, "--quiet"]
        with open(os.path.join(folder, "errors"), "w+") as errors:
            run = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=errors)
            while run.poll() is None:
                meanwhile()
                time.sleep(0.1)
            if not os.path.isdir(out):
                errors.seek(0)
                sys.exit(errors.read())
        with open(os.path.join(out, os.listdir(out)[0], "results.json")) as file:
            (cell,) = json.load(file)["cells"]
        if cell["repeats"]["measured"] == TESTS:
            return cell["bulk"]["payload_throughput_bps"]["median"]
        print(f"again: {cell['reasons'][0]['text']}", flush=True)
    sys.exit(f"{ATTEMPTS} runs had invalid tests: the machine must be idle")


def with_checks(program, folder, cores):
    return of_run([program], folder, meanwhile=lambda: len(cores) == 2 or cores_of_tools(cores))


def by_hand(cores):
    return statistics.median(iperf3(cores) for _ in range(TESTS))


def iperf3(cores):
    server = ["ip", "netns", "exec", name("b"), "taskset", "-c", cores["server"], "iperf3", "-s", "-1"]
    client = ["ip", "netns", "exec", name("a"), "taskset", "-c", cores["client"]]
    client += ["iperf3", "-c", "10.2.0.2", "-t", str(SECONDS), "-P", str(STREAMS), "-J"]
    serving = subprocess.Popen(server, stdout=subprocess.DEVNULL)
    listening = ["ip", "netns", "exec", name("b"), "ss", "-Hltn", "sport", "=", ":5201"]
    while not subprocess.run(listening, capture_output=True, text=True).stdout:
        time.sleep(0.02)
    said = subprocess.run(client, capture_output=True, text=True)
    serving.wait()
    return json.loads(said.stdout)["end"]["sum_received"]["bits_per_second"]


def interval_of_median(values):
    """The narrowest pair of order statistics that holds the median with 95 %, by signs."""
    ordered, n = sorted(values), len(values)
    below = 0.0
    for rank in range(n // 2):
        below += math.comb(n, rank) / 2**n
        if 2 * below > 0.05:
            break
    else:
        rank = n // 2
    return ordered[rank - 1], ordered[n - rank]


def in_pairs(pairs, first, second):
    """Ratios of the rates of two measurements, each with its words, in turn: every other pair the other way round."""
    (words, measure), (other_words, measure_other) = first, second
    ratios = []
    for number in range(pairs):
        if number % 2 == 0:
            rate, other = measure(), measure_other()
        else:
            other, rate = measure_other(), measure()
        ratios.append(rate / other)
        print(f"{rate / 1e9:.2f} Gbit/s {words}, {other / 1e9:.2f} {other_words}: {rate / other:.3f}", flush=True)
    return ratios


def arguments(pairs_default):
    """Number of pairs and the program, as given."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else pairs_default
    if pairs < PAIRS_LEAST:
        sys.exit(f"PAIRS: {PAIRS_LEAST} or more; fewer give no interval of 95 %")
    return pairs, os.path.abspath(sys.argv[2] if len(sys.argv) > 2 else "target/release/cipherbench")


def main():
    pairs, program = arguments(40)
    with tempfile.TemporaryDirectory() as folder:
        try:
            make_path()
            cores = {}
            with_checks(program, folder, cores)
            ratios = in_pairs(
                pairs,
                ("with checks", lambda: with_checks(program, folder, cores)),
                ("by hand", lambda: by_hand(cores)),
            )
        finally:
            remove_path()
    low, high = interval_of_median(ratios)
    print(
        f"with checks {statistics.median(ratios):.3f} times iperf3 by hand, 95 % interval {low:.3f} to {high:.3f} "
        f"({pairs} pairs of {TESTS} tests of {SECONDS} s each, {STREAMS} streams, cores {cores})"
    )


if __name__ == "__main__":
    main()
