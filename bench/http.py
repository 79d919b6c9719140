#!/usr/bin/env python3
"""Requests and connections per second of our HTTP client, wrk and h2load, on one core each.

nginx serves on CPU 1, the client runs on CPU 0, over the loopback interface. Rounds alternate, so that
a drift of the machine affects all; ratios are of the medians, of ours by the other's. wrk and h2load
compare no content, ours each byte. Needs root (our server mounts a RAM disk), nginx, wrk and h2load.

    make bench-http              # or: bench/http.py [ROUNDS] [SECONDS]
"""

import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.abspath("target/release/cipherbench")
CLIENT, SERVER = "0", "1"
CONNECTIONS = 64
OBJECT_BYTES = 1024
PORT, TLS_PORT = 18080, 18443
RAMP_NS = 100_000_000


def on(core, *words):
    return ["taskset", "--cpu-list", core, *words]


def test(seconds, tls=False, per_connection=None):
    return {
        "server": "nginx",
        "client": "open-loop",
        "object_bytes": OBJECT_BYTES,
        "version": "1.1",
        "tls": tls,
        "store": "ram",
        "connections": CONNECTIONS,
        "transactions_per_connection": per_connection,
        "streams": 1,
        "transactions_per_s": None,
        "ramp_ns": RAMP_NS,
        "duration_ns": int(seconds * 1e9),
    }


def certificate(folder):
    """An authority and a certificate named `server`, by our own program."""
    for words in (["authority", "."], ["certificate", "--authority", ".", "server"]):
        subprocess.run([PROGRAM, "keys", *words], cwd=folder, check=True, capture_output=True)
    read = lambda name: open(f"{folder}/{name}").read()
    return read("ca.pem"), {"certificate": read("server.pem"), "key": read("server.key")}


class Server:
    def __init__(self, port, identity=None):
        self.spec = {"serve": {"test": test(1), "port": port, "workers": 1, "identity": identity}}
        self.port = port

    def __enter__(self):
        self.process = subprocess.Popen(on(SERVER, PROGRAM, "http"), stdin=subprocess.PIPE, text=True)
        self.process.stdin.write(json.dumps(self.spec))
        self.process.stdin.close()
        while self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return self
            except ConnectionRefusedError:
                time.sleep(0.01)
        sys.exit("the server ended")

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def ours(seconds, port, authority=None, per_connection=None):
    spec = {
        "fetch": {
            "test": test(seconds, authority is not None, per_connection),
            "server": f"127.0.0.1:{port}",
            "threads": 1,
            "authority": authority,
            "timeout_ns": 5_000_000_000,
        }
    }
    run = subprocess.run(
        on(CLIENT, PROGRAM, "http"), input=json.dumps(spec), text=True, capture_output=True, check=True
    )
    found = json.loads(run.stdout)
    if found["failed"]:
        sys.exit(f"transactions failed: {found['failed']}")
    return found["transactions"] / (found["duration_ns"] / 1e9)


def wrk(seconds):
    url = f"http://127.0.0.1:{PORT}/object-0"
    words = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s", url]
    run = subprocess.run(on(CLIENT, *words), text=True, capture_output=True, check=True)
    return float(re.search(r"Requests/sec:\s*([\d.]+)", run.stdout).group(1))


def h2load(number, port, scheme, connections):
    url = f"{scheme}://127.0.0.1:{port}/object-0"
    words = ["h2load", "--h1", "-t1", f"-n{number}", f"-c{connections}", url]
    run = subprocess.run(on(CLIENT, *words), text=True, capture_output=True, check=True)
    done = re.search(r"(\d+) succeeded", run.stdout)
    seconds = re.search(r"finished in ([\d.]+)(ms|s)", run.stdout)
    scale = 1e-3 if seconds.group(2) == "ms" else 1.0
    if int(done.group(1)) != number:
        sys.exit(f"h2load: {done.group(0)} of {number}")
    return number / (float(seconds.group(1)) * scale)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 2
    figures = {}

    def note(name, value):
        figures.setdefault(name, []).append(value)

    with tempfile.TemporaryDirectory() as folder:
        authority, identity = certificate(folder)
        with Server(PORT), Server(TLS_PORT, identity):
            for _ in range(rounds):
                note("requests/s: ours", ours(seconds, PORT))
                note("requests/s: wrk", wrk(seconds))
                note("requests/s: h2load", h2load(100_000, PORT, "http", CONNECTIONS))
                note("TLS connections/s: ours", ours(seconds, TLS_PORT, authority, 1))
                note("TLS connections/s: h2load", h2load(1000, TLS_PORT, "https", 1000))
    median = {name: statistics.median(values) for name, values in figures.items()}
    for name, values in figures.items():
        print(f"{name:28} {median[name]:10.0f}  ({min(values):.0f} to {max(values):.0f})")
    ratio = lambda kind, other: median[f"{kind}: ours"] / median[f"{kind}: {other}"]
    print(f"ours / wrk, requests/s:           {ratio('requests/s', 'wrk'):.2f}")
    print(f"ours / h2load, requests/s:        {ratio('requests/s', 'h2load'):.2f}")
    print(f"ours / h2load, TLS connections/s: {ratio('TLS connections/s', 'h2load'):.2f}")


main()
