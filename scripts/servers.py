#!/usr/bin/env python3
"""Runs the servers of deploy/kubernetes with the keys of keys.sh, and a job through them.

    scripts/servers.py PROGRAM     PROGRAM: cipherbench; needs nats-server, unshare and the yaml of Python

The three servers, the command that makes the fleet and an agent are those of the manifests, with their arguments and
environment, in namespaces of their own, where names of pods are addresses of loopback and paths of volumes are folders. A
server is killed and comes back while jobs run. Whoever has no key, or a key of another role, gets nothing.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent.parent
SERVERS = ["nats-0", "nats-1", "nats-2"]
WAIT_S = 120
CAMPAIGN = """campaign: pods
repeats: 1
calibrate: false
duts: [direct]
trials: [load: { frame: 512 B, rate: 1000 frames/s, duration: 100 ms }]
"""


def until(what, is_so, log):
    end = time.monotonic() + WAIT_S
    while not is_so():
        if time.monotonic() > end:
            sys.exit(f"servers: after {WAIT_S} s it is not so that {what}:\n{log()}")
        time.sleep(0.2)


def container(file, kind, name):
    """The first container of an object, and the values of its variables."""
    for one in yaml.safe_load_all((HERE / "deploy/kubernetes" / file).read_text()):
        if (one["kind"], one["metadata"]["name"]) == (kind, name):
            box = one["spec"]["template"]["spec"]["containers"][0]
            return box, {entry["name"]: entry["value"] for entry in box.get("env", []) if "value" in entry}
    sys.exit(f"servers: {file} has no {kind} {name}")


class Fleet:
    """The processes of the manifests' pods."""

    def __init__(self, program, folder):
        self.program, self.folder, self.running = program, folder, {}
        self.keys = folder / "kubernetes/keys"

    def path(self, text):
        """A path of a volume as one of the folder."""
        for volume, own in [("/etc/keys", self.keys), ("/keys", self.keys), ("/etc/nats", self.folder / "nats")]:
            text = text.replace(volume + "/", f"{own}/") if not text.startswith(str(self.folder)) else text
        return text

    def start(self, name, command, **variables):
        log = open(self.folder / f"{name}.log", "ab")
        environment = {**os.environ, **variables}
        self.running[name] = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=self.folder, env=environment, preexec_fn=dies_with_this
        )

    def start_server(self, name):
        """One of the three, at its own address and with its own store."""
        box, given = container("nats.yaml", "StatefulSet", "nats")
        address = f"127.0.0.{1 + SERVERS.index(name)}"
        config = yaml.safe_load((HERE / "deploy/kubernetes/nats.yaml").read_text().split("\n---\n")[0])["data"]["nats.conf"]
        own = self.folder / name / "nats"
        own.mkdir(parents=True, exist_ok=True)
        # The only differences: in a pod each has all addresses and one volume.
        for port, key in [("4222", "port"), ("8222", "http_port"), ("6222", "port")]:
            assert f"{key}: {port}" in config, key
        config = config.replace("store_dir: /data", f"store_dir: {own}/data").replace("port: 4222", f"listen: {address}:4222")
        config = config.replace("http_port: 8222", f"http: {address}:8222").replace("port: 6222", f"listen: {address}:6222")
        (own / "nats.conf").write_text(config)
        if not (own.parent / "keys").exists():
            (own.parent / "keys").symlink_to(self.keys)
        variables = {key: self.path(value.replace("$(POD_NAME)", name)) for key, value in given.items()}
        assert box["command"][:2] == ["nats-server", "--config"], box["command"]
        self.start(name, ["nats-server", "--config", own / "nats.conf"], POD_NAME=name, **variables)

    def start_box(self, name, file, kind, more=()):
        """The command of a container, as it stands there."""
        box, given = container(file, kind, name)
        command = [self.path(word) for word in box["command"]]
        for before, after in more:
            assert any(before in word for word in command), before
            command = [word.replace(before, after) for word in command]
        self.start(name, command, NODE_NAME="node.1", **given)

    def stop(self):
        for process in reversed(self.running.values()):
            process.send_signal(signal.SIGTERM)
        for process in self.running.values():
            try:
                process.wait(timeout=90)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def ask(self, *words, key="submitter", ca=True):
        _, given = container("fleet.yaml", "Deployment", "fleet")
        command = [self.program, "fleet", "--url", given["FLEET"]]
        command += ["--ca", self.keys / "ca.pem"] if ca else []
        command += ["--key", self.keys / f"{key}.nk"] if key else []
        return subprocess.run([*command, *words], capture_output=True, text=True, cwd=self.folder)

    def log(self):
        return "\n".join(f"{name}: {(self.folder / f'{name}.log').read_text()[-1500:]}" for name in self.running)


