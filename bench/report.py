#!/usr/bin/env python3
"""How long `report` takes for a run of 10 000 trials and `compare` for two such runs, and their memory.

The runs are made up (`render` of crates/results/report), so nothing is measured over a network.
Each command runs several times; printed are the shortest wall-clock time, with the CPU time beside
it, and the largest resident set.

usage: report.py [TIMES] [PROGRAM]
"""

import os
import pathlib
import subprocess
import sys
import time

TIMES = 5
PLACE = pathlib.Path("target/bench-report")


def make(name):
    """The folder of a made-up run."""
    run = PLACE / name
    words = ["cargo", "run", "--quiet", "--release", "--locked", "--package", "cipherbench-report", "--example", "render"]
    subprocess.run([*words, "--", f"sample:{name}", run], check=True)
    return run


def once(words):
    """Wall-clock and CPU seconds of a command, and its largest resident set in MiB."""
    started = time.monotonic()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    wall = time.monotonic() - started
    # `compare` without gates ends with 0 or, where nothing is decided, with 5.
    if os.waitstatus_to_exitcode(status) not in (0, 5):
        sys.exit(f"error: {' '.join(map(str, words))} failed")
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main():
    times = int(sys.argv[1]) if len(sys.argv) > 1 else TIMES
    program = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "target/release/cipherbench").absolute()
    first, second = make("many-1"), make("many-2")
    out = PLACE / "documents"
    print(f"{'command':<10} {'wall s':>7} {'CPU s':>7} {'MiB':>7}")
    for name, words in [
        ("report", [program, "report", first, "--out", out]),
        ("compare", [program, "compare", first, second]),
    ]:
        runs = [once(words) for _ in range(times)]
        wall, cpu, _ = min(runs)
        print(f"{name:<10} {wall:>7.2f} {cpu:>7.2f} {max(run[2] for run in runs):>7.0f}")


if __name__ == "__main__":
    main()
