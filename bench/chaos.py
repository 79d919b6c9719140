#!/usr/bin/env python3
"""A fleet of the program itself, while agents and server are killed: is each job done once, with the journal that its
agent wrote?

A server, agents with a lab in memory each, and jobs of one short campaign. SIGKILL hits agents at random moments, every
eleventh time the server. A hard link to each journal is made as soon as the file is there, so that it can be compared with
the archive after its agent has deleted it. The same seed is the same order of victims. Ends with 1 if anything is lost,
doubled or differs.

usage: chaos.py [SEED [AGENTS [JOBS [KILLS]]]]      (or: make chaos)
"""

import collections
import hashlib
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time

from nodes import BOUND

PROGRAM = pathlib.Path("target/release/cipherbench").absolute()
CAMPAIGN = """campaign: chaos
repeats: 3
duts: [straight, cipherbench]
trials:
  - load: { frame: 64 B, duration: 50 ms, rate: 1 kpps }
"""
# One kill of so many is the server's.
SERVERS = 11
# Seconds without any change after which the fleet hangs.
PATIENCE = 180


class Fleet:
    """The processes of a fleet in a folder, which end with this script."""

    def __init__(self, folder, agents):
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.kept = folder / "kept"
        self.kept.mkdir()
        (folder / "campaign.yaml").write_text(CAMPAIGN)
        self.server = self.start_server()
        self.await_server()
        self.agents = [self.agent(number) for number in range(agents)]

    def words(self, *words):
        return [PROGRAM, "fleet", "--url", f"nats://{self.address}", *words]

    def start(self, log, *words):
        with open(self.folder / log, "w") as file:
            return subprocess.Popen([*BOUND, *self.words(*words)], stdout=file, stderr=file)

    def ask(self, *words):
        return subprocess.run(self.words(*words), capture_output=True, text=True)

    def fetch(self, job, into):
        into.mkdir(parents=True)
        return subprocess.run(self.words("fetch", job), capture_output=True, text=True, cwd=into)

    def await_server(self):
        until = time.monotonic() + PATIENCE
        while self.ask("status").returncode != 0:
            if self.server.poll() is not None or time.monotonic() > until:
                sys.exit(f"the server does not answer: {(self.folder / 'server').read_text()[-2000:]}")
            time.sleep(0.1)

    def agent(self, number):
        lab = self.folder / f"lab-{number}.yaml"
        lab.write_text(f"lab: lab-{number}\nkind: memory\n")
        return self.start(f"agent-{number}.log", "agent", "--at-once", "--folder", self.folder / f"agent-{number}", lab)

    def kill(self, number):
        """An agent, or the server; and starts it again."""
        victim = self.server if number is None else self.agents[number]
        victim.kill()
        victim.wait()
        if number is None:
            self.server = self.start_server()
        else:
            self.agents[number] = self.agent(number)

    def keep(self):
        """Links to the journals that are there; how many jobs have had one."""
        for journal in self.folder.glob("agent-*/*/*/runs/*/journal.jsonl"):
            job = journal.parents[2].name
            try:
                os.link(journal, self.kept / f"{job}-{journal.parent.name}")
            except (FileExistsError, FileNotFoundError):
                pass
        return len({name.name.split("-")[0] for name in self.kept.iterdir()})

    def tend(self):
        """Starts the server again if it could not start, as a supervisor does; returns its last words then."""
        if self.server.poll() is None:
            return None
        said = (self.folder / "server").read_text().strip()
        self.server = self.start_server()
        return said

    def start_server(self):
        return self.start("server", "server", "--open", "--listen", self.address, "--store", self.folder / "store")

    def states(self):
        answer = self.ask("status", "--json", "--all")
        return json.loads(answer.stdout)["jobs"] if answer.returncode == 0 else None


def state_of(job):
    return job["progress"]["state"]


def is_final(job):
    return state_of(job) in ("done", "parked", "cancelled")


