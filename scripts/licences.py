#!/usr/bin/env python3
"""Writes the licences of the program, of the project and of every crate in it.

    scripts/licences.py FOLDER     FOLDER/copyright in Debian's machine-readable form, and
                                   FOLDER/licences.txt with all texts

The crates are those that the program links on this platform: no tools of the build, macros or tests.
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FORMAT = "https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
OURS = "2026, The Cipherbench contributors"
# Files with a licence or a notice, at the top of a crate.
NAMES = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)
# Of the library that the engine `ipsec-mb` is linked with.
INTEL = pathlib.Path("/usr/share/doc/libipsec-mb-dev/copyright")


def crates():
    """The packages that are linked into the program, other than the project's, by name and version."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform"]
    host = subprocess.run(["rustc", "-vV"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    command.append(re.search(r"^host: (.*)$", host, re.MULTILINE)[1])
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    start = next(package["id"] for package in packages.values() if package["name"] == "cipherbench")
    seen, left = set(), [start]
    while left:
        package = packages[left.pop()]
        macro = any("proc-macro" in target["kind"] for target in package["targets"])
        if package["id"] in seen or macro:
            continue
        seen.add(package["id"])
        for dependency in nodes[package["id"]]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                left.append(dependency["pkg"])
    foreign = [packages[it] for it in seen if packages[it]["source"] is not None]
    return sorted(foreign, key=lambda package: (package["name"], package["version"]))


def expression(licence):
    """A licence as Debian's form writes it, from SPDX's."""
    text = licence.replace("/", " OR ").replace(") AND", ", and").replace(") OR", ", or")
    text = text.replace("(", "").replace(")", "")
    for word in ("AND", "OR", "WITH"):
        text = text.replace(f" {word} ", f" {word.lower()} ")
    return " ".join(text.split()).replace(" ,", ",")


def texts(package):
    """The licence files of a crate."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = [file for file in sorted(folder.iterdir()) if file.is_file() and NAMES.match(file.name)]
    return [file.read_text(encoding="utf-8", errors="replace").strip().replace("\r\n", "\n") for file in files]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    found = crates()
    stanzas = [
        f"Format: {FORMAT}\nUpstream-Name: cipherbench\nComment: The program is linked with crates of the Rust language, "
        "which are listed\n below; licences.txt.gz next to this file has the texts of all their licences.",
        f"Files: *\nCopyright: {OURS}\nLicense: Apache-2.0 or MIT",
    ]
    used, unknown = {"Apache-2.0", "MIT"}, []
    for package in found:
        licence = package["license"]
        if not licence:
            unknown.append(package["name"])
            continue
        licence = expression(licence)
        used.update(re.split(r", and |, or | and | or ", licence))
        holders = ", ".join(re.sub(r"\s*<.*?>", "", author) for author in package["authors"])
        stanzas.append(
            f"Files: crates/{package['name']}-{package['version']}/*\n"
            f"Copyright: {holders or 'the authors of ' + package['name']}\nLicense: {licence}"
        )
    if INTEL.exists():
        stanzas.append("Files: intel-ipsec-mb/*\nCopyright: Intel Corporation\nLicense: BSD-3-Clause")
        used.add("BSD-3-Clause")
    if unknown:
        sys.exit(f"licences: no licence is stated by {', '.join(unknown)}")
    ours = (ROOT / "LICENSE-MIT").read_text().strip()
    for licence in sorted(used):
        if licence == "Apache-2.0":
            text = "On Debian systems the text is in /usr/share/common-licenses/Apache-2.0."
        elif licence == "MIT":
            text = ours.split("\n", 2)[2]
        else:
            text = "The text is in licences.txt.gz next to this file."
        lines = [f" {line}" if line.strip() else " ." for line in text.strip().splitlines()]
        stanzas.append(f"License: {licence}\n" + "\n".join(lines))
    (folder / "copyright").write_text("\n\n".join(stanzas) + "\n", encoding="utf-8")

    by_text = {}
    if INTEL.exists():
        by_text[INTEL.read_text(encoding="utf-8").strip()] = ["Intel's multi-buffer library, linked statically"]
    for package in found:
        for text in texts(package):
            by_text.setdefault(text, []).append(f"{package['name']} {package['version']}")
    with open(folder / "licences.txt", "w", encoding="utf-8") as file:
        file.write("Licences of the crates in cipherbench\n")
        for text, names in sorted(by_text.items(), key=lambda item: item[1]):
            file.write("\n" + "=" * 100 + "\n" + "\n".join(names) + "\n" + "=" * 100 + f"\n\n{text}\n")
    print(f"{len(found)} crates, {len(by_text)} texts of licences")


main()
