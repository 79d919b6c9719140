#!/usr/bin/env python3
"""What a capture costs TCP: the same campaign with `capture: cipher` and without, in turn.

In clear and through our encryptor, without offloads, so that each frame of the wire is one to capture. As in
direct.py, pairs lie seconds apart, every other one the other way round; printed is the median of their ratios with
the interval of 95 % that signs give it. Needs root and an otherwise idle machine.

usage: capture.py [PAIRS] [PROGRAM]
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from direct import arguments, in_pairs, interval_of_median

SECONDS = 2
STREAMS = 2
DUTS = ["direct", "cipherbench"]
# The defaults (first frames), a sample, and everything that fits in the largest ring with whole frames.
CAPTURES = ["cipher", "{ at: cipher, keep: sampled }", "{ at: cipher, keep: ring, size: 256 MiB, snap: whole }"]
# A busier machine is none for this.
ATTEMPTS = 4


def rate(program, folder, dut, capture):
    """The rate of one trial, in bit/s; one that is invalid is made again, some times."""
    campaign = os.path.join(folder, "captured.yaml")
    lines = ["campaign: captured", "repeats: 1", "calibrate: false", f"duts: [{dut}]"]
    lines.append(f"trials: [tcp: {{ mtu: 1500 B, streams: {STREAMS}, offloads: off, duration: {SECONDS} s, warmup: 0 s }}]")
    if capture:
        lines.append(f"capture: {capture}")
    with open(campaign, "w") as file:
        file.write("\n".join(lines) + "\n")
    for _ in range(ATTEMPTS):
        out = os.path.join(folder, f"runs-{time.monotonic_ns()}")
        ended = subprocess.run([program, "run", campaign, "--out", out, "--quiet"], capture_output=True, text=True)
        if not os.path.isdir(out):
            sys.exit(ended.stderr)
        with open(os.path.join(out, os.listdir(out)[0], "results.json")) as file:
            (cell,) = json.load(file)["cells"]
        if cell["repeats"]["measured"] == 1:
            return cell["bulk"]["payload_throughput_bps"]["median"]
        print(f"again: {cell['reasons'][0]['text']}", flush=True)
    sys.exit(f"{ATTEMPTS} trials were invalid: the machine must be idle")


def main():
    pairs, program = arguments(12)
    told = []
    with tempfile.TemporaryDirectory() as folder:
        for dut in DUTS:
            for capture in CAPTURES:
                ratios = in_pairs(
                    pairs,
                    ("with", lambda: rate(program, folder, dut, capture)),
                    ("without", lambda: rate(program, folder, dut, None)),
                )
                low, high = interval_of_median(ratios)
                told.append(f"| {dut} | `{capture}` | {statistics.median(ratios):.3f} | {low:.3f} to {high:.3f} |")
    print(f"| DUT | `capture` | Times as fast ({pairs} pairs) | 95 % interval |\n| --- | --- | --: | --: |")
    print("\n".join(told))


if __name__ == "__main__":
    main()