def faults(fleet, job):
    """What is wrong with a job that has ended."""
    into = fleet.folder / "fetched" / job
    answer = fleet.fetch(job, into)
    if answer.returncode != 0:
        return [f"not fetched: {answer.stderr.strip()}"]
    archived = [found.read_bytes() for found in into.rglob("journal.jsonl")]
    written = [found.read_bytes() for found in fleet.kept.glob(f"{job}-*")]
    if len(archived) != 1 or len(written) != 1:
        return [f"{len(archived)} journals in the archive, {len(written)} written"]
    found = []
    hashes = {hashlib.sha256(journal).hexdigest() for journal in (*archived, *written)}
    if len(hashes) != 1:
        found.append("the archive has another journal than its agent wrote")
    records = [json.loads(line) for line in archived[0].splitlines()]
    trials = collections.Counter((one["cell"], one["repeat"]) for one in records if one["record"] == "trial")
    if sorted(trials.values()) != [1] * 6 or records[-1]["record"] != "end":
        found.append(f"trials: {dict(trials)}, last record: {records[-1]['record']}")
    return found


def main():
    numbers = [int(word) for word in sys.argv[1:]]
    seed, agents, jobs, kills = (*numbers, *(7, 20, 500, 110)[len(numbers):])
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="cipherbench-chaos-") as folder:
        fleet = Fleet(pathlib.Path(folder), agents)
        for _ in range(jobs):
            submitted = fleet.ask("submit", fleet.folder / "campaign.yaml")
            if submitted.returncode != 0:
                sys.exit(f"not submitted: {submitted.stderr}")
            fleet.keep()
        began = changed = time.monotonic()
        killed, before, restarts = collections.Counter(), None, 0
        while True:
            # Kills are spread over the jobs; the moment within a job is the dice's.
            begun = fleet.keep()
            if said := fleet.tend():
                print(f"\nthe server has ended: {said}", file=sys.stderr)
                restarts += 1
            if killed.total() < kills and begun * (kills + 1) >= jobs * (killed.total() + 1):
                until = time.monotonic() + dice.random()
                while time.monotonic() < until:
                    fleet.keep()
                    time.sleep(0.01)
                victim = None if killed.total() % SERVERS == SERVERS // 2 else dice.randrange(agents)
                fleet.kill(victim)
                killed["server" if victim is None else "agents"] += 1
                print(f"\r{begun} of {jobs} jobs begun, {killed.total()} kills", end="", file=sys.stderr, flush=True)
            elif begun == jobs or time.monotonic() - changed > 20:
                states = fleet.states()
                if states is not None and all(map(is_final, states)):
                    break
                if states is not None and states != before:
                    before, changed = states, time.monotonic()
                if time.monotonic() - changed > PATIENCE:
                    sys.exit(f"nothing changes any more: {[one for one in states or [] if not is_final(one)]}")
                until = time.monotonic() + 2
                while time.monotonic() < until:
                    fleet.keep()
                    time.sleep(0.01)
            time.sleep(0.01)
        seconds = time.monotonic() - began
        done = [job["job"] for job in states if state_of(job) == "done"]
        others = [job for job in states if state_of(job) != "done"]
        wrong = {job: found for job in done if (found := faults(fleet, job))}
        print(file=sys.stderr)
        print(
            f"seed {seed}: {agents} agents, {jobs} jobs in {seconds:.0f} s; killed: agents {killed['agents']} times, the server "
            f"{killed['server']} times, after which it had to be started twice {restarts} times; done: {len(done)}, with a fault: {len(wrong)}; not done: {len(others)}"
        )
        for job, found in wrong.items():
            print(f"{job}: {'; '.join(found)}")
        for job in others:
            print(f"{job['job']}: {json.dumps(job['progress'])}")
        if wrong or others or len(states) != jobs or killed.total() < kills:
            sys.exit(1)


if __name__ == "__main__":
    main()
