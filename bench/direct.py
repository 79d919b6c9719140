#!/usr/bin/env python3
"""What our checks cost `direct`: its TCP beside iperf3 by hand over the same path, on the same cores.

In turn, a campaign measures `direct` with all its checks, and iperf3 runs by hand in the namespaces
of a lab that the program has set up, where it pings once a second meanwhile. Needs root and
an otherwise idle machine.

usage: direct.py [ROUNDS] [PROGRAM]
"""

import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SECONDS = 2
# Of each kind in a lab before the other's turn.
TESTS = 5
STREAMS = 2
TCP = f"tcp: {{ mtu: 1500 B, streams: {STREAMS}, duration: {SECONDS} s, warmup: 0 s }}"
IDLE = "ping: { mtu: 1500 B, count: 60, interval: 1 s }"


def write_campaign(folder, name, trial):
    path = os.path.join(folder, f"{name}.yaml")
    with open(path, "w") as file:
        file.write(
            f"campaign: {name}\nrepeats: {TESTS}\ncalibrate: false\nduts: [direct]\ntrials: [{trial}]\n"
        )
    return path


def of_children(pid, field):
    """The process of a station below the program, by a part of its command line."""
    words = ["pgrep", "-P", str(pid), "-f", field]
    return subprocess.run(words, capture_output=True, text=True).stdout.split()


def cores_of_tools():
    """The cores that the program gives to the server and the client of iperf3, from outside."""
    cores = {}
    for pid in subprocess.run(["pgrep", "-x", "iperf3"], capture_output=True, text=True).stdout.split():
        try:
            words = open(f"/proc/{pid}/cmdline").read().split("\0")
            status = open(f"/proc/{pid}/status").read()
        except OSError:
            continue
        allowed = next(l for l in status.splitlines() if l.startswith("Cpus_allowed_list"))
        cores["client" if "-c" in words else "server"] = allowed.split()[1]
    return cores


def start(program, folder, campaign):
    """Starts a run; the process, and the folder of its results."""
    out = os.path.join(folder, f"runs-{time.monotonic_ns()}")
    words = [program, "run", campaign, "--out", out, "--quiet"]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), out


def with_checks(program, folder, campaign, cores):
    run, out = start(program, folder, campaign)
    while run.poll() is None:
        if len(cores) < 2:
            cores.update(cores_of_tools())
        time.sleep(0.5)
    results = [os.path.join(out, one, "results.json") for one in os.listdir(out)]
    with open(results[0]) as file:
        (cell,) = json.load(file)["cells"]
    if cell["repeats"]["measured"] != TESTS:
        print(f"again: {cell['reasons'][0]['text']}", flush=True)
        return with_checks(program, folder, campaign, cores)
    return cell["bulk"]["payload_throughput_bps"]["median"]


def by_hand(program, folder, campaign, cores):
    run, _ = start(program, folder, campaign)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            stations = [of_children(run.pid, f"station --node {node}") for node in "ab"]
            if all(stations) and reaches(stations[0][0]):
                break
            time.sleep(0.2)
        else:
            sys.exit("the lab did not come up")
        time.sleep(1)
        a, b = stations[0][0], stations[1][0]
        return statistics.median(iperf3(a, b, cores) for _ in range(TESTS))
    finally:
        run.send_signal(signal.SIGINT)
        run.wait()


def reaches(station):
    words = ["nsenter", "-t", station, "-n", "ping", "-c", "1", "-W", "1", "-q", "10.2.0.2"]
    return subprocess.run(words, capture_output=True).returncode == 0


def iperf3(a, b, cores):
    server = ["nsenter", "-t", b, "-n", "taskset", "-c", cores["server"], "iperf3", "-s", "-1"]
    client = ["nsenter", "-t", a, "-n", "taskset", "-c", cores["client"]]
    client += ["iperf3", "-c", "10.2.0.2", "-t", str(SECONDS), "-P", str(STREAMS), "-J"]
    serving = subprocess.Popen(server, stdout=subprocess.DEVNULL)
    time.sleep(0.3)
    said = subprocess.run(client, capture_output=True, text=True)
    serving.wait()
    return json.loads(said.stdout)["end"]["sum_received"]["bits_per_second"]


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    if rounds < 2:
        sys.exit("ROUNDS: 2 or more, since one pair has no standard error")
    program = os.path.abspath(sys.argv[2] if len(sys.argv) > 2 else "target/release/cipherbench")
    with tempfile.TemporaryDirectory() as folder:
        checked = write_campaign(folder, "checked", TCP)
        idle = write_campaign(folder, "idle", IDLE)
        cores, logs, ours, bare = {}, [], [], []
        with_checks(program, folder, checked, cores)
        for number in range(rounds):
            steps = [
                lambda: ours.append(with_checks(program, folder, checked, cores)),
                lambda: bare.append(by_hand(program, folder, idle, cores)),
            ]
            for step in steps if number % 2 == 0 else reversed(steps):
                step()
            logs.append(math.log(ours[-1] / bare[-1]))
            print(f"{ours[-1] / 1e9:.2f} Gbit/s with checks, {bare[-1] / 1e9:.2f} by hand", flush=True)
    error = statistics.stdev(logs) / len(logs) ** 0.5
    print(
        f"with checks {math.exp(statistics.mean(logs)):.3f} times iperf3 by hand, standard error "
        f"{100 * error:.1f} % ({rounds} pairs of medians of {TESTS} tests of {SECONDS} s, {STREAMS} streams, cores {cores})"
    )


if __name__ == "__main__":
    main()
