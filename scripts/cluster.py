#!/usr/bin/env python3
"""Applies deploy/kubernetes to a control plane on loopback, and checks what becomes of it.

    scripts/cluster.py TOOLS PROGRAM     TOOLS: the folder with the programs (scripts/cluster.sh makes them)
                                         PROGRAM: cipherbench, which makes the keys

Nothing plays a part here but the nodes, which are entries in the API without a machine: pods are made, admitted and placed
by Kubernetes itself, and run nowhere.
"""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NODES = ["node-1", "node-2", "node-3", "node-4", "node-5"]
LABS = NODES[:2]
# The image, and that of the next version: no pod runs, so that nobody fetches them.
IMAGE, NEXT = (f"registry.example.com/cipherbench@sha256:{digit * 64}" for digit in "12")
# Generous, on two loaded cores: each wait is for a state.
WAIT_S = 120


def free_ports(count):
    """Ports of loopback that nothing listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Cluster:
    """The control plane's programs, which end with it."""

    def __init__(self, tools, folder):
        self.tools, self.folder = Path(tools), Path(folder)
        self.running = []

    def begin(self):
        client, peer, port, controllers, scheduler = free_ports(5)
        etcd_url, token = f"http://127.0.0.1:{client}", secrets.token_hex(16)
        key = self.folder / "accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        (self.folder / "tokens.csv").write_text(f'{token},admin,admin,"system:masters"\n')
        (self.folder / "config").write_text(json.dumps({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "here", "cluster": {
                "server": f"https://127.0.0.1:{port}",
                "certificate-authority": str(self.folder / "certs/apiserver.crt"),
            }}],
            "users": [{"name": "admin", "user": {"token": token}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "admin"}}],
            "current-context": "here",
        }))
        self.start(
            "etcd", f"--data-dir={self.folder}/etcd", f"--listen-client-urls={etcd_url}",
            f"--advertise-client-urls={etcd_url}", f"--listen-peer-urls=http://127.0.0.1:{peer}",
        )
        self.start(
            "kube-apiserver", f"--etcd-servers={etcd_url}", f"--secure-port={port}",
            "--bind-address=127.0.0.1", f"--cert-dir={self.folder}/certs", "--authorization-mode=RBAC",
            f"--token-auth-file={self.folder}/tokens.csv", "--allow-privileged=true",
            "--service-cluster-ip-range=10.96.0.0/16", "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
        )
        self.until("the API server is ready", lambda: self.kubectl("get", "--raw", "/readyz", check=False) == "ok")
        self.start(
            "kube-controller-manager", f"--kubeconfig={self.folder}/config", f"--secure-port={controllers}",
            "--bind-address=127.0.0.1", f"--cert-dir={self.folder}/certs", "--leader-elect=false",
            f"--service-account-private-key-file={key}", f"--root-ca-file={self.folder}/certs/apiserver.crt",
            # No machine says that its node lives.
            "--node-monitor-grace-period=1h",
        )
        self.start(
            "kube-scheduler", f"--kubeconfig={self.folder}/config", f"--secure-port={scheduler}",
            "--bind-address=127.0.0.1", f"--cert-dir={self.folder}/certs", "--leader-elect=false",
        )

    def start(self, program, *arguments):
        with open(self.folder / f"{program}.log", "wb") as log:
            process = subprocess.Popen([self.tools / program, *arguments], stdout=log, stderr=log, cwd=self.folder)
        self.running.append((program, process))

    def stop(self):
        for _, process in reversed(self.running):
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def run(self, *arguments, text=None):
        """How kubectl ended, with what it printed."""
        command = [self.tools / "kubectl", f"--kubeconfig={self.folder}/config", *arguments]
        # It keeps what it discovers below the home, and reads preferences there.
        environment = {**os.environ, "HOME": str(self.folder)}
        try:
            return subprocess.run(command, input=text, capture_output=True, text=True, env=environment, timeout=WAIT_S)
        except subprocess.TimeoutExpired:
            raise SystemExit(f"cluster: kubectl {' '.join(arguments)} took longer than {WAIT_S} s") from None

    def kubectl(self, *arguments, text=None, check=True, warnings=False):
        """What kubectl prints. A warning of the API server is an error, unless there may be some."""
        strictly = [] if warnings else ["--warnings-as-errors"]
        done = self.run(*strictly, *arguments, text=text)
        if check and done.returncode != 0:
            raise SystemExit(f"cluster: kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def items(self, kind, *arguments):
        return json.loads(self.kubectl("get", kind, "--output=json", *arguments))["items"]

    def until(self, what, is_so):
        """Waits for a state, at most WAIT_S."""
        end = time.monotonic() + WAIT_S
        while not is_so():
            for program, process in self.running:
                if process.poll() is not None:
                    log = (self.folder / f"{program}.log").read_text(errors="replace")
                    raise SystemExit(f"cluster: {program} ended:\n{log[-2000:]}")
            if time.monotonic() > end:
                raise SystemExit(f"cluster: after {WAIT_S} s it is not so that {what}")
            time.sleep(0.2)

    def add_node(self, name, labels):
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, **labels,
        }}}
        self.kubectl("create", "--filename=-", text=json.dumps(node))
        has = {"cpu": "4", "memory": "16Gi", "pods": "110"}
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        ready = {"type": "Ready", "status": "True", "reason": "Said", "lastHeartbeatTime": now, "lastTransitionTime": now}
        status = {"status": {"capacity": has, "allocatable": has, "conditions": [ready]}}
        self.kubectl("patch", "node", name, "--subresource=status", "--type=merge", f"--patch={json.dumps(status)}")

    def add_volume(self, name, size):
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
            "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": f"/{name}"},
        }}
        self.kubectl("create", "--filename=-", text=json.dumps(volume))

    def may(self, account, verb, what):
        """Whether an account of the namespace may do it, by the API server's own answer."""
        who = f"--as=system:serviceaccount:cipherbench:{account}"
        done = self.run("auth", "can-i", verb, *what.split(), who, "--namespace=cipherbench")
        # It ends with 1 for `no`, as where it could not ask.
        answer = done.stdout.split()[:1]
        if answer not in (["yes"], ["no"]):
            raise SystemExit(f"cluster: whether {account} may {verb} {what} is not known: {done.stderr.strip()}")
        return answer == ["yes"]


