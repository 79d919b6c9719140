#!/usr/bin/env python3
"""Runs the tutorials in docs/start as they are printed, each in an empty folder.

    scripts/tutorials.py [--program PATH] [PAGE …]

A page has its files in fenced blocks, each after a line with the file's name, such as "`box.yaml`:". Its commands are
the lines with `$ ` in blocks of kind `console`; they run in one shell, in the order of the page. A command's exit code
is 0, unless the next command is `echo $?`: then it is the printed one. The other lines of a block are output, compared
with these liberties:

- a number matches any number, and white space any white space;
- `…` matches any text in a line, and as a line any lines; output after the last printed line is not compared.

A tutorial runs as root, with a network and a /run of its own, so that nothing of it stays and a run of another session
is not in the way. On a busy machine, trials may be invalid and gates undecided: if a run warned of that, exit codes 1
and 5 are accepted, the output is not compared, and the page counts as disturbed. With --strict, that is a failure.
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = re.compile(r"^`([^`/]+)`:$")
FENCE = re.compile(r"^```(\w*)$")
MARK = "\x01"
BUSY = "this machine is busy"
# `unshare` gives the tutorial a network without any interface, where it may create those that it needs.
ISOLATED = ["unshare", "--mount", "--net", "sh", "-c", 'mount -t tmpfs none /run && ip link set lo up && exec "$@"', "sh"]


class Command:
    """A command with its printed output and its expected exit code."""

    def __init__(self, text):
        self.text = text
        self.output = []
        self.code = 0


class Wrong(Exception):
    """The page and what happened differ."""


def read(page):
    """The files of a page, by name, and its commands."""
    files, commands = {}, []
    name = kind = None
    block = []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if kind is None:
            if fence := FENCE.match(line):
                kind, block = fence[1] or "text", []
            elif line:
                match = FILE.match(line)
                name = match[1] if match else None
        elif line == "```":
            if kind == "console":
                commands += console(block, f"{page}:{number}")
            elif name:
                files[name] = "\n".join(block) + "\n"
            kind = name = None
        else:
            block.append(line)
    for command, after in zip(commands, commands[1:]):
        if after.text == "echo $?":
            command.code = int(after.output[0])
    return files, commands


def console(block, place):
    """The commands of a block, with their output."""
    commands = []
    continues = False
    for line in block:
        if continues:
            commands[-1].text += "\n" + line
        elif line.startswith("$ "):
            commands.append(Command(line[2:]))
        elif commands:
            commands[-1].output.append(line)
        else:
            raise Wrong(f"{place}: the block above begins without a command")
        continues = line.endswith("\\")
    return commands


def pattern(line):
    """A regular expression of the lines that a printed line describes."""
    text = ""
    for part in re.split(r"(…|\d[\d.,]*|\s+)", line.strip()):
        if part == "…":
            text += ".*"
        elif part[:1].isdigit():
            text += r"\d[\d.,]*"
        elif part.isspace():
            text += r"\s+"
        else:
            text += re.escape(part)
    return re.compile(text)


def compare(printed, output):
    """Checks that the printed lines are in the output, and gaps only at `…`."""
    output = [line.strip() for line in output if line.strip()]
    at, gap = 0, False
    for line in filter(str.strip, printed):
        if line.strip() == "…":
            gap = True
            continue
        expected = pattern(line)
        end = len(output) if gap else min(at + 1, len(output))
        found = next((i for i in range(at, end) if expected.fullmatch(output[i])), None)
        if found is None:
            there = output[at] if at < len(output) else "its end"
            raise Wrong(f"the page prints\n    {line.strip()}\nand the output has\n    {there}")
        at, gap = found + 1, False


def run(page, program, timeout):
    """Runs a tutorial. Returns the commands that a busy machine disturbed."""
    files, commands = read(page)
    if not commands:
        raise Wrong(f"{page} has no command")
    script = [f"step() {{ local code=$?; printf '\\n{MARK}%d\\n' $code; return $code; }}"]
    for command in commands:
        script += [command.text, "step"]
    environment = dict(os.environ, PATH=f"{program.parent}:{os.environ['PATH']}", LC_ALL="C.UTF-8")
    disturbed, is_busy = [], False
    with tempfile.TemporaryDirectory(prefix="tutorial-") as folder:
        for name, text in files.items():
            (pathlib.Path(folder) / name).write_text(text)
        shell = subprocess.Popen(
            [*ISOLATED, "bash", "-c", "\n".join(script)],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        signal.signal(signal.SIGALRM, lambda *_: end(shell))
        signal.alarm(timeout)
        try:
            for command in commands:
                print(f"$ {command.text}", flush=True)
                output, code = [], None
                for line in shell.stdout:
                    if line.startswith(MARK):
                        code = int(line[1:])
                        break
                    output.append(line)
                    print(f"    {line.rstrip()}")
                if code is None:
                    raise Wrong(f"`{command.text}` did not end within {timeout} s, with the commands before it")
                is_busy |= any(BUSY in line for line in output)
                is_echo = command.text == "echo $?"
                if is_busy and (code in (1, 5) or is_echo):
                    disturbed += [] if is_echo or code == command.code else [command.text]
                    continue
                if code != command.code:
                    raise Wrong(f"`{command.text}` ended with {code}, not with {command.code}")
                if not is_busy:
                    compare(command.output, output)
        finally:
            signal.alarm(0)
            end(shell)
    return disturbed


def end(shell):
    """Ends the shell and all programs that it has left running."""
    try:
        os.killpg(shell.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def main():
    parser = argparse.ArgumentParser(description="Runs the tutorials in docs/start as they are printed.")
    parser.add_argument("pages", nargs="*", type=pathlib.Path, help="pages instead of all in docs/start")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target/release/cipherbench")
    parser.add_argument("--timeout", type=int, default=1800, help="seconds for one tutorial")
    parser.add_argument("--strict", action="store_true", help="a tutorial that a busy machine disturbed has failed")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("tutorials: run this as root: tutorials create interfaces")
    program = arguments.program.resolve()
    if not os.access(program, os.X_OK):
        sys.exit(f"tutorials: {program} is missing: `make build`, or name it by --program")
    is_wrong = False
    results = []
    for page in arguments.pages or sorted((ROOT / "docs/start").glob("*.md")):
        try:
            disturbed = run(page, program, arguments.timeout)
            is_wrong |= bool(disturbed) and arguments.strict
            busy = f"disturbed by a busy machine in {', '.join(f'`{text}`' for text in disturbed)}"
            results.append(f"{page.name}: {busy if disturbed else 'as printed'}")
        except Wrong as error:
            is_wrong = True
            results.append(f"error: the tutorial {page.name} failed: {error}")
    print("\n" + "\n".join(results))
    sys.exit(is_wrong)


if __name__ == "__main__":
    main()
