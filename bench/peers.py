#!/usr/bin/env python3
"""Our encryptor compared with other tunnels, alternately in the same four namespaces and on the same two cores.

    A 10.1.0.2 -- gw1 192.0.2.1 -- 192.0.2.2 gw2 -- 10.2.0.2 B

TCP by iperf3 with one stream and with four; the highest rate of UDP frames with a loss below 0.1 %, by our own
generator and analyser (with UDP offloads off at the near end of the last link, since frames are counted there); the
idle round trip by ping. All tests run with the offloads of the six link ends on, and again with all of them off. A
peer whose program is missing is skipped with a note. `plain` is forwarding without a tunnel, `ours-aggregate` and
`ours-poll` are our encryptor with that option.

Needs root, iperf3, iproute2, ethtool and ping, and the peers to compare:
wireguard-tools with wireguard-go, boringtun-cli or gotatun-cli, openvpn, strongswan with kernel-libipsec. Programs
are found by WIREGUARD_GO, BORINGTUN and GOTATUN, in PATH, or where `make peers` installs them. Changes only namespaces
that it creates.

    make bench-peers             # or: bench/peers.py [PEER …] [--rounds N] [--seconds N] [--tests tcp1,tcp4,udp64,udp512,ping]
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import time

import generator
from nodes import Nodes

PROGRAM = os.path.abspath("target/release/cipherbench")
NODES = ["a", "gw1", "gw2", "b"]
INNER_MTU = 1400
# Addresses of the generator's frames, which no host has, so that none answers.
SOURCE, TARGET = "198.18.0.1", "198.19.0.1"
LOSS_MAX = 0.001
SEARCH_STEPS = 6
# Where scripts/peers.sh installs what it builds.
BUILT = os.path.join(os.environ.get("PEERS") or os.path.expanduser("~/.cache/cipherbench-peers"), "bin")


def mac(node, side):
    return f"02:00:00:00:0{NODES.index(node)}:0{side}"


# Each link's two ends: node, interface, address, MAC, MTU.
LINKS = [
    [("a", "a0", "10.1.0.2", mac("a", 0), INNER_MTU), ("gw1", "a1", "10.1.0.1", mac("gw1", 0), INNER_MTU)],
    [("gw1", "w0", "192.0.2.1", mac("gw1", 1), 1500), ("gw2", "w1", "192.0.2.2", mac("gw2", 1), 1500)],
    [("gw2", "b1", "10.2.0.1", mac("gw2", 0), INNER_MTU), ("b", "b0", "10.2.0.2", mac("b", 0), INNER_MTU)],
]
# The networks behind each gateway.
BEHIND = {"gw1": ["10.1.0.0/24", "198.18.0.0/16"], "gw2": ["10.2.0.0/24", "198.19.0.0/16"]}
OTHER = {"gw1": "gw2", "gw2": "gw1"}
OWN = {"gw1": "192.0.2.1", "gw2": "192.0.2.2"}


class Missing(Exception):
    """A peer's program is missing."""


