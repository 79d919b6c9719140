#!/usr/bin/env python3
"""Frames per second over one veth pair: our generator and analyser against iperf3 -u, in one run.

One core sends (CPU 0), one receives (CPU 1); 64-byte frames. Our sender stamps every frame, and our
receiver checks it. Rounds alternate, so that a drift of the machine affects both. Needs root, iperf3
and iproute2; changes only two namespaces that it creates.

    make bench-frames            # or: bench/frames.py [ROUNDS] [SECONDS]
"""

import json
import signal
import statistics
import subprocess
import sys

import generator

PROGRAM = "target/release/cipherbench"
FRAME_BYTES = 64
PAYLOAD_BYTES = FRAME_BYTES - 4 - 14 - 20 - 8
SOURCE, TARGET = "198.18.0.1", "198.19.0.1"
ADDRESS = {"a": "10.7.0.1", "b": "10.7.0.2"}
MAC = {"a": "02:00:00:00:00:0a", "b": "02:00:00:00:00:0b"}
# The interface drops frames to another station's address at once, so that only the sender is measured.
NOBODY = "02:00:00:00:00:0c"
CORE = {"a": "0", "b": "1"}


class Pair:
    """Two network namespaces, joined by one veth pair; removed with this object's processes."""

    def __enter__(self):
        hold = ["unshare", "--net", "sh", "-c", "echo up; exec sleep infinity"]
        self.holders = {}
        for node in "ab":
            holder = subprocess.Popen(hold, stdout=subprocess.PIPE, text=True)
            holder.stdout.readline()
            self.holders[node] = holder
        a, b = (str(self.holders[node].pid) for node in "ab")
        self.run("a", "ip", "link", "add", "v", "type", "veth", "peer", "name", "v", "netns", b)
        for node in "ab":
            self.run(node, "ip", "link", "set", "v", "address", MAC[node], "up")
            self.run(node, "ip", "address", "add", ADDRESS[node] + "/24", "dev", "v")
            self.run(node, "ip", "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        for holder in self.holders.values():
            holder.kill()
            holder.wait()

    def inside(self, node, *words):
        enter = ["nsenter", "--target", str(self.holders[node].pid), "--net"]
        return enter + ["taskset", "--cpu-list", CORE[node], *words]

    def run(self, node, *words, **options):
        return subprocess.run(
            self.inside(node, *words), check=True, capture_output=True, text=True, **options
        ).stdout

    def start(self, node, *words):
        return subprocess.Popen(
            self.inside(node, *words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )


def iperf3(pair, seconds):
    """Datagrams per second that iperf3's receiver received."""
    server = pair.start("b", "iperf3", "--server", "--one-off", "--forceflush")
    while "listening" not in server.stdout.readline():
        pass
    client = ["iperf3", "--client", ADDRESS["b"], "--udp", "--bitrate", "0", "--json"]
    length, time = ["--length", str(PAYLOAD_BYTES)], ["--time", str(seconds)]
    result = json.loads(pair.run("a", *client, *length, *time))
    server.wait()
    total = result["end"]["sum"]
    return (total["packets"] - total["lost_packets"]) / total["seconds"]


def frames(pair, seconds, tag, checked=True):
    """(frames/s sent, frames/s received intact, ports) of our own generator and analyser."""
    macs = (MAC["a"], MAC["b"] if checked else NOBODY)
    send = generator.sender(macs, (SOURCE, TARGET), FRAME_BYTES, None, seconds)
    receiver = None
    if checked:
        receiver = pair.start("b", PROGRAM, "frames")
        receiver.stdin.write(generator.spec("v", tag, generator.receiver(FRAME_BYTES)))
        receiver.stdin.close()
        assert receiver.stdout.readline() == "ready\n"
    output = pair.run("a", PROGRAM, "frames", input=generator.spec("v", tag, send))
    sender = json.loads(output.splitlines()[-1])
    seconds = sender["sent"]["elapsed_ns"] / 1e9
    offered = sender["sent"]["frames"] / seconds
    if receiver is None:
        return offered, None, sender["port"]
    receiver.send_signal(signal.SIGTERM)
    seen = json.loads(receiver.stdout.readlines()[-1])
    receiver.wait()
    assert seen["received"]["corrupted"] == 0, seen
    return offered, seen["received"]["frames"] / seconds, f'{sender["port"]} to {seen["port"]}'


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    rates = {"iperf3": [], "received": [], "sent": [], "alone": []}
    with Pair() as pair:
        for tag in range(rounds):
            rates["iperf3"].append(iperf3(pair, seconds))
            sent, received, ports = frames(pair, seconds, 2 * tag)
            rates["sent"].append(sent)
            rates["received"].append(received)
            alone, _, port = frames(pair, seconds, 2 * tag + 1, checked=False)
            rates["alone"].append(alone)
            print(
                f"round {tag + 1}: iperf3 {rates['iperf3'][-1]:,.0f}; ours sent {sent:,.0f}, "
                f"checked {received:,.0f} ({ports}); sent alone {alone:,.0f} ({port})",
                flush=True,
            )
    median = {name: statistics.median(values) for name, values in rates.items()}
    print(f"\nmedians of {rounds} rounds of {seconds} s, 64-byte frames/s, one core each end:")
    print(f"  iperf3 -u, received         {median['iperf3']:12,.0f}")
    print(f"  ours, stamped and checked   {median['received']:12,.0f}"
          f"   {median['received'] / median['iperf3']:.2f} times iperf3")
    print(f"  ours, sent meanwhile        {median['sent']:12,.0f}")
    print(f"  ours, sent alone            {median['alone']:12,.0f}")


if __name__ == "__main__":
    main()
