#!/usr/bin/env python3
"""Evaluates each query of the dashboards in deploy/grafana by a real Prometheus, on real metrics.

    queries.py PROMETHEUS PROGRAM     the folder of prometheus and promtool, and cipherbench

Two gateways establish a tunnel, in namespaces of a network without other interfaces, and Prometheus scrapes both. The
runs in python/tests/fixtures are exported as OpenMetrics and become blocks of its storage. A query that Prometheus
refuses is an error, and so is a variable without values, or a panel without data that these metrics must fill.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ISOLATED = ["unshare", "--mount", "--net", "sh", "-c", 'mount -t tmpfs none /run && ip link set lo up && exec "$@"', "sh"]
RUNS = ("frames", "transfers")
ADDRESS = "192.0.2.1:9090"
# Panels that stay empty while nothing fails, or that need trials which the runs do not have.
EMPTY = {
    "encryptor": {
        "Dropped packets, by reason",
        "Dropped packets in this time",
        "Failures of the control channel",
        "Ended IKE SAs, by reason",
        "Ignored datagrams of IKE, by reason",
    },
    "results": {
        "Throughput of HTTP objects",
        "HTTP transactions",
        "Operations of crypto devices",
        "Median latency",
        "99th percentile of latency",
        "Recovery from an overload",
        "Longest burst without loss",
    },
}
HOSTS = """
ip netns add left; ip netns add right
ip -n left link set lo up; ip -n right link set lo up
ip link add wan netns left type veth peer name wan netns right
for own in 1 3; do ip -n left address add 192.0.2.$own/24 dev wan; done
for own in 2 4; do ip -n right address add 192.0.2.$own/24 dev wan; done
ip -n left link set wan up; ip -n right link set wan up
"""
GATEWAY = """\
local: 192.0.2.{own}
remote: 192.0.2.{other}
identity: {{ certificate: gw{own}.pem, key: gw{own}.key, ca: authority/ca.pem }}
keys: {{ handshake: {{ peer: gw{other} }} }}
tunnel: {{ address: 10.9.0.{own}/30, routes: [10.{other}.0.0/24] }}
metrics: 192.0.2.{own}:9101
"""
IKE_GATEWAY = """\
local: 192.0.2.{own}
remote: 192.0.2.{other}
keys: {{ ike: {{ identity: gw{own}, peer: gw{other}, psk: shared.psk, every: 2 s }} }}
tunnel: {{ name: cipher{own}, address: 10.9.1.{own}/29, routes: [10.{other}.0.0/24] }}
metrics: 192.0.2.{own}:9101
"""
SCRAPES = """\
global: { scrape_interval: 1s }
scrape_configs:
  - job_name: gateways
    static_configs: [{ targets: ["192.0.2.1:9101", "192.0.2.2:9101", "192.0.2.3:9101", "192.0.2.4:9101"] }]
"""
# Prints an answer, also that of a refused query.
FETCH = """
import sys, urllib.error, urllib.request
try:
    answer = urllib.request.urlopen(sys.argv[1], timeout=20)
except urllib.error.HTTPError as error:
    answer = error