class Topology(Nodes):
    """Four network namespaces with the links between them."""

    def __init__(self, offloads, congestion):
        super().__init__("bench-peers-")
        self.offloads = offloads
        self.congestion = congestion
        self.daemons = []

    def build(self):
        for node in NODES:
            self.hold(node)
        for one, other in LINKS:
            netns = str(self.holders[other[0]].pid)
            self.run(one[0], "ip", "link", "add", one[1], "type", "veth", "peer", "name", other[1], "netns", netns)
            for node, link, address, ether, mtu in (one, other):
                self.run(node, "ip", "link", "set", link, "address", ether, "mtu", str(mtu), "up")
                self.run(node, "ip", "address", "add", f"{address}/24", "dev", link)
                self.run(node, "sysctl", "-qw", f"net.ipv6.conf.{link}.disable_ipv6=1")
                if not self.offloads:
                    off = [word for name in ("tso", "gso", "gro", "tx-udp-segmentation") for word in (name, "off")]
                    self.run(node, "ethtool", "-K", link, *off)
        for gateway in OTHER:
            self.run(gateway, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for node, gateway in (("a", "10.1.0.1"), ("b", "10.2.0.1")):
            self.run(node, "ip", "route", "add", "default", "via", gateway)
        # The generator's frames go to the stations' links, and no further.
        for gateway, network, address, link, ether in (
            ("gw1", "198.18.0.0/16", SOURCE, "a1", mac("a", 0)),
            ("gw2", "198.19.0.0/16", TARGET, "b1", mac("b", 0)),
        ):
            self.run(gateway, "ip", "route", "add", network, "dev", link)
            self.run(gateway, "ip", "neighbour", "add", address, "lladdr", ether, "dev", link)

    def __exit__(self, *_):
        for daemon in self.daemons:
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(3)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        super().__exit__()

    def daemon(self, node, *words, env=None):
        """Starts a peer; its output goes to a file."""
        log = open(self.folder / f"{node}.log", "a")
        environment = {**os.environ, **(env or {})}
        self.daemons.append(
            subprocess.Popen(self.inside(node, *words), stdout=log, stderr=log, env=environment)
        )

    def wait_for_tunnel(self):
        for _ in range(60):
            ping = self.inside("a", "ping", "-c1", "-W1", "10.2.0.2")
            if subprocess.run(ping, capture_output=True).returncode == 0:
                return
            time.sleep(0.2)
        logs = "".join(path.read_text()[-2000:] for path in self.folder.glob("*.log"))
        raise RuntimeError(f"no ping through the tunnel\n{logs}")


def program(name, variable=None):
    path = os.environ.get(variable or "") or shutil.which(name) or shutil.which(name, path=BUILT)
    if not path or not os.path.exists(path):
        raise Missing(f"{name} is not installed: make peers")
    return path


def route_into(lab, links):
    for gateway, link in links.items():
        for network in BEHIND[OTHER[gateway]]:
            lab.run(gateway, "ip", "route", "add", network, "dev", link)


def up_plain(lab):
    for gateway, other in OTHER.items():
        for network in BEHIND[other]:
            lab.run(gateway, "ip", "route", "add", network, "via", OWN[other])


def up_ours(lab, options=()):
    keys = {gateway: lab.folder / f"{gateway}.key" for gateway in OTHER}
    subprocess.run([PROGRAM, "keys", "static", *map(str, keys.values())], check=True, capture_output=True)
    for gateway, other in OTHER.items():
        config = lab.folder / f"{gateway}.yaml"
        lines = [
            f"local: {OWN[gateway]}",
            f"remote: {OWN[other]}",
            f"keys: {{ static: {keys[gateway]} }}",
            f"tunnel: {{ name: cb0, mtu: {INNER_MTU} B, routes: [{', '.join(BEHIND[other])}] }}",
            *options,
        ]
        config.write_text("\n".join(lines) + "\n")
        lab.daemon(gateway, PROGRAM, "encrypt", "--config", str(config))


def up_wireguard(lab, argv):
    program("wg")
    key = {}
    for gateway in OTHER:
        lab.run(gateway, "mkdir", "-p", "/run/wireguard")
        lab.daemon(gateway, *argv, env={"WG_PROCESS_FOREGROUND": "1"})
        private = subprocess.run(["wg", "genkey"], check=True, capture_output=True, text=True).stdout
        public = subprocess.run(["wg", "pubkey"], check=True, capture_output=True, text=True, input=private).stdout
        key[gateway] = (private.strip(), public.strip())
    for gateway, other in OTHER.items():
        config = lab.folder / f"{gateway}.conf"
        config.write_text(
            f"[Interface]\nPrivateKey={key[gateway][0]}\nListenPort=51820\n"
            f"[Peer]\nPublicKey={key[other][1]}\nEndpoint={OWN[other]}:51820\nAllowedIPs=0.0.0.0/0\n"
        )
        for attempt in range(50):
            try:
                lab.run(gateway, "wg", "setconf", "wg0", str(config))
                break
            except RuntimeError:
                if attempt == 49:
                    raise
                time.sleep(0.1)
        # As for ours: the default queue of 500 would lose small frames.
        lab.run(gateway, "ip", "link", "set", "wg0", "mtu", str(INNER_MTU), "txqueuelen", "5000", "up")
    route_into(lab, {gateway: "wg0" for gateway in OTHER})


def up_wireguard_go(lab):
    up_wireguard(lab, [program("wireguard-go", "WIREGUARD_GO"), "-f", "wg0"])


def up_boringtun(lab):
    up_wireguard(lab, [program("boringtun-cli", "BORINGTUN"), "-f", "--disable-drop-privileges", "-t", "1", "wg0"])


def up_gotatun(lab):
    up_wireguard(lab, [program("gotatun", "GOTATUN"), "-f", "--disable-drop-privileges", "wg0"])


def up_openvpn(lab):
    openvpn = program("openvpn")
    prints = {}
    for gateway in OTHER:
        files = [str(lab.folder / f"{gateway}.{kind}") for kind in ("key", "crt")]
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "9"]
        subprocess.run(
            ["openssl", "req", "-x509", *curve, "-keyout", files[0], "-out", files[1], "-subj", f"/CN={gateway}"],
            check=True, capture_output=True,
        )
        output = subprocess.run(
            ["openssl", "x509", "-in", files[1], "-noout", "-fingerprint", "-sha256"],
            check=True, capture_output=True, text=True,
        ).stdout
        prints[gateway] = output.strip().split("=")[1]
    inside = {"gw1": "10.9.0.1", "gw2": "10.9.0.2"}
    for gateway, role in (("gw1", "--tls-client"), ("gw2", "--tls-server")):
        other = OTHER[gateway]
        lab.daemon(
            gateway, openvpn, "--dev", "tun0", "--dev-type", "tun", "--proto", "udp", "--port", "1194",
            "--data-ciphers", "AES-256-GCM", "--disable-dco", "--tun-mtu", str(INNER_MTU), "--mssfix", "0",
            "--txqueuelen", "5000", "--sndbuf", "1048576", "--rcvbuf", "1048576", "--fast-io", "--dh", "none",
            "--verb", "1", role, "--remote", OWN[other], "--ifconfig", inside[gateway], inside[other],
            "--cert", str(lab.folder / f"{gateway}.crt"), "--key", str(lab.folder / f"{gateway}.key"),
            "--peer-fingerprint", prints[other],
            *[word for network in BEHIND[other] for word in
              ("--route", network.split("/")[0], "255.255.0.0" if network.endswith("16") else "255.255.255.0")],
        )


