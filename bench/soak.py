#!/usr/bin/env python3
"""A long run of two encryptors with a rekey each second, faults on both links between them, and kills.

    A ── gw1 ══ data (ESP in UDP) ══════ gw2 ── B          each in its own network namespace; a bridge
           └─── control (TLS over TCP) ───┘                (`cipherbench impair`) in both links

In each minute stations A and B send each other test frames. The bridges lose (single frames and bursts), delay, reorder
and duplicate; for two seconds both links are cut. One gateway is killed (SIGKILL) and started again: gw2 in the first
half of the time, gw1 in the second, so that either survives for half of it. Each minute ends with a pause in which
every count stands still, and then each frame must have exactly one end, place by place in either direction:

    sent + copies by the bridge + keepalives that a start sends =
    received + dropped by a gateway, by reason + lost on the data link, as its bridge counted + lost in the cut
             + met no gateway (no tunnel, or nobody at its port) + missed by the station, which had no room
             + in flight when a gateway was killed: at most what was on the way between the last reading of its counters
               and its end, and only at that gateway

The data link carries UDP alone, so that its bridge counts packets of ESP and no others. Memory and file descriptors of
the survivor must be flat. Prints a line for each minute and a verdict; exit code 1 if anything is wrong, 3 if this host
cannot do it. Changes only namespaces that it creates. Needs root, iproute2 and ethtool.

    make soak                      # an hour; or: bench/soak.py [--seconds N] [--minute N] [--rate N] [--program FILE]
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

import generator
from nodes import Failed, Nodes

FRAME_BYTES = 512
FLOWS = 4
# Of a minute, where the events are; the rest of it after the frames is the pause.
KILL_AT, CUT_AT, FRAMES_UNTIL = 0.25, 0.6, 0.9
CUT_SECONDS = 2
# How long a killed gateway stays away.
AWAY_SECONDS = 1
# A frame may wait in queues of a busy machine before it is counted.
QUEUED_SECONDS = 0.5
# Growth of the survivor's memory, from its second reading on, which is not explained by allocation alone.
GROWTH_KB_MAX = 1024
DESCRIPTORS_MORE_MAX = 2
GATEWAYS = ["gw1", "gw2"]
OTHER = {"gw1": "gw2", "gw2": "gw1"}
OWN = {"gw1": "192.0.2.1", "gw2": "192.0.2.2"}
STATION = {"gw1": "a", "gw2": "b"}
# Networks of frames' addresses, which no host has; behind each gateway.
SOURCE = {"gw1": "198.18.0.1", "gw2": "198.19.0.1"}
NETWORK = {"gw1": "198.18.0.0/16", "gw2": "198.19.0.0/16"}
METRICS = "127.0.0.1:9464"
CLEAR_REASONS = ["malformed", "no_tunnel", "no_keys", "keys_expired", "too_big", "sequence_exhausted", "seal_failed", "send_failed"]


def mac(number):
    return f"02:00:00:00:00:{number:02x}"


# Node, interface, MAC of both ends.
LINKS = [
    (("a", "a0", mac(1)), ("gw1", "a1", mac(2))),
    (("gw1", "data", mac(3)), ("wan", "data1", mac(4))),
    (("gw2", "data", mac(5)), ("wan", "data2", mac(6))),
    (("gw1", "control", mac(7)), ("wan", "control1", mac(8))),
    (("gw2", "control", mac(9)), ("wan", "control2", mac(10))),
    (("b", "b0", mac(11)), ("gw2", "b1", mac(12))),
    # Where frames go while there is no tunnel.
    (("gw1", "away", mac(13)), ("wan", "away1", mac(14))),
    (("gw2", "away", mac(15)), ("wan", "away2", mac(16))),
]
CLEAR = {"gw1": "a1", "gw2": "b1"}
ETHER = {name: ether for link in LINKS for _, name, ether in link}
DATA_ETHER = {"gw1": mac(3), "gw2": mac(5)}
CONTROL_ETHER = {"gw1": mac(7), "gw2": mac(9)}


def impairment(loss_ppm, to_bad_ppm, to_good_ppm):
    """1 ms away, with jitter; bursts lose every frame."""
    return {
        "delay_ns": 1_000_000,
        "jitter": {"time_ns": 300_000, "distribution": "normal"},
        "loss": {"bursts": {"to_bad_ppm": to_bad_ppm, "to_good_ppm": to_good_ppm, "bad_ppm": 1_000_000, "good_ppm": loss_ppm}},
        "reorder": {"ppm": 20_000, "by_ns": 5_000_000},
        "duplicate_ppm": 5_000,
        "corrupt_ppm": 0,
        "rate": None,
    }


IMPAIRMENTS = {
    # 1 %, and bursts of 100 frames on average.
    "data": impairment(10_000, 100, 10_000),
    # 1 %, and bursts of four.
    "control": impairment(10_000, 2_000, 250_000),
}


class Unable(Exception):
    """This host cannot run the soak."""


class Wrong(Exception):
    """A count that cannot be."""


class Topology(Nodes):
    """The namespaces with the links between them."""

    def __init__(self):
        super().__init__("soak-")
        self.children = []

    def build(self):
        for node in ["a", "gw1", "wan", "gw2", "b"]:
            self.hold(node)
            self.run(node, "sysctl", "-eqw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
        for one, other in LINKS:
            netns = str(self.holders[other[0]].pid)
            self.run(one[0], "ip", "link", "add", one[1], "type", "veth", "peer", "name", other[1], "netns", netns)
            for node, name, ether in (one, other):
                self.run(node, "ip", "link", "set", name, "address", ether, "arp", "off", "txqueuelen", "5000", "up")
                # Every frame is counted, so the kernel must cut super-packets before the link.
                off = [word for feature in ("tso", "gso", "gro", "tx-udp-segmentation") for word in (feature, "off")]
                self.run(node, "ethtool", "-K", name, *off)
        for gateway, other in OTHER.items():
            here = lambda *words: self.run(gateway, *words)
            here("sysctl", "-eqw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0")
            here("ip", "address", "add", f"{OWN[gateway]}/32", "dev", "data")
            here("ip", "route", "add", f"{OWN[other]}/32", "dev", "data")
            here("ip", "neighbour", "add", OWN[other], "lladdr", DATA_ETHER[other], "dev", "data")
            # TCP, and ICMP about closed ports, take the control link.
            for protocol in ("tcp", "icmp"):
                here("ip", "rule", "add", "ipproto", protocol, "lookup", "100")
            here("ip", "route", "add", f"{OWN[other]}/32", "dev", "control", "table", "100", "src", OWN[gateway])
            here("ip", "neighbour", "add", OWN[other], "lladdr", CONTROL_ETHER[other], "dev", "control")
            near, clear = SOURCE[gateway], CLEAR[gateway]
            here("ip", "route", "add", NETWORK[gateway], "dev", clear)
            here("ip", "neighbour", "add", near, "lladdr", ETHER["a0" if gateway == "gw1" else "b0"], "dev", clear)
            here("ip", "route", "add", NETWORK[other], "dev", "away", "metric", "4000")
            here("ip", "neighbour", "add", SOURCE[other], "lladdr", ETHER[f"away{gateway[2]}"], "dev", "away")

    def __exit__(self, *_):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()
        super().__exit__()

    def start(self, node, *words, **options):
        child = super().start(node, *words, **options)
        self.children = [other for other in self.children if other.poll() is None] + [child]
        return child

    def packets(self, node, name, way):
        """Frames that a link has received (`rx`) or sent (`tx`), and those that it dropped itself."""
        (link,) = json.loads(self.run(node, "ip", "-json", "-stats", "link", "show", "dev", name))
        counts = link["stats64"][way]
        return counts["packets"], counts["dropped"]

    def udp(self, node):
        """The kernel's counters of UDP."""
        lines = self.run(node, "cat", "/proc/net/snmp").splitlines()
        names, values = [line.split()[1:] for line in lines if line.startswith("Udp:")]
        return dict(zip(names, map(int, values)))


