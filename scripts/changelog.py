#!/usr/bin/env python3
"""Prints CHANGELOG.md as a changelog of Debian: an entry for each released version, the newest first.

    scripts/changelog.py VERSION MAINTAINER     VERSION with its revision, as 0.2.0-1, which must be the newest

A version that CHANGELOG.md does not have yet gets the date of the newest one in it.
"""

import datetime
import email.utils
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    version, maintainer = sys.argv[1:]
    upstream, _, revision = version.rpartition("-")
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.findall(r"^## \[([0-9][^\]]*)\] - (\d{4}-\d\d-\d\d)$", text, re.MULTILINE)
    if upstream not in [name for name, _ in found]:
        found = [(upstream, found[-1][1] if found else "2026-01-01")]
    for name, date in found[[name for name, _ in found].index(upstream) :]:
        moment = datetime.datetime.fromisoformat(date).replace(tzinfo=datetime.timezone.utc)
        print(f"cipherbench ({name}-{revision}) unstable; urgency=medium\n")
        print(f"  * Version {name}: changelog.gz has its changes.\n")
        print(f" -- {maintainer}  {email.utils.format_datetime(moment)}\n")


main()
