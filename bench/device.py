#!/usr/bin/env python3
"""Our speed trial on OpenSSL's default provider, beside a tight loop in C over the same library, and `openssl speed`.

The loop in C (bench/device.c) reuses one context: its rate is that of the device, and the difference is the cost of our
harness. All run on one core. Rounds alternate, so that a drift of the machine affects both; the best round of each counts,
since other processes only take time away. Needs a C compiler and OpenSSL's headers.

    make bench-device            # or: bench/device.py [--within PERCENT] [ROUNDS] [SECONDS]

With `--within 3` it fails if ours is more than 3 % slower than the loop at any size from 64 B up.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

PROGRAM = [os.environ.get("PROGRAM", "target/release/cipherbench"), "device"]
SIZES = [16, 64, 256, 1024, 1408, 8192, 16384]
# Our name, and the options of `openssl speed`.
OPERATIONS = {
    "sha-256": ["-evp", "sha256"],
    "hmac-sha-256": ["-hmac", "sha256"],
    "aes-128-cbc encrypt": ["-evp", "aes-128-cbc"],
    "aes-256-ctr encrypt": ["-evp", "aes-256-ctr"],
    "aes-256-gcm encrypt": ["-evp", "aes-256-gcm"],
    "chacha20-poly1305 encrypt": ["-evp", "chacha20-poly1305"],
}
# From apps/speed.c of OpenSSL 3, and observed in a debugger.
REASONS = """\
why `openssl speed` differs:
  sha-256       it calls EVP_Digest, which creates a context and looks up the hash for each message: slower when short
  hmac-sha-256  it keeps the key between messages, as both loops here do
  aes-256-gcm   it sets key, IV and the IV's length for each message, and fetches no tag: slower when short
  other ciphers it neither sets an IV for a message nor ends one, and fetches no tag: faster when short; no protocol may do so"""


def ours(operation, size, seconds):
    spec = {
        "device": {"kind": "openssl", "provider": None, "engine": None, "module": None},
        "test": {
            "procedure": "speed", "operation": operation, "bytes": size, "concurrency": 1, "workers": "threads",
            "depth": 1, "duration_ns": int(seconds * 1e9), "slices": 1,
        },
        "seed": 1,
    }
    with subprocess.Popen(PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        worker.stdin.write(json.dumps(spec) + "\n")
        worker.stdin.flush()
        reached = None
        # Read to the end, since a worker fails if its output is closed.
        for line in worker.stdout:
            said = json.loads(line)
            if said == "ready":
                worker.stdin.write("go\n")
                worker.stdin.flush()
            elif said != "end" and "speed" in said:
                speed = said["speed"]
                assert speed["failed"] == speed["wrong"] == 0, speed
                reached = speed["operations"] / speed["elapsed_ns"] * 1e9
            elif said != "end" and "open" not in said:
                sys.exit(f"{operation}, {size} B: {said}")
    return reached or sys.exit(f"{operation}, {size} B: no speed")


def loop(program, operation, size, seconds):
    output = subprocess.run(
        [program, operation, str(size), str(seconds)], check=True, capture_output=True, text=True
    ).stdout
    count, elapsed = map(int, output.split())
    return count / elapsed * 1e9


def openssl(options, size, seconds):
    output = subprocess.run(
        ["openssl", "speed", "-elapsed", "-mr", "-seconds", str(max(1, round(seconds))),
         "-bytes", str(size), *options],
        check=True, capture_output=True, text=True,
    ).stdout
    # +F:22:name:bytes a second
    last = [line for line in output.splitlines() if line.startswith("+F")][-1]
    return float(last.split(":")[-1]) / size


def main():
    wanted = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    wanted.add_argument("--within", type=float, metavar="PERCENT", help="fail where ours is slower by more")
    wanted.add_argument("rounds", type=int, nargs="?", default=5)
    wanted.add_argument("seconds", type=float, nargs="?", default=0.3)
    wanted = wanted.parse_args()
    rounds, seconds = wanted.rounds, wanted.seconds
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "loop")
        compiler = shutil.which("cc") or sys.exit("no C compiler; run: apt-get install gcc libssl-dev")
        subprocess.run([compiler, "-O2", "-o", program, "bench/device.c", "-lcrypto"], check=True)
        print(f"operations/s on one core, best of {rounds} rounds of {seconds} s; "
              f"{subprocess.run(['openssl', 'version'], capture_output=True, text=True).stdout.strip()}")
        print(f"{'operation':26}{'bytes':>7}{'ours':>14}{'loop in C':>14}{'ratio':>7}{'openssl speed':>15}{'ratio':>7}")
        worst = {}
        for operation, options in OPERATIONS.items():
            for size in SIZES:
                mine = theirs = 0.0
                for _ in range(rounds):
                    mine = max(mine, ours(operation, size, seconds))
                    theirs = max(theirs, loop(program, operation, size, seconds))
                own = openssl(options, size, seconds)
                print(f"{operation:26}{size:7}{mine:14,.0f}{theirs:14,.0f}{mine / theirs:7.3f}"
                      f"{own:15,.0f}{own / theirs:7.3f}", flush=True)
                if size >= 64:
                    worst[mine / theirs] = f"{operation}, {size} B"
        least = min(worst)
        print(f"\nfrom 64 B up, ours is at least {least:.3f} of the loop in C ({worst[least]})")
        print(REASONS)
        if wanted.within is not None and least < 1 - wanted.within / 100:
            sys.exit(f"more than {wanted.within} % slower than the loop in C")


if __name__ == "__main__":
    main()