def scrape():
    """Within a gateway's namespace: prints its metrics, as JSON, for each line of input."""
    for _ in sys.stdin:
        try:
            host, port = METRICS.split(":")
            with socket.create_connection((host, int(port)), timeout=5) as connection:
                connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n")
                answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
            _, _, text = answer.decode().partition("\r\n\r\n")
            lines = [line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#")]
            print(json.dumps({name: float(value) for name, value in lines}), flush=True)
        except OSError as error:
            print(json.dumps({"error": str(error)}), flush=True)


class Gateway:
    """An encryptor, with the counts of all its lives."""

    def __init__(self, nodes, program, name):
        self.nodes, self.program, self.name = nodes, program, name
        self.past = {}
        self.process = None
        self.scraper = nodes.start(name, sys.executable, os.path.abspath(__file__), "--scrape")
        other = OTHER[name]
        self.config = nodes.folder / f"{name}.yaml"
        self.config.write_text(
            f"local: {OWN[name]}\nremote: {OWN[other]}\n"
            f"identity: {{ certificate: {name}.pem, key: {name}.key, ca: ca.pem }}\n"
            f"keys: {{ handshake: {{ peer: {other}, every: 1 s }} }}\n"
            # While a killed gateway is away its frames take the link `away`, which counts them. The barrier that holds them
            # back by default counts none.
            f"fail_open: true\ntunnel: {{ routes: [{NETWORK[other]}] }}\nmetrics: {METRICS}\n"
        )

    def start(self):
        with open(self.nodes.folder / f"{self.name}.log", "a") as log:
            self.process = self.nodes.start(self.name, self.program, "encrypt", "--config", str(self.config), stderr=log)
        line = self.process.stdout.readline()
        if not line.startswith("ready"):
            raise Unable(f"{self.name} does not start: {self.log()}")

    def log(self):
        return (self.nodes.folder / f"{self.name}.log").read_text()[-2000:]

    def now(self):
        """The counters of this life."""
        if self.process.poll() is not None:
            raise Wrong(f"{self.name} ended by itself: {self.log()}")
        self.scraper.stdin.write("\n")
        self.scraper.stdin.flush()
        values = json.loads(self.scraper.stdout.readline())
        if "error" in values:
            raise Wrong(f"{self.name} does not answer: {values['error']}")
        return values

    def counts(self):
        """The counters of all lives."""
        now = self.now()
        return {name: now.get(name, 0) + self.past.get(name, 0) for name in now.keys() | self.past.keys()}

    def kill(self):
        """Returns the time for which no counters are known, in seconds."""
        began = time.monotonic()
        self.past = self.counts()
        self.process.kill()
        self.process.wait()
        return time.monotonic() - began

    def memory(self):
        """Private memory in KB, and open descriptors."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("RssAnon:")]
        return int(line.split()[1]), len(os.listdir(f"/proc/{self.process.pid}/fd"))


class Bridges:
    """The faults of both links."""

    def __init__(self, nodes, program):
        self.nodes, self.program = nodes, program
        self.seed = 0
        self.running = {}
        # Over all bridges of this minute: link, direction, count.
        self.counts = {}

    def start(self):
        self.seed += 1
        for link, impairment in IMPAIRMENTS.items():
            bridge = self.nodes.start("wan", self.program, "impair")
            profile = {"name": "soak", "seed": self.seed, "a_to_b": impairment, "b_to_a": impairment}
            json.dump({"interfaces": [f"{link}1", f"{link}2"], "frame_bytes": 1600, "profile": profile}, bridge.stdin)
            bridge.stdin.close()
            self.running[link] = bridge
        for bridge in self.running.values():
            if bridge.stdout.readline() != "ready\n":
                raise Unable("cannot open the links for the bridge")

    def end(self):
        for bridge in self.running.values():
            bridge.send_signal(signal.SIGTERM)
        for link, bridge in self.running.items():
            counts = json.loads(bridge.stdout.read())
            bridge.wait()
            for way in ("a_to_b", "b_to_a"):
                sums = self.counts.setdefault((link, way), {})
                for name, value in counts[way].items():
                    sums[name] = sums.get(name, 0) + value
        self.running = {}

    def take(self):
        counts, self.counts = self.counts, {}
        return counts


class Frames:
    """Test frames of one minute, in both directions."""

    def __init__(self, nodes, program, tag, rate, seconds):
        self.nodes, self.program = nodes, program
        self.receivers, self.senders = {}, {}
        for gateway, other in OTHER.items():
            self.receivers[gateway] = self.station(other, tag, generator.receiver(FRAME_BYTES, FLOWS))
        for gateway, other in OTHER.items():
            macs = (ETHER["a0" if gateway == "gw1" else "b0"], ETHER[CLEAR[gateway]])
            send = generator.sender(macs, (SOURCE[gateway], SOURCE[other]), FRAME_BYTES, rate, seconds, FLOWS)
            self.senders[gateway] = self.station(gateway, tag, send)

    def station(self, gateway, tag, role):
        node = STATION[gateway]
        child = self.nodes.start(node, self.program, "frames")
        child.stdin.write(generator.spec(f"{node}0", tag, role, port="packet"))
        child.stdin.close()
        if child.stdout.readline() != "ready\n":
            raise Unable(f"station {node} cannot open its port")
        return child

    def sent(self):
        """Waits until all are sent."""
        reports = {gateway: json.loads(sender.stdout.read()) for gateway, sender in self.senders.items()}
        return {gateway: report["sent"]["frames"] - report["port_stats"]["send_failed"] for gateway, report in reports.items()}

    def received(self):
        """Frames of each gateway's station that arrived at the other; ends the receivers."""
        reports = {}
        for gateway, receiver in self.receivers.items():
            receiver.send_signal(signal.SIGTERM)
            reports[gateway] = json.loads(receiver.stdout.read())
            receiver.wait()
        return reports


def less(one, other):
    """The difference of counters, or of maps of them."""
    if isinstance(one, dict):
        return {key: value - other.get(key, 0) for key, value in one.items()}
    return one - other


def total(counts, name):
    """A counter over all lanes and labels."""
    return sum(int(value) for key, value in counts.items() if key.split("{")[0] == name)


def drops(counts, clear):
    """The packets dropped by reason on the clear or on the cipher side."""
    found = {}
    for key, value in counts.items():
        if key.startswith("cipherbench_dropped_packets_total{"):
            reason = key.split('reason="')[1].split('"')[0]
            if (reason in CLEAR_REASONS) == clear:
                found[reason] = found.get(reason, 0) + int(value)
    return found


class Soak:
    def __init__(self, nodes, options):
        self.nodes, self.options = nodes, options
        self.gateways = {name: Gateway(nodes, options.program, name) for name in GATEWAYS}
        self.bridges = Bridges(nodes, options.program)
        self.sums = {}
        self.readings = {}
        self.before, self.probes = {}, {}

    def places(self):
        """Every counter, at a time when they stand still."""
        nodes, found = self.nodes, {}
        for name in GATEWAYS:
            counts = self.gateways[name].counts()
            found[name] = {
                "in": nodes.packets(name, CLEAR[name], "rx")[0],
                "away": nodes.packets(name, "away", "tx")[0],
                "clear_rx": total(counts, "cipherbench_clear_rx_packets_total"),
                "clear_tx": total(counts, "cipherbench_clear_tx_packets_total"),
                "cipher_rx": total(counts, "cipherbench_cipher_rx_packets_total"),
                "cipher_tx": total(counts, "cipherbench_cipher_tx_packets_total"),
                "clear_drops": drops(counts, True),
                "cipher_drops": drops(counts, False),
                "left": nodes.packets(name, "data", "tx")[0],
                "arrived": nodes.packets(name, "data", "rx")[0],
                "out": nodes.packets(name, CLEAR[name], "tx")[0],
                "bridged": nodes.packets("wan", f"data{name[2]}", "rx")[0],
                "epochs": total(counts, "cipherbench_epochs_established_total"),
                "failed": total(counts, "cipherbench_handshakes_failed_total"),
                **{f"udp {key}": value for key, value in nodes.udp(name).items()},
            }
        return found

    def minute(self, number, killed):
        began = time.monotonic()
        length = self.options.minute
        before = self.before

        def until(share):
            time.sleep(max(0, began + share * length - time.monotonic()))

        self.bridges.start()
        frames = Frames(self.nodes, self.options.program, number, self.options.rate, FRAMES_UNTIL * length - (time.monotonic() - began))
        until(KILL_AT)
        gap = self.gateways[killed].kill()
        time.sleep(AWAY_SECONDS)
        self.gateways[killed].start()
        until(CUT_AT)
        began_cut = time.monotonic()
        self.bridges.end()
        time.sleep(CUT_SECONDS)
        self.bridges.start()
        cut_for = time.monotonic() - began_cut
        sent = frames.sent()
        after = self.quiet()
        received = frames.received()
        self.bridges.end()
        self.before = after
        moved = {name: {key: less(after[name][key], before[name][key]) for key in after[name]} for name in GATEWAYS}
        self.judge(number, killed, gap, cut_for, sent, received, self.bridges.take(), moved)
        until(1)

    def quiet(self):
        """Waits until no count changes, and returns them."""
        until = time.monotonic() + 30
        places = self.places()
        while True:
            time.sleep(0.5)
            again = self.places()
            # Handshakes go on.
            moving = [
                key for name in GATEWAYS for key in again[name] if key not in ("epochs", "failed") and again[name][key] != places[name][key]
            ]
            if not moving:
                return again
            if time.monotonic() > until:
                raise Wrong(f"after 30 s without frames these counts still change: {sorted(set(moving))}")
            places = again

    def judge(self, number, killed, gap, cut_for, sent, received, bridged, moved):
        bound = int(self.options.rate * (gap + QUEUED_SECONDS)) + 1
        figures = {"sent": 0, "copies": 0, "probes": 0, "received": 0, "missed": 0, "away": 0, "no port": 0, "lost": 0, "cut": 0, "in flight": 0}
        dropped = {}
        for near, way in (("gw1", "a_to_b"), ("gw2", "b_to_a")):
            far = OTHER[near]
            here, there, report = moved[near], moved[far], received[near]["received"]
            data = bridged["data", way]
            arrow = f"{near} to {far}"

            def same(what, one, other):
                if one != other:
                    raise Wrong(f"minute {number}, {arrow}: {what}: {one} and {other}")

            def flight(gateway, lost, steps):
                """What was lost in a gateway: nothing at any step, unless it was killed."""
                limit = bound if gateway == killed else 0
                if not 0 <= lost <= limit or (gateway != killed and any(steps)):
                    raise Wrong(f"minute {number}, {arrow}: {lost} frames have no end at {gateway} ({steps}), at most {limit} may")
                figures["in flight"] += lost

            same("frames sent and those at the gateway", sent[near], here["in"])
            clear, cipher = sum(here["clear_drops"].values()), sum(there["cipher_drops"].values())
            # A killed gateway has counted less than it did; the counters of links have not.
            steps = [here["in"] - here["away"] - here["clear_rx"], here["clear_rx"] - clear - here["cipher_tx"], here["cipher_tx"] - here["left"]]
            probes = self.probes[near] if near == killed else 0
            flight(near, here["in"] + probes - here["away"] - clear - here["left"], steps)
            same("packets on the link and at the bridge", here["left"], here["bridged"])
            cut = here["bridged"] - data["received"]
            ends = data["sent"] + data["lost_by_model"] + data["lost_by_queue"] + data["lost_by_tester"] + data["waiting"]
            same("the bridge's frames and their ends", data["received"] + data["duplicated"], ends)
            same("packets behind the bridge and at the gateway", data["sent"], there["arrived"])
            no_port = there["udp NoPorts"] + there["udp InErrors"]
            steps = [there["arrived"] - no_port - there["cipher_rx"], there["cipher_rx"] - cipher - there["clear_tx"], there["clear_tx"] - there["out"]]
            flight(far, there["arrived"] - no_port - cipher - there["out"], steps)
            # A station that a busy machine keeps from reading has no room, and counts.
            missed = received[near]["port_stats"]["receive_dropped"]
            same("frames behind the gateway and at the station", there["out"], report["frames"] + missed)
            for name in ("duplicated", "corrupted", "stale", "too_late"):
                same(f"frames {name}", report[name], 0)

            for reason, count in [*here["clear_drops"].items(), *there["cipher_drops"].items()]:
                dropped[reason] = dropped.get(reason, 0) + count
            figures["sent"] += sent[near]
            figures["copies"] += data["duplicated"]
            figures["probes"] += probes
            figures["received"] += report["frames"]
            figures["missed"] += missed
            figures["away"] += here["away"]
            figures["no port"] += no_port
            figures["lost"] += ends - data["sent"]
            figures["cut"] += cut
        dropped = {reason: count for reason, count in dropped.items() if count}
        ends = sum(figures[name] for name in ("received", "missed", "away", "no port", "lost", "cut", "in flight")) + sum(dropped.values())
        begun = figures["sent"] + figures["copies"] + figures["probes"]
        if begun != ends:
            raise Wrong(f"minute {number}: {begun} frames, copies and probes, and {ends} ends: {figures} {dropped}")

        survivor = OTHER[killed]
        memory, descriptors = self.gateways[survivor].memory()
        self.readings.setdefault(survivor, []).append((memory, descriptors))
        epochs = moved[survivor]["epochs"]
        for name, count in [*figures.items(), *dropped.items(), ("epochs", epochs), ("failed", moved[survivor]["failed"])]:
            self.sums[name] = self.sums.get(name, 0) + count
        reasons = " ".join(f"{reason} {count}" for reason, count in dropped.items())
        print(
            f"{number:3} {killed} killed: {figures['sent']} sent + {figures['copies']} copies + {figures['probes']} probes = {figures['received']} received + {figures['missed']} missed"
            f" + {figures['lost']} lost + {figures['cut']} cut in {cut_for:.1f} s + {figures['away']} no tunnel + {figures['no port']} no port"
            f" + dropped ({reasons}) + {figures['in flight']} in flight (at most {bound} at each place);"
            f" {epochs} epochs, {moved[survivor]['failed']} failed; {survivor} {memory} KB, {descriptors} descriptors",
            flush=True,
        )

    def verdict(self):
        """What is not flat."""
        wrong = []
        for name, readings in self.readings.items():
            # The first is taken while tables still fill.
            base, later = readings[min(1, len(readings) - 1)], readings[1:]
            for memory, descriptors in later:
                if memory > base[0] + GROWTH_KB_MAX or descriptors > base[1] + DESCRIPTORS_MORE_MAX:
                    wrong.append(f"{name} grew from {base[0]} KB and {base[1]} descriptors to {memory} KB and {descriptors}")
                    break
        if not self.sums.get("epochs"):
            wrong.append("no epoch was established")
        return wrong

    def run(self):
        count = max(2, round(self.options.seconds / self.options.minute))
        for gateway in self.gateways.values():
            gateway.start()
        self.before = self.quiet()
        # Each start tests by keepalives whether the kernel sends trains.
        self.probes = {name: places["left"] - places["cipher_tx"] for name, places in self.before.items()}
        for number in range(1, count + 1):
            self.minute(number, "gw2" if number <= count / 2 else "gw1")
        sums = ", ".join(f"{name} {value}" for name, value in self.sums.items())
        print(f"{count} minutes of {self.options.minute} s: {sums}")
        for name, readings in self.readings.items():
            print(f"{name}: {readings[0][0]} to {readings[-1][0]} KB, {readings[0][1]} to {readings[-1][1]} descriptors")
        wrong = self.verdict()
        for line in wrong:
            print(f"FAILED: {line}")
        if not wrong:
            print("passed: every frame has one end; memory and descriptors are flat")
        return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--minute", type=int, default=60, help="seconds of a minute, for a shorter form (from 10)")
    parser.add_argument("--rate", type=int, default=1000, help="frames per second in each direction")
    parser.add_argument("--program", default="target/release/cipherbench")
    parser.add_argument("--scrape", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.scrape:
        scrape()
        return 0
    options.program = os.path.abspath(options.program)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if os.geteuid() != 0 or not all(map(shutil.which, ["ip", "ethtool", "nsenter", "setpriv", "unshare"])):
        print("SKIPPED: the soak needs root, iproute2, ethtool and util-linux", file=sys.stderr)
        return 3
    try:
        with Topology() as nodes:
            subprocess.run([options.program, "keys", "authority", nodes.folder], check=True, capture_output=True)
            for name in GATEWAYS:
                words = ["keys", "certificate", name, "--authority", nodes.folder, "--out", nodes.folder]
                subprocess.run([options.program, *words], check=True, capture_output=True)
            version = subprocess.run([options.program, "--version"], check=True, capture_output=True, text=True).stdout
            print(f"{version.splitlines()[0]}, Linux {os.uname().release}, {options.rate} frames/s in each direction", flush=True)
            return Soak(nodes, options).run()
    except (Unable, Failed) as error:
        print(f"SKIPPED: {error}", file=sys.stderr)
        return 3
    except Wrong as error:
        print(f"FAILED: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
