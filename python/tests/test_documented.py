"""The package against the repository: the schema, the formats, and journals among its tests."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import cipherbench_results as results
from cipherbench_results import _estimates, _files, _frames, _names

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Json = dict[str, Any]


@pytest.fixture
def schema(repository: Path) -> Json:
    text = (repository / "docs/schema/result-1.json").read_text(encoding="utf-8")
    parsed: Json = json.loads(text)
    return parsed


def below(schema: Json, node: Json, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each path below a node, without indices, with the name of its type."""
    for one in [node, *node.get("anyOf", [])]:
        name = one.get("$ref", "").rpartition("/")[2]
        if name:
            yield path, name
            if name != "Estimate":
                for key, item in schema["$defs"][name].get("properties", {}).items():
                    yield from below(schema, item, (*path, key))
        elif isinstance(one.get("items"), dict):
            yield from below(schema, one["items"], path)


def test_every_path_with_words_is_in_the_schema(schema: Json) -> None:
    paths = {path for path, _ in below(schema, {"$ref": "#/$defs/CellResult"}, ())}
    for path in [*_estimates._WORDS, *_estimates._LEFT_OUT]:
        assert path in paths, path


def test_no_two_quantities_of_the_schema_have_one_name(schema: Json) -> None:
    """Two paths with one name must be entries of lists, which `Place` distinguishes."""
    sections = ("bulk", "latency", "http", "video", "ike", "frames", "device", "cpu", "packet_cost")
    names: dict[str, set[tuple[str, ...]]] = {}
    for path, kind in below(schema, {"$ref": "#/$defs/CellResult"}, ()):
        if kind != "Estimate" or path[0] not in sections or path[:2] in _estimates._LEFT_OUT:
            continue
        words: list[str] = []
        for end in range(1, len(path) + 1):
            words = _estimates._words(path[:end], words)
        name, _ = _names.quantity(words)
        names.setdefault(name, set()).add(path)
    assert len(names) > 150
    shared = {name: paths for name, paths in names.items() if len(paths) > 1}
    allowed = {
        # A transfer, and each of its directions; the same of frames under a load.
        *{name for name in shared if {path[1] for path in shared[name]} & {"directions"}},
        # A device, and each of several in one cell.
        "operations_per_s",
    }
    assert set(shared) == allowed
    for name in names:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name), name
        assert not re.search(r"(^|_)ns(_|$)", name), name


def test_every_procedure_has_a_figure_of_the_schema(schema: Json, repository: Path) -> None:
    names = set()
    for path, kind in below(schema, {"$ref": "#/$defs/CellResult"}, ()):
        if kind == "Estimate":
            words: list[str] = []
            for end in range(1, len(path) + 1):
                words = _estimates._words(path[:end], words)
            names.add(_names.quantity(words)[0])
    assert set(_estimates._FIGURES.values()) <= names
    text = (repository / "docs/campaign.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^### `([a-z-]+)`$", text, re.MULTILINE))
    # Crypto devices have a document of their trials.
    assert set(_estimates._FIGURES) <= headings | {"speed"}
    declared = set(re.findall(r"keys of: trials\.([a-z-]+) -->", text))
    assert declared - {"kat", "fatigue"} <= set(_estimates._FIGURES)


def test_sections_and_metrics_are_known(schema: Json) -> None:
    metrics = {one["const"] for one in schema["$defs"]["Metric"]["oneOf"]}
    assert metrics == set(_frames._METRICS)
    [version] = [one["const"] for one in schema["$defs"]["SchemaVersion"]["oneOf"]]
    assert version == f"{_files._SCHEMA_NAME}/{_files._SCHEMA_VERSION}"


def test_the_formats_are_those_of_the_journal(repository: Path) -> None:
    text = (repository / "docs/journal.md").read_text(encoding="utf-8")
    assert (
        f"The header's `format` is {_files._FORMAT_NEWEST}. This program reads "
        f"{_files._FORMAT_OLDEST} to {_files._FORMAT_NEWEST} and refuses any other"
    ) in text
    assert f"From version {_files._FORMAT_CHECKED} on the last key of each line is `sum`" in text