def up_strongswan(lab):
    charon = "/usr/lib/ipsec/charon"
    if not os.path.exists(charon) or not shutil.which("swanctl"):
        raise Missing("strongswan (charon, swanctl) is not installed")
    plugins = "random nonce openssl kdf pubkey pem x509 kernel-libipsec kernel-netlink socket-default vici"
    environment = {}
    # A gateway needs an address in each network behind it: kernel-libipsec uses it as the source of its route.
    for gateway, link, address in (("gw1", "a1", "198.18.255.1/16"), ("gw2", "b1", "198.19.255.1/16")):
        lab.run(gateway, "ip", "address", "add", address, "dev", link, "noprefixroute")
    for gateway in OTHER:
        config = lab.folder / f"{gateway}.strongswan.conf"
        config.write_text(f"charon {{ load = {plugins}\n install_virtual_ip = no\n }}\n")
        environment[gateway] = {**os.environ, "STRONGSWAN_CONF": str(config)}
        lab.daemon(gateway, charon, env=environment[gateway])
    for gateway in ("gw2", "gw1"):
        other = OTHER[gateway]
        # kernel-libipsec supports one pair of networks per SA.
        children = "\n".join(
            f"c{number} {{ local_ts = {own}\n remote_ts = {far}\n esp_proposals = aes256gcm16 }}"
            for number, (own, far) in enumerate(zip(BEHIND[gateway], BEHIND[other]))
        )
        config = lab.folder / f"{gateway}.swanctl.conf"
        config.write_text(
            f"connections {{ t {{ version = 2\n local_addrs = {OWN[gateway]}\n remote_addrs = {OWN[other]}\n"
            " proposals = aes256gcm16-prfsha256-ecp256\n"
            f" local {{ auth = psk\n id = {gateway} }}\n remote {{ auth = psk\n id = {other} }}\n"
            f" children {{ {children} }} }} }}\n"
            "secrets { ike-1 { id-1 = gw1\n id-2 = gw2\n secret = bench-only } }\n"
        )
        for attempt in range(50):
            try:
                lab.run(gateway, "swanctl", "--load-all", "--file", str(config), env=environment[gateway])
                break
            except RuntimeError:
                if attempt == 49:
                    raise
                time.sleep(0.1)
    for number in range(len(BEHIND["gw1"])):
        lab.run("gw1", "swanctl", "--initiate", "--child", f"c{number}", env=environment["gw1"])
    for gateway in OTHER:
        lab.run(gateway, "ip", "link", "set", "ipsec0", "mtu", str(INNER_MTU), "txqueuelen", "5000")


PEERS = {
    "plain": up_plain,
    "ours": up_ours,
    "ours-aggregate": lambda lab: up_ours(lab, ["aggregate: true"]),
    "ours-poll": lambda lab: up_ours(lab, ["busy_poll: true"]),
    "wireguard-go": up_wireguard_go,
    "gotatun": up_gotatun,
    "boringtun": up_boringtun,
    "openvpn": up_openvpn,
    "strongswan": up_strongswan,
}


def tcp(lab, streams, seconds):
    """Received payload in Gbit/s."""
    server = lab.start("b", "iperf3", "--server", "--one-off", "--forceflush")
    while "listening" not in server.stdout.readline():
        pass
    words = ["iperf3", "--client", "10.2.0.2", "--parallel", str(streams), "--omit", "1", "--json"]
    words += ["--congestion", lab.congestion]
    result = json.loads(lab.run("a", *words, "--time", str(seconds)))
    server.wait()
    return result["end"]["sum_received"]["bits_per_second"] / 1e9