print(answer.read().decode())
"""


def ask(path, **arguments):
    """The data of an answer of Prometheus, or the text of its error."""
    url = f"http://{ADDRESS}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
    # It is in the namespace of the left gateway.
    done = subprocess.run(
        ["ip", "netns", "exec", "left", sys.executable, "-c", FETCH, url], capture_output=True, text=True, check=False
    )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        return None, done.stderr.strip().splitlines()[-1:] or ["no answer"]
    return answer.get("data"), answer.get("error")


def are_scraped():
    """Whether Prometheus has metrics of all gateways, of which one has replaced an SA."""
    gateways, _ = ask("query", query="cipherbench_info")
    rekeyed, _ = ask("query", query="cipherbench_ike_rekeys_total > 0")
    return bool(gateways and len(gateways["result"]) == 4 and rekeyed and rekeyed["result"])


def wait(what, state, log):
    """Waits until a state is reached."""
    for _ in range(300):
        if state():
            return
        time.sleep(0.2)
    sys.exit(f"dashboards: {what} was not reached within a minute:\n{log.read_text()}")


def times(folder):
    """Writes the runs as OpenMetrics; returns the first and the last time in them."""
    found = []
    for name in RUNS:
        found += [float(it) for it in re.findall(r"} \S+ (\S+)$", (folder / f"{name}.txt").read_text(), re.MULTILINE)]
    return min(found), max(found)


def evaluate(name, start, end, step):
    """Evaluates the queries of a dashboard. Returns its mistakes."""
    board = json.loads((ROOT / f"deploy/grafana/{name}.json").read_text())
    mistakes, filled = [], 0
    for variable in board["templating"]["list"]:
        if variable["type"] != "query":
            continue
        metric, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"]).groups()
        matching = {"match[]": filled_in(metric, step), "start": start, "end": end}
        data, error = ask(f"label/{label}/values", **matching)
        if error or not data:
            mistakes.append(f"variable {variable['name']}: {error or 'no values'}")
    panels = [panel for panel in board["panels"] if panel.get("targets")]
    for panel in panels:
        has_data = False
        for target in panel["targets"]:
            data, error = ask("query_range", query=filled_in(target["expr"], step), start=start, end=end, step=step)
            if error:
                mistakes.append(f"{panel['title']}: {target['expr']}: {error}")
            has_data |= bool(data and data["result"])
        filled += has_data
        if not has_data and panel["title"] not in EMPTY[name]:
            mistakes.append(f"{panel['title']}: no data")
    queries = sum(len(panel["targets"]) for panel in panels)
    print(f"{name}: Prometheus evaluates {queries} queries; {filled} of {len(panels)} panels have data")
    return [f"{name}: {mistake}" for mistake in mistakes]


def filled_in(query, step):
    """A query with the values that Grafana gives its variables, if all are selected."""
    query = query.replace("$__rate_interval", f"{4 * step}s").replace("$__range", f"{60 * step}s")
    return re.sub(r"\$\w+", ".*", query)


def main():
    programs, program = (pathlib.Path(it).resolve() for it in sys.argv[1:3])
    if len(sys.argv) == 3:
        os.execvp(ISOLATED[0], [*ISOLATED, sys.executable, __file__, *map(str, (programs, program)), "inside"])
    started = []
    with tempfile.TemporaryDirectory(prefix="dashboards-") as folder:
        folder = pathlib.Path(folder)

        def run(*words, **more):
            return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True, **more).stdout

        def start(log, *words):
            output = (folder / log).open("w")
            started.append(subprocess.Popen(words, cwd=folder, stdout=output, stderr=subprocess.STDOUT))

        try:
            run("sh", "-ec", HOSTS)
            run(program, "keys", "authority", "authority")
            for own, other in ((1, 2), (2, 1)):
                run(program, "keys", "certificate", "--authority", "authority", f"gw{own}")
                (folder / f"gw{own}.yaml").write_text(GATEWAY.format(own=own, other=other))
            run(program, "keys", "ppk", "shared.psk")
            for own, other in ((3, 4), (4, 3)):
                (folder / f"gw{own}.yaml").write_text(IKE_GATEWAY.format(own=own, other=other))
            for name in RUNS:
                text = run(program, "export", ROOT / f"python/tests/fixtures/{name}", "--format", "openmetrics")
                (folder / f"{name}.txt").write_text(text)
                run(programs / "promtool", "tsdb", "create-blocks-from", "openmetrics", f"{name}.txt", "data")
            (folder / "scrapes.yaml").write_text(SCRAPES)
            for host, own in (("left", 1), ("right", 2), ("left", 3), ("right", 4)):
                start(f"gw{own}.log", "ip", "netns", "exec", host, program, "encrypt", "--config", f"gw{own}.yaml")
            start(
                "prometheus.log", "ip", "netns", "exec", "left", programs / "prometheus", "--config.file=scrapes.yaml",
                "--storage.tsdb.path=data", "--storage.tsdb.retention.time=10y", f"--web.listen-address={ADDRESS}",
            )
            wait("a tunnel with keys", lambda: "has keys" in (folder / "gw1.log").read_text(), folder / "gw1.log")
            wait("a scrape of all gateways", are_scraped, folder / "prometheus.log")
            run("ip", "netns", "exec", "left", "ping", "-q", "-i", "0.02", "-c", "400", "10.9.0.2")
            now = time.time()
            mistakes = evaluate("encryptor", now - 30, now, 1)
            first, last = times(folder)
            mistakes += evaluate("results", first - 60, last + 60, 30)
        finally:
            for process in started:
                process.terminate()
            for process in started:
                process.wait(30)
        if mistakes:
            sys.exit("dashboards:\n  " + "\n  ".join(mistakes))


if __name__ == "__main__":
    main()