def test_every_axis_has_a_column(repository: Path) -> None:
    """Axes with a unit are those of the declarations in Rust."""
    text = (repository / "crates/model/plan/src/axis.rs").read_text(encoding="utf-8")
    text = text[text.index("static DECLARATIONS") :]
    declared = re.findall(r'Axis::\w+,\s*"([^"]+)",\s*Unit::(\w+)', text)
    assert len(declared) == len(set(re.findall(r"Axis::(\w+)", text))) > 80
    suffixes = {"Time": "_s", "Percent": "_percent", "Rate": "_bps", "Bytes": "_bytes"}
    suffixes["Size"] = "_bytes"
    for axis, unit in declared:
        column, _ = _names._of_axis(axis, 1)
        if unit == "Plain":
            assert column == _names._RENAMED.get(axis, axis.replace("-", "_"))
        elif axis != "frame":
            assert column.endswith(suffixes[unit]), axis


@pytest.mark.parametrize(
    ("part", "column", "value"),
    [
        ("mtu=1500", "mtu_bytes", 1500),
        ("window=4MiB", "window_bytes", 4 * 2**20),
        ("rate=1.5Gbps", "rate_bps", 1.5e9),
        ("rate=max", "rate_bps", None),
        ("streams=auto", "streams", "auto"),
        ("duration=1.5s", "duration_s", 1.5),
        ("every=10ms", "every_s", 0.01),
        ("load=50%", "load_percent", 50),
        ("load=20kpps", "load", "20kpps"),
        ("tune=on", "tune", True),
        ("frame=64", "frame_mix", "64"),
        ("frame=7x64+4x594", "frame_mix", "7x64+4x594"),
        ("version=1.1", "http_version", "1.1"),
        ("at-once=8", "at_once", 8),
        ("operation=aes-256-gcm-encrypt", "operation", "aes-256-gcm-encrypt"),
        ("bytes=1408", "input_bytes", 1408),
    ],
)
def test_values_of_ids_are_read(part: str, column: str, value: object) -> None:
    """As `coordinates_print_as_ids_have_them` in crates/model/plan/src/axis/tests.rs has them."""
    axis, _, text = part.partition("=")
    found, read = _names._of_id(axis, text)
    assert found == column
    assert read == (pytest.approx(value) if isinstance(value, float) else value)


def test_coordinates_of_ids_are_those_of_plans(transfers: Path, frames: Path) -> None:
    for run in (transfers, frames):
        for folder in (run, run / "results.json"):
            assert not results.load(folder).cells.empty
        whole, alone = results.load(run).cells, results.load(run / "results.json").cells
        assert whole.equals(alone)


# Made-up results with the cells of a plan, for journals that come without any.
def results_for(journal: Path) -> Json:
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    plan = lines[0]["plan"]
    cells = [
        {
            "id": cell["id"],
            "group": cell["group"],
            "dut": cell["dut"]["name"],
            "baseline": False,
            "calibration": False,
            "protocol": cell["measurement"]["kind"],
            "parameters": {},
            "status": "measured",
            "reasons": [],
            "repeats": {"measured": 1, "planned": plan["repeats"]},
        }
        for cell in plan["cells"]
    ]
    trials = [
        {
            "cell": line["cell"],
            "repeat": line["repeat"],
            "started_utc": "2026-11-20T11:30:00Z",
            "duration_ns": line["duration_ns"],
            "outcome": line["outcome"]["kind"],
            "reasons": [],
            "checks": [],
        }
        for line in lines
        if line["record"] == "trial"
    ]
    return {
        "schema": "cipherbench-result/1",
        "run": {"name": plan["name"], "started_utc": ""},
        "cells": cells,
        "comparisons": [],
        "trials": trials,
        "warnings": [],
    }


@pytest.mark.parametrize(
    "path",
    [
        "crates/model/journal/tests/fixture/format-1.jsonl",
        "fuzz/seeds/journal/every-record.jsonl",
    ],
)
def test_journals_of_the_repository_are_read(repository: Path, tmp_path: Path, path: str) -> None:
    """A journal of the first format, and one with a record of each kind."""
    shutil.copy(repository / path, tmp_path / "journal.jsonl")
    text = json.dumps(results_for(tmp_path / "journal.jsonl"))
    (tmp_path / "results.json").write_text(text, encoding="utf-8")
    run = results.load(tmp_path)
    assert set(run.series["source"]) == {"transfer", "ping"}
    assert set(run.latency["source"]) == {"ping"}
    assert (run.latency["frames"] > 0).all()