def frames(lab, frame_bytes, rate, seconds, tag):
    """Frames sent, duration in seconds, and frames received intact, in a trial at this rate."""
    send = generator.sender((mac("a", 0), mac("gw1", 0)), (SOURCE, TARGET), frame_bytes, rate, seconds)
    receiver = lab.start("b", PROGRAM, "frames")
    receiver.stdin.write(generator.spec("b0", tag, generator.receiver(frame_bytes)))
    receiver.stdin.close()
    if receiver.stdout.readline() != "ready\n":
        raise RuntimeError("the receiver is not ready")
    output = lab.run("a", PROGRAM, "frames", input=generator.spec("a0", tag, send))
    sent = json.loads(output.splitlines()[-1])["sent"]
    # Frames in transit arrive within the queues' delay.
    time.sleep(0.3)
    receiver.send_signal(signal.SIGTERM)
    seen = json.loads(receiver.stdout.readlines()[-1])["received"]
    receiver.wait()
    if seen["corrupted"]:
        raise RuntimeError(f"damaged frames: {seen}")
    return sent["frames"], sent["elapsed_ns"] / 1e9, seen["frames"]


TAG = iter(range(1, 1 << 30))


def udp(lab, frame_bytes, seconds):
    """The highest rate with a loss below 0.1 %, in frames/s, by bisection."""
    # The analyser counts frames, so the kernel must segment every peer's UDP super-packets before B.
    lab.run("gw2", "ethtool", "-K", "b1", "tx-udp-segmentation", "off", "gso", "off")
    sent, took, received = frames(lab, frame_bytes, None, seconds, next(TAG))
    if sent == 0:
        raise RuntimeError("nothing was sent")
    low, high = 0.0, 1.2 * received / took
    for step in range(SEARCH_STEPS):
        rate = high if step == 0 else (low + high) / 2
        sent, took, received = frames(lab, frame_bytes, rate, seconds, next(TAG))
        # A sender that is delayed on the shared cores sends all frames late, so at another rate.
        if sent / took >= 0.98 * rate and sent - received <= LOSS_MAX * sent:
            low = rate
            if step == 0:
                high = 1.5 * rate
        else:
            high = rate
    return low


def ping(lab):
    """Median round trip of an idle link, in µs."""
    output = lab.run("a", "ping", "-i", "0.002", "-c", "1000", "10.2.0.2")
    times = [float(line.split("time=")[1].split()[0]) for line in output.splitlines() if "time=" in line]
    return statistics.median(times) * 1000


def measure(lab, test, seconds):
    if test.startswith("tcp"):
        return tcp(lab, int(test[3:]), seconds)
    if test.startswith("udp"):
        return udp(lab, int(test[3:]), 1) / 1e3
    return ping(lab)


def versions():
    """Prints the version of each program."""
    programs = {
        "ours": (PROGRAM,),
        "wireguard-go": ("wireguard-go", "WIREGUARD_GO"),
        "gotatun": ("gotatun", "GOTATUN"),
        "boringtun": ("boringtun-cli", "BORINGTUN"),
        "openvpn": ("openvpn",),
        "strongswan": ("swanctl",),
        "iperf3": ("iperf3",),
    }
    for name, words in programs.items():
        try:
            done = subprocess.run([program(*words), "--version"], capture_output=True, text=True)
            print(f"{name}: {(done.stdout + done.stderr).strip().splitlines()[0]}")
        except (OSError, IndexError, Missing):
            print(f"{name}: not installed")


UNIT = {"tcp": "Gbit/s", "udp": "k frames/s", "pin": "us"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("peers", nargs="*", default=list(PEERS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--tests", default="tcp1,tcp4,udp64,udp512,ping")
    parser.add_argument("--offloads", default="on,off")
    parser.add_argument("--congestion", default="cubic", help="TCP's congestion control, by default Linux's")
    options = parser.parse_args()
    tests = options.tests.split(",")
    versions()
    for setting in options.offloads.split(","):
        figures = {}
        for round_number in range(1, options.rounds + 1):
            for peer in options.peers:
                try:
                    with Topology(setting == "on", options.congestion) as lab:
                        PEERS[peer](lab)
                        lab.wait_for_tunnel()
                        for test in tests:
                            value = measure(lab, test, options.seconds)
                            figures.setdefault((peer, test), []).append(value)
                            print(f"offloads {setting}, round {round_number}: {peer} {test} {value:.2f}", flush=True)
                except Missing as missing:
                    print(f"skipped {peer}: {missing}", flush=True)
                except (RuntimeError, OSError) as error:
                    print(f"FAILED {peer}: {error}", flush=True)
        print(f"\noffloads {setting}: median of {options.rounds} rounds (least, most)")
        for test in tests:
            print(f"  {test}, {UNIT[test[:3]]}")
            for peer in options.peers:
                values = figures.get((peer, test))
                if values:
                    print(f"    {peer:<16}{statistics.median(values):9.2f}  ({min(values):.2f}, {max(values):.2f})")
        print(flush=True)


if __name__ == "__main__":
    main()