def expect(what, found, wanted):
    if found != wanted:
        raise SystemExit(f"cluster: {what}: {found}, not {wanted}")
    print(f"  {what}: {found}")


def set_image(manifests, image):
    subprocess.run([manifests / "image.sh", image], check=True)


def check(cluster, manifests):
    refused = cluster.run("apply", f"--kustomize={manifests}")
    if refused.returncode == 0 or f"{manifests.name}/image" not in refused.stderr:
        raise SystemExit(f"cluster: without an image, kubectl does not say so: {refused.stdout}{refused.stderr}")
    set_image(manifests, IMAGE)
    for name in NODES:
        cluster.add_node(name, {"cipherbench/lab": "true"} if name in LABS else {})
    for at in range(3):
        cluster.add_volume(f"data-{at}", "100Gi")
    cluster.add_volume("stations", "10Gi")
    # At first there are nodes for two of the servers.
    for name in NODES[2:]:
        cluster.kubectl("cordon", name)

    made = cluster.kubectl("apply", f"--kustomize={manifests}", "--validate=strict").splitlines()
    expect("objects made", sum(line.endswith(" created") for line in made), len(made))
    kinds = [line.split("/")[0].split(".")[0] for line in made]
    policies = [at for at, kind in enumerate(kinds) if kind == "networkpolicy"]
    workloads = [at for at, kind in enumerate(kinds) if kind in ("daemonset", "deployment", "statefulset")]
    expect("policies are made before the first pod", max(policies) < min(workloads), True)

    def generations():
        listed = json.loads(cluster.kubectl("get", f"--kustomize={manifests}", "--output=json"))["items"]
        return {(one["kind"], one["metadata"]["name"]): one["metadata"].get("generation") for one in listed}

    before = generations()
    cluster.kubectl("apply", f"--kustomize={manifests}", "--validate=strict")
    after = generations()
    expect("specifications changed by applying them again", [key for key in before if before[key] != after[key]], [])

    def pods():
        found = cluster.items("pods", "--namespace=cipherbench")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def placed():
        return {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in pods()}

    def servers():
        return sorted(node for pod, node in placed().items() if pod.startswith("nats-") and node)

    def unschedulable():
        found = [pod for pod in pods() for one in pod["status"].get("conditions", []) if one.get("reason") == "Unschedulable"]
        return sum(pod["metadata"]["name"].startswith("nats-") for pod in found)

    def agents():
        return sorted(node for pod, node in placed().items() if pod.startswith("agent-") and node)

    cluster.until("the third server waits for a node of its own", lambda: unschedulable() == 1)
    expect("nodes of the servers where there are two", servers(), LABS)
    for name in NODES[2:]:
        cluster.kubectl("uncordon", name)

    # Three servers, an agent on each lab's node, what makes the fleet, the agent of the stations, and two stations.
    wanted = 3 + len(LABS) + 1 + 1 + 2
    cluster.until(f"{wanted} pods have a node", lambda: sum(map(bool, placed().values())) >= wanted)
    where = placed()
    expect("pods placed", sum(map(bool, where.values())), len(where))
    expect("pods", len(where), wanted)
    expect("nodes of the NATS servers", len(set(servers())), 3)
    expect("nodes of the agents", agents(), LABS)
    stations = {where["cipherbench-0"], where["cipherbench-1"]}
    expect("the stations are on two nodes that are no labs", len(stations - set(LABS)), 2)

    def images():
        return {box["image"] for pod in pods() for box in pod["spec"]["containers"]}

    expect("images", images(), {IMAGE})
    claims = {claim["status"]["phase"] for claim in cluster.items("pvc", "--namespace=cipherbench")}
    expect("volumes", claims, {"Bound"})

    # An upgrade is applied like the first version.
    set_image(manifests, NEXT)
    before = generations()
    upgraded = cluster.kubectl("apply", f"--kustomize={manifests}", "--validate=strict").splitlines()
    changed = {kind for (kind, name), generation in generations().items() if before[kind, name] != generation}
    expect("objects of the upgrade", len(upgraded), len(made))
    expect("kinds changed by it", sorted(changed), ["DaemonSet", "Deployment", "StatefulSet"])
    # No pod here becomes ready, which a roll-out waits for.
    cluster.kubectl("delete", "pods", "--all", "--namespace=cipherbench", "--grace-period=0", "--force", warnings=True)
    cluster.until("all pods have the next image", lambda: len(pods()) == wanted and images() == {NEXT})
    print(f"  images after the upgrade: {images()}")

    # A node that becomes a lab gets an agent, and one that no longer is one loses it.
    cluster.kubectl("label", "node", NODES[2], "cipherbench/lab=true")
    cluster.kubectl("label", "node", NODES[0], "cipherbench/lab-")

    cluster.until("agents follow the label", lambda: agents() == NODES[1:3])
    print(f"  nodes of the agents after the labels moved: {NODES[1:3]}")

    for account, verb, what, wanted in [
        ("stations", "get", "pods/cipherbench-0", True),
        ("stations", "create", "pods/cipherbench-1 --subresource=exec", True),
        ("stations", "create", "pods/nats-0 --subresource=exec", False),
        ("stations", "delete", "pods/cipherbench-0", False),
        ("stations", "get", "secrets", False),
        ("default", "create", "pods/cipherbench-0 --subresource=exec", False),
    ]:
        found = cluster.may(account, verb, what)
        expect(f"{account} may {verb} {what}", found, wanted)

    cluster.kubectl("delete", f"--kustomize={manifests}", "--wait=false")
    cluster.until("all pods are being removed", lambda: not placed())
    print(f"Kubernetes took, placed, upgraded and removed the {len(made)} manifests of deploy/kubernetes")


def main():
    # A caller with a time limit ends the programs too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("cluster: ended by SIGTERM"))
    folder = tempfile.mkdtemp(prefix="cipherbench-cluster-")
    cluster = Cluster(sys.argv[1], folder)
    try:
        # With keys and images of its own.
        manifests = Path(folder) / "kubernetes"
        ours = shutil.ignore_patterns("keys", "keys.new", "image")
        shutil.copytree(Path(__file__).resolve().parent.parent / "deploy/kubernetes", manifests, ignore=ours)
        if subprocess.run([manifests / "keys.sh", sys.argv[2]], stdout=subprocess.DEVNULL).returncode != 0:
            sys.exit("cluster: there are no keys to apply")
        cluster.begin()
        print(json.loads(cluster.kubectl("version", "--output=json"))["serverVersion"]["gitVersion"])
        check(cluster, manifests)
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
