#!/usr/bin/env python3
"""Checks what programs need from the system that runs them: scripts/needs.py --glibc 2.31 PROGRAM...

Fails, with the symbols or libraries at fault, if one needs a newer glibc, or a library that is not part of every Linux with
glibc. `objdump` (binutils) reads the programs.
"""

import argparse
import re
import subprocess
import sys

# glibc, with the parts that were libraries of their own before version 2.34, and gcc's run-time library.
LIBRARIES = {
    "ld-linux-aarch64.so.1",
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
}


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def objdump(option: str, program: str) -> str:
    return subprocess.run(["objdump", option, program], check=True, capture_output=True, text=True).stdout


def faults(program: str, glibc: str) -> list[str]:
    found = []
    for library in re.findall(r"^\s+NEEDED\s+(\S+)$", objdump("-p", program), re.MULTILINE):
        if library not in LIBRARIES:
            found.append(f"it needs {library}, which not every system has: load it at run time, or link it statically")
    for line in objdump("-T", program).splitlines():
        symbol = re.search(r"\(?GLIBC_([0-9.]+)\)?\s+(\S+)$", line)
        if "*UND*" in line and symbol and numbers(symbol[1]) > numbers(glibc):
            found.append(f"it needs {symbol[2]} of glibc {symbol[1]}")
        if "*UND*" in line and "GLIBC_PRIVATE" in line:
            found.append(f"it needs a private symbol of glibc: {line.split()[-1]}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--glibc", required=True, help="the oldest glibc that must suffice")
    parser.add_argument("programs", nargs="+")
    arguments = parser.parse_args()
    bad = False
    for program in arguments.programs:
        found = faults(program, arguments.glibc)
        for fault in found:
            print(f"needs: {program}: {fault}", file=sys.stderr)
        bad |= bool(found)
        if not found:
            print(f"needs: {program} runs with glibc {arguments.glibc} and newer, and needs no other library")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
