#!/usr/bin/env python3
"""Remakes the pictures of README.md and docs/: each by a real run, and headless Chromium on its report.

    scripts/pictures.py [--program PATH] [--output FOLDER] [--run NAME=RUN …] [NAME …]

NAME is the stem of a picture, such as `report`; without one, all are made: about a quarter of an hour of an idle
machine, as root or with user namespaces. `--run frames=runs/RUN` takes an existing run instead of a new one. The runs
are kept in target/pictures, so a picture can be made again without measuring.
"""

import argparse
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
RUNS = ROOT / "target/pictures"

# What no shipped campaign has: a chart of few bars, with a router next to the encryptor.
FRAMES = """\
campaign: frames
title: Throughput by frame size
repeats: 1
duts: [direct, router, cipherbench]
trials:
  - throughput: { frame: [64 B, 128 B, 256 B, 512 B, 1024 B, 1518 B], flows: 64, profile: fast }
"""


class Picture:
    """A picture: its run, and the part of the report that it shows.

    `part` is a CSS selector of the first element to show, without which it is the top of the page. `unfolded` opens
    what is folded. `height` is the most that is shown, in pixels.
    """

    def __init__(self, arguments, part, width, height, campaign=None, unfolded=False):
        self.arguments, self.campaign = arguments, campaign
        self.part, self.width, self.height, self.unfolded = part, width, height, unfolded


PICTURES = {
    "report": Picture(["campaigns/quick.yaml"], None, 1080, 1370),
    "frames": Picture(["FILE"], "#frames figure", 1010, 600, campaign=FRAMES),
    "published": Picture(["campaigns/vipnet-scaling.yaml", "--quick"], "#published", 1100, 1500, unfolded=True),
}

# Leaves the chosen part on the page, and notes its height.
SCRIPT = """
addEventListener('load', () => {
  const { part, unfolded } = %s;
  const shown = part ? document.querySelector(part) : document.body;
  if (shown) {
    for (let at = shown; at && at !== document.documentElement; at = at.parentElement) {
      if (at.tagName === 'DETAILS') at.open = true;
      for (const other of at === document.body ? [] : at.parentElement.children) {
        if (other !== at && other.tagName !== 'SUMMARY') other.style.display = 'none';
      }
    }
    for (const folded of unfolded ? shown.querySelectorAll('details') : []) folded.open = true;
    if (part) for (const folded of shown.querySelectorAll('details.method')) folded.style.display = 'none';
    scrollTo(0, 0);
    // Below a part the page has only margins.
    document.documentElement.dataset.height = Math.ceil(shown.getBoundingClientRect().bottom + (part ? 16 : 0));
  }
});
"""


def fail(text):
    sys.exit(f"pictures: {text}")


def browser():
    """The program of a browser."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    return found or fail("no browser is here: install chromium (apt-get install chromium)")


def measure(program, name, picture):
    """Runs the picture's campaign. Returns the run's folder."""
    runs = RUNS / name
    shutil.rmtree(runs, ignore_errors=True)
    runs.mkdir(parents=True)
    arguments = list(picture.arguments)
    if picture.campaign:
        arguments[0] = str(runs / "campaign.yaml")
        (runs / "campaign.yaml").write_text(picture.campaign)
    done = subprocess.run([program, "run", *arguments, "--out", runs], cwd=ROOT, check=False)
    folders = [path for path in runs.iterdir() if (path / "report.html").is_file()]
    # 1: a trial is invalid, which the report says.
    if done.returncode not in (0, 1) or len(folders) != 1:
        fail(f"{name}: `cipherbench run {' '.join(arguments)}` ended with {done.returncode}")
    return folders[0]


def size(png):
    """Width and height of a PNG."""
    head = png.read_bytes()[:24]
    if head[:8] != b"\x89PNG\r\n\x1a\n":
        fail(f"{png}: the browser wrote no picture")
    return struct.unpack(">II", head[16:24])


def draw(run, picture, target):
    """Writes the picture of a run's report."""
    page = (run / "report.html").read_text()
    settings = f"{{ part: {picture.part!r}, unfolded: {str(picture.unfolded).lower()} }}".replace("None", "null")
    # The page's policy forbids further scripts.
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    page = page.replace("</body>", f"<script>{SCRIPT % settings}</script></body>")
    with tempfile.TemporaryDirectory(prefix="pictures-") as folder:
        folder = pathlib.Path(folder)
        (folder / "page.html").write_text(page)
        common = [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        common += ["--force-device-scale-factor=1", "--virtual-time-budget=5000", f"--user-data-dir={folder / 'profile'}"]
        address = f"file://{folder / 'page.html'}"

        def call(*arguments):
            return subprocess.run([*common, *arguments, address], check=True, timeout=120, capture_output=True, text=True).stdout

        dom = call(f"--window-size={picture.width},1000", "--dump-dom")
        found = re.search(r'<html[^>]* data-height="(\d+)"', dom)
        if not found or int(found[1]) < 100:
            fail(f"{run}: its report has no part `{picture.part}`")
        height = min(int(found[1]), picture.height)
        drawn = folder / "drawn.png"
        call(f"--window-size={picture.width},{height}", f"--screenshot={drawn}")
        if size(drawn) != (picture.width, height):
            fail(f"{target}: the browser drew {size(drawn)}, not {(picture.width, height)}")
        shutil.copy(drawn, target)


def main():
    parser = argparse.ArgumentParser(description="Remakes the pictures of README.md and docs/ by real runs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"pictures: {', '.join(PICTURES)}; all without one")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target/release/cipherbench")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs", help="folder of the pictures")
    parser.add_argument("--run", action="append", default=[], metavar="NAME=RUN", help="an existing run of a picture")
    arguments = parser.parse_args()
    existing = dict(given.partition("=")[::2] for given in arguments.run)
    names = arguments.names or list(existing) or list(PICTURES)
    for name in [*names, *existing]:
        if name not in PICTURES:
            fail(f"no picture is called `{name}`: {', '.join(PICTURES)}")
    program = arguments.program.resolve()
    if set(names) - set(existing) and not os.access(program, os.X_OK):
        fail(f"{program} is missing: `make build`, or name it by --program")
    for name in names:
        run = pathlib.Path(existing[name]) if name in existing else measure(program, name, PICTURES[name])
        draw(run, PICTURES[name], arguments.output / f"{name}.png")
        print(f"pictures: {arguments.output / name}.png, of {run}")


if __name__ == "__main__":
    main()
