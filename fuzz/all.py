#!/usr/bin/env python3
"""Every fuzz target, one after the other or several in parallel, with a table of what each has done.

    make fuzz-all                              60 s of each target
    make fuzz-all EXECUTIONS=100000000         repeats that until all targets together have executed that many inputs
    make fuzz-all SECONDS=300 JOBS=1 ARGS="--keep esp_open handshake"

Covered edges and the corpus include what earlier runs found (fuzz/corpus). `--keep` minimises each corpus and writes
the smallest inputs to fuzz/minimised, which the ordinary tests run. Exit code 1: a target failed, and the table says how
to repeat that.
"""

import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts/fuzz.sh"
CORPUS, SEEDS, MINIMISED, ARTIFACTS = (ROOT / "fuzz" / name for name in ["corpus", "seeds", "minimised", "artifacts"])
LOGS = ROOT / "target/fuzz/logs"
# Of the inputs kept of one target, without the hand-written seeds. In hexadecimal they take twice that.
KEPT_BYTES_MAX = 64 * 1024


class Result:
    """What a target has done in this run of the program."""

    def __init__(self, name):
        self.name = name
        self.executions = 0
        self.seconds = 0.0
        self.edges = 0
        self.failures = []

    def row(self):
        rate = self.executions / self.seconds if self.seconds else 0
        inputs = sum(1 for _ in (CORPUS / self.name).glob("*"))
        failed = len(self.failures) or "none"
        return f"{self.name:14} {self.executions:>13,} {rate:>9,.0f} {self.edges:>8,} {inputs:>8,}   {failed}"


def files(folder):
    return sorted(folder.glob("*")) if folder.is_dir() else []


def unpack(name):
    """Writes the kept inputs to the corpus, where libFuzzer reads them."""
    packed = MINIMISED / f"{name}.hex"
    lines = packed.read_text().split() if packed.exists() else []
    (CORPUS / name).mkdir(parents=True, exist_ok=True)
    for content in map(bytes.fromhex, lines):
        # The name that libFuzzer gives it.
        (CORPUS / name / hashlib.sha1(content).hexdigest()).write_bytes(content)


def keep(name):
    """Minimises the corpus, and packs the smallest inputs that the seeds do not have."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([SCRIPT, name, "merge", folder], check=True, capture_output=True)
        found = {path.read_bytes() for path in files(pathlib.Path(folder))}
    found -= {path.read_bytes() for path in files(SEEDS / name)} | {b""}
    kept, total = [], 0
    for content in sorted(found, key=lambda content: (len(content), content)):
        total += len(content)
        if total > KEPT_BYTES_MAX:
            break
        kept.append(content)
    MINIMISED.mkdir(exist_ok=True)
    (MINIMISED / f"{name}.hex").write_text("".join(content.hex() + "\n" for content in kept))
    print(f"{name}: kept {len(kept)} of {len(found)} inputs", flush=True)


def repeats(name, artifact):
    """Whether the input fails alone: a timeout may be that of a machine that was suspended."""
    run = subprocess.run([SCRIPT, name, artifact], capture_output=True)
    return run.returncode != 0


def fuzz(result, seconds):
    """Runs one target for that time, and adds what it did to the result."""
    name = result.name
    before = set(files(ARTIFACTS / name))
    began = time.monotonic()
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{name}.log"
    with open(log, "wb") as output:
        command = [SCRIPT, name, str(seconds), "-print_final_stats=1"]
        code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT).returncode
    text = log.read_text(errors="replace")
    executed = re.search(r"stat::number_of_executed_units:\s*(\d+)", text)
    edges = re.findall(r" cov: (\d+)", text)
    if executed is None or not edges:
        result.failures.append(f"{name} did not run (exit code {code}): see {log.relative_to(ROOT)}")
        return
    result.seconds += time.monotonic() - began
    result.executions += int(executed[1])
    result.edges = max(result.edges, int(edges[-1]))
    # `slow-unit-…` is a note of libFuzzer, not a failure.
    new = [path for path in files(ARTIFACTS / name) if path not in before and not path.name.startswith("slow-unit-")]
    for artifact in new:
        place = artifact.relative_to(ROOT)
        if artifact.name.startswith("timeout-") and not repeats(name, artifact):
            print(f"{name}: {place} did not fail again: the machine was busy", flush=True)
            artifact.unlink()
            code = 0
        else:
            result.failures.append(f"{name}: scripts/fuzz.sh {name} {place}")
    if code != 0 and not new:
        result.failures.append(f"{name} ended with exit code {code}: see {log.relative_to(ROOT)}")


def table(results):
    lines = [f"{'target':14} {'executions':>13} {'per s':>9} {'edges':>8} {'corpus':>8}   failures"]
    lines += [result.row() for result in results]
    executions = sum(result.executions for result in results)
    failures = [failure for result in results for failure in result.failures]
    lines.append(f"{'total':14} {executions:>13,} {'':>9} {'':>8} {'':>8}   {len(failures) or 'none'}")
    print("\n".join(lines), flush=True)
    return executions, failures


def main():
    names = subprocess.run([SCRIPT, "list"], check=True, capture_output=True, text=True).stdout.split()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="some targets (default: all)")
    parser.add_argument("--seconds", type=int, default=60, help="of each target in each round (60)")
    parser.add_argument("--executions", type=int, default=0, help="rounds are repeated up to these, of all targets together")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="targets in parallel (one for each core)")
    parser.add_argument("--keep", action="store_true", help="write the minimised corpora to fuzz/minimised")
    parser.add_argument("--unpack", action="store_true", help="only write fuzz/minimised to fuzz/corpus")
    options = parser.parse_args()
    unknown = set(options.targets) - set(names)
    if unknown or options.seconds < 1:
        parser.error(f"no such target: {', '.join(unknown)}" if unknown else "--seconds begins at 1")
    chosen = options.targets or names
    for name in chosen:
        unpack(name)
    if options.unpack:
        return 0
    # One build of all: what the targets have in common is compiled once.
    subprocess.run([SCRIPT, "build"], check=True)
    os.environ["FUZZ_BUILT"] = "yes"

    results = [Result(name) for name in chosen]
    failures = []
    while True:
        with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
            list(pool.map(lambda result: fuzz(result, options.seconds), results))
        executions, failures = table(results)
        if failures or executions >= options.executions:
            break
    if options.keep and not failures:
        with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
            list(pool.map(keep, chosen))
    for failure in failures:
        print(f"FAILED: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
