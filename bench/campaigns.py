#!/usr/bin/env python3
"""Every shipped campaign, shortened and run to its end, and the cells that have no figure then, with the reasons.

One repeat, short trials, the first and the last frame size, message size and operation of each list, and the profile
`fast`: whether all of it runs here, not how fast. Campaigns of boxes that have to be reached (external-…) are left
out. Needs root. Programs that are missing are named (`make peers` installs most). Files and reports are in
target/campaigns.

usage: campaigns.py [CAMPAIGN …]      (or: make campaigns ARGS="quick ipsec")
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

PROGRAM = pathlib.Path("target/release/cipherbench").absolute()
PLACE = pathlib.Path("target/campaigns").absolute()
# Seconds that a trial lasts, where the campaign's are more: those with events in them need some more.
SECONDS = 1
SECONDS_WITH_EVENTS = 4
# A search that takes longer leaves the bounds that it has found.
SEARCH_SECONDS = 10
LONG_KINDS = ("soak", "rekey")
# Labs of the campaigns that do not fit the one built in, and of those that are about other paths too.
LABS = {"weather": "labs/weather.yaml", "sessions": "labs/nat.yaml"}


def ends(found):
    """A list of settings without those between its first and its last."""
    words = [word.strip() for word in found[2].split(",")]
    if "{" in found[2] or len(words) < 3:
        return found[0]
    return f"{found[1]}[{words[0]}, {words[-1]}]"


def in_seconds(text):
    number, unit = text.split()
    return float(number) * {"ms": 1e-3, "s": 1, "min": 60, "h": 3600}[unit]


def shortened(text):
    lines = []
    seconds = SECONDS
    for line in text.splitlines():
        kind = re.match(r"  - ([a-z-]+):", line)
        if kind:
            seconds = SECONDS_WITH_EVENTS if kind[1] in LONG_KINDS else SECONDS
        duration = re.search(r"\bduration: ([\d.]+ (?:ms|s|min|h))\b", line)
        if duration and in_seconds(duration[1]) > seconds:
            line = line.replace(duration[0], f"duration: {seconds} s")
        line = re.sub(r"^repeats: \d+", "repeats: 1", line)
        line = re.sub(r"\bcount: \d{3,}", "count: 100", line)
        line = re.sub(r"\btimes: \d+", "times: 2", line)
        line = re.sub(r"\bbursts: \d+", "bursts: 2", line)
        line = re.sub(r"\bstep: \d+ %", "step: 50 %", line)
        line = re.sub(r"\bwarmup: [\d.]+ s", "warmup: 0 s", line)
        line = re.sub(r"\bdrain: \d+ s", "drain: 200 ms", line)
        line = line.replace("tune: true", "tune: false")
        line = re.sub(r"\bprofile: rfc2544", "profile: fast", line)
        line = re.sub(r"\b(throughput|latency): \{ (?!.*profile:)", r"\1: { profile: fast, ", line)
        line = line.replace("profile: fast", f"profile: fast, timeout: {SEARCH_SECONDS} s") if "{" in line else line
        line = re.sub(r"^( +)profile: fast$", rf"\1profile: fast\n\1timeout: {SEARCH_SECONDS} s", line)
        line = re.sub(r"\bloss-curve: \{ (?!.*step:)", "loss-curve: { step: 50 %, ", line)
        line = re.sub(r"\b((?:frame|size|concurrency|operations?|algorithms): )\[([^\]]*)\]", ends, line)
        lines.append(line)
    return "\n".join(lines) + "\n"


def run(source):
    """Runs a shortened campaign; the code it ends with, its seconds and its results, if there are any."""
    place = PLACE / source.stem
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    campaign = place / "campaign.yaml"
    campaign.write_text(shortened(source.read_text()))
    words = [PROGRAM, "run", campaign, "--out", place, "--skip-missing", "--quiet"]
    if source.stem in LABS:
        words += ["--lab", pathlib.Path(LABS[source.stem]).absolute()]
    started = time.monotonic()
    ended = subprocess.run(words, capture_output=True, text=True)
    seconds = time.monotonic() - started
    results = list(place.glob("*/results.json"))
    if not results:
        sys.stderr.write(ended.stderr)
    return ended, seconds, json.loads(results[0].read_text()) if results else None


def without_figure(results):
    """Each reason once, with the cells it concerns."""
    reasons = {}
    for cell in results["cells"]:
        if cell["status"] == "measured":
            continue
        for reason in cell["reasons"] or [{"text": cell["status"]}]:
            first = reason["text"].splitlines()[0]
            reasons.setdefault(first, []).append(cell["id"])
            break
    return reasons


def main():
    wanted = sys.argv[1:]
    shipped = {one.stem: one for one in sorted(pathlib.Path("campaigns").glob("*.yaml"))}
    unknown = [name for name in wanted if name not in shipped]
    if unknown:
        sys.exit(f"no shipped campaign is called {' or '.join(unknown)}: see campaigns/")
    sources = [shipped[name] for name in wanted or shipped if wanted or not name.startswith("external-")]
    broken = []
    print("| Campaign | Time | Cells | Measured | Exit |\n| --- | --: | --: | --: | --: |")
    notes = []
    for source in sources:
        ended, seconds, results = run(source)
        cells = results["cells"] if results else []
        measured = sum(cell["status"] == "measured" for cell in cells)
        print(f"| {source.stem} | {seconds:.0f} s | {len(cells)} | {measured} | {ended.returncode} |", flush=True)
        if ended.returncode not in (0, 1):
            broken.append(source.stem)
        for reason, ids in (without_figure(results) if results else {}).items():
            notes.append(f"- {source.stem}, {len(ids)} cells ({ids[0]}): {reason}")
    print("\nCells without a figure:\n" + "\n".join(notes or ["none"]))
    if broken:
        sys.exit(f"not run to the end: {', '.join(broken)}")


if __name__ == "__main__":
    main()