def is_queued(fleet, jobs):
    """Whether a job more was taken."""
    submitted = fleet.ask("submit", "campaign.yaml", "--lab", "node-1")
    jobs += submitted.stdout.split()
    return submitted.returncode == 0


def dies_with_this():
    """The kernel kills what is started when this script is gone."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def check(fleet):
    for name in SERVERS:
        fleet.start_server(name)
    # Its mark of being ready, and an agent's file that shows that it takes jobs.
    made = fleet.folder / "made"
    fleet.start_box("fleet", "fleet.yaml", "Deployment", [("/tmp/made", str(made))])
    until("the fleet is made", made.exists, fleet.log)
    folder, lab = fleet.folder / "agent", fleet.folder / "lab.yaml"
    fleet.start_box("agent", "agent.yaml", "DaemonSet", [
        ("/var/lib/cipherbench/agent", str(folder)), ("/tmp/lab.yaml", str(lab)), ("kind: namespaces", "kind: memory"),
    ])
    until("the agent's probe holds", (folder / "serving").exists, fleet.log)

    (fleet.folder / "campaign.yaml").write_text(CAMPAIGN)
    jobs = []
    for at in range(3):
        # Right after a server was away, the others may not yet answer.
        until("a job is queued", lambda: is_queued(fleet, jobs), fleet.log)
        # One server after the other is killed, and comes back.
        fleet.running[SERVERS[at]].kill()
        fleet.running[SERVERS[at]].wait()
        done = f"{jobs[-1]} campaign.yaml done in node-1"
        until(f"job {at} is done", lambda: done in fleet.ask("status", key="reader").stdout, fleet.log)
        fleet.start_server(SERVERS[at])
    for words, found in [
        ("no key", fleet.ask("status", key=None)),
        ("no authority", fleet.ask("status", ca=False)),
        ("a reader's key", fleet.ask("submit", "campaign.yaml", key="reader")),
    ]:
        if found.returncode != 3:
            sys.exit(f"servers: with {words}: {found}")
    print("the servers of deploy/kubernetes, with TLS and users, carried three jobs while each of them was killed once")


def main():
    program = str(Path(sys.argv[1]).resolve())
    if os.environ.get("SERVERS_INSIDE") is None:
        # A network and names of its own, and processes that end with it.
        os.environ["SERVERS_INSIDE"] = "yes"
        rooted = [] if os.geteuid() == 0 else ["--map-root-user"]
        own = [*rooted, "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        os.execvp("unshare", ["unshare", *own, sys.executable, __file__, program])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    folder = Path(tempfile.mkdtemp(prefix="cipherbench-servers-"))
    names = "".join(f"127.0.0.{1 + at} {name}.nats\n" for at, name in enumerate(SERVERS))
    (folder / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
    subprocess.run(["mount", "--bind", folder / "hosts", "/etc/hosts"], check=True)
    ours = shutil.ignore_patterns("keys", "keys.new")
    shutil.copytree(HERE / "deploy/kubernetes", folder / "kubernetes", ignore=ours)
    (folder / "bin").mkdir()
    (folder / "bin/cipherbench").symlink_to(program)
    tools = Path.home() / ".cache/cipherbench-tools/bin"
    os.environ["PATH"] = f"{folder / 'bin'}:{os.environ['PATH']}:{tools}"
    subprocess.run([folder / "kubernetes/keys.sh"], check=True, stdout=subprocess.DEVNULL)
    fleet = Fleet(program, folder)
    try:
        check(fleet)
    finally:
        fleet.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
