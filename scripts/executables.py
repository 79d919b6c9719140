#!/usr/bin/env python3
"""Runs compiled tests again without cargo, for instance under another umask.

    cargo test --no-run --message-format json | scripts/executables.py PACKAGE/TARGET[=FILTER]...

Each runs in its package's folder, as cargo runs it, and prints what it prints. Ends with 1 if one fails or is unknown.
TARGET is `lib` or the name of a test. All that cargo builds is shown by `scripts/executables.py` without arguments.
"""

import json
import os
import subprocess
import sys


def built():
    """The test programs in cargo's messages, by package and target, with the package's folder."""
    found = {}
    for line in sys.stdin:
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("executable") and message["profile"]["test"]:
            target = message["target"]
            folder = os.path.dirname(message["manifest_path"])
            name = "lib" if "lib" in target["kind"] else target["name"]
            found[f"{os.path.basename(folder)}/{name}"] = (message["executable"], folder)
    return found


def main():
    """Runs the named programs one after the other."""
    found = built()
    if len(sys.argv) == 1:
        print("\n".join(sorted(found)))
        return 0
    failed = []
    for word in sys.argv[1:]:
        name, _, filter_ = word.partition("=")
        if name not in found:
            failed.append(f"{name} (not built)")
            continue
        program, folder = found[name]
        print(f"     Running {word} (umask {current_umask():03o})", flush=True)
        environment = {**os.environ, "CARGO_MANIFEST_DIR": folder}
        if subprocess.run([program, *filter_.split()], cwd=folder, env=environment, check=False).returncode:
            failed.append(word)
    for word in failed:
        print(f"error: {word} failed", file=sys.stderr)
    return 1 if failed else 0


def current_umask():
    """This process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


if __name__ == "__main__":
    sys.exit(main())
