"""Paths that `load` accepts, and its errors: one sentence with the problem and a remedy."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any, Callable

import pytest

import cipherbench_results as results
from cipherbench_results import (
    DamagedError,
    FormatVersionError,
    IncompleteRunWarning,
    NotFoundInPathError,
    PartMissingWarning,
)

Rewrite = Callable[[Path, Callable[[dict[str, Any]], Any]], None]


def error_of(path: Path, kind: type[results.ResultsError]) -> str:
    """Return the text of the error of a path: one line that names the path."""
    with pytest.raises(kind) as found:
        results.load(path)
    text = str(found.value)
    assert "\n" not in text
    assert str(path) in text
    assert not text.endswith(".")
    assert ": " in text
    return text


def test_a_run_has_all_frames(transfers: Path) -> None:
    run = results.load(str(transfers))
    assert (run.name, run.path) == ("transfers", transfers)
    assert repr(run) == f"<Run transfers of {run.started}, {transfers}>"
    for frame in (run.trials, run.cells, run.ratios, run.series, run.latency, run.warnings):
        assert not frame.empty
    # Made once.
    assert run.cells is run.cells
    assert run.series is run.series
    assert run.results["schema"] == "cipherbench-result/1"


def test_results_alone_have_no_series_and_say_so(transfers: Path, tmp_path: Path) -> None:
    alone = results.load(transfers / "results.json")
    whole = results.load(transfers)
    assert alone.cells.equals(whole.cells)
    assert alone.trials.equals(whole.trials)
    assert alone.ratios.equals(whole.ratios)
    for name, what in (("series", "time series"), ("latency", "histograms of latencies")):
        with pytest.warns(PartMissingWarning) as said:
            frame = getattr(alone, name)
        assert frame.empty
        assert list(frame.columns) == list(getattr(whole, name).columns)
        [one] = said
        assert str(one.message) == (
            f"{transfers / 'results.json'} has no {what}, which are only in a run's journal: "
            f"load its folder, {transfers}"
        )
        # It points at the line that asked.
        assert one.filename == __file__
    moved = tmp_path / "moved.json"
    (transfers / "results.json").rename(moved)
    with pytest.warns(PartMissingWarning, match="load the run's folder, which has the journal"):
        assert results.load(moved).series.empty


def test_a_folder_of_results_without_a_journal_is_as_results_alone(transfers: Path) -> None:
    (transfers / "journal.jsonl").unlink()
    run = results.load(transfers)
    assert not run.cells.empty
    with pytest.warns(PartMissingWarning, match="load the run's folder"):
        assert run.latency.empty


def test_a_fetched_job_has_its_run_below_it(transfers: Path, tmp_path: Path) -> None:
    job = tmp_path / "cache" / "3f2a"
    job.mkdir(parents=True)
    # As `fleet fetch` makes runs: only their owner reads them. Others are still being fetched.
    target = job / transfers.name
    transfers.rename(target)
    for file in target.iterdir():
        file.chmod(0o600)
    (job / ".fetch-x1").mkdir()
    (job / ".fetch-x1" / "journal.jsonl").touch()
    assert results.load(job).path == target


def test_no_such_path(tmp_path: Path) -> None:
    text = error_of(tmp_path / "none", NotFoundInPathError)
    assert "does not exist: give the folder of a run, such as runs/" in text


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    text = error_of(tmp_path, NotFoundInPathError)
    assert "is not the folder of a run, since it has neither journal.jsonl nor results.json" in text


def test_a_folder_of_several_runs(transfers: Path, frames: Path) -> None:
    assert frames.parent == transfers.parent
    text = error_of(transfers.parent, NotFoundInPathError)
    assert text.endswith(f"is a folder with 2 runs: give one of them, such as {transfers}")


def test_a_journal_instead_of_its_folder(transfers: Path) -> None:
    text = error_of(transfers / "journal.jsonl", NotFoundInPathError)
    assert text.endswith(f"give its folder, {transfers}")


def test_a_killed_run_without_results(transfers: Path) -> None:
    (transfers / "results.json").unlink()
    text = error_of(transfers, NotFoundInPathError)
    assert text.endswith(f"write it by `cipherbench report {transfers}`")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads any file")
def test_a_file_that_may_not_be_read(transfers: Path) -> None:
    (transfers / "results.json").chmod(0)
    assert "cannot be read (Permission denied)" in error_of(transfers, NotFoundInPathError)


@pytest.mark.parametrize(
    ("schema", "todo"),
    [
        ("cipherbench-result/2", "install a newer version of cipherbench-results"),
        ("cipherbench-result/0", "write it again by `cipherbench report"),
    ],
)
def test_another_version_of_results(
    transfers: Path, change_results: Rewrite, schema: str, todo: str
) -> None:
    change_results(transfers, lambda all_of_it: all_of_it.update(schema=schema))
    text = error_of(transfers, FormatVersionError)
    assert f"has format '{schema}'" in text
    assert "reads cipherbench-result/1: " in text
    assert todo in text


def test_a_newer_journal(transfers: Path, rewrite: Rewrite) -> None:
    rewrite(transfers, lambda record: record.update(format=9) if "format" in record else None)
    text = error_of(transfers, FormatVersionError)
    assert "has journal format 9" in text
    assert text.endswith("reads formats 1 to 8: install a newer one")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b'{"schema": "cipherbench-result/1"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"schema": NaN}',
        b"[]",
        b'{"schema": 1' + b"0" * 10_000 + b"}",
    ],
)
def test_damaged_results(transfers: Path, text: bytes) -> None:
    path = transfers / "results.json"
    path.write_bytes(text)
    said = error_of(path, DamagedError)
    assert "is damaged or no JSON" in said
    assert len(said) < 500


@pytest.mark.parametrize(
    "text", ['{"schema": "other/1"}', "{}", '{"schema": "cipherbench-result/x"}']
)
def test_another_file_of_json(tmp_path: Path, text: str) -> None:
    path = tmp_path / "package.json"
    path.write_text(text, encoding="utf-8")
    assert "is no result of Cipherbench, since its key `schema` is" in error_of(path, DamagedError)


def test_results_with_another_structure(transfers: Path, change_results: Rewrite) -> None:
    change_results(transfers, lambda all_of_it: all_of_it["cells"][0].pop("protocol"))
    run = results.load(transfers)
    with pytest.raises(DamagedError) as found:
        _ = run.cells
    assert "results.json has another structure than its format (KeyError" in str(found.value)
    # Each part is read when it is asked for.
    assert not run.warnings.empty


@pytest.mark.parametrize("key", ["cells", "trials", "comparisons", "warnings", "run"])
@pytest.mark.parametrize("value", [None, 1, "x", [1], [None], [[]], [{}], {"a": 1}])
def test_no_structure_makes_another_error(
    transfers: Path, change_results: Rewrite, key: str, value: object
) -> None:
    change_results(transfers, lambda all_of_it: all_of_it.update({key: value}))
    run = results.load(transfers)
    for name in ("name", "trials", "cells", "ratios", "series", "latency", "warnings"):
        with contextlib.suppress(results.ResultsError):
            getattr(run, name)


def test_a_changed_line_of_the_journal(transfers: Path) -> None:
    path = transfers / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"repeat":1', b'"repeat":2')
    path.write_bytes(b"".join(lines))
    with pytest.raises(DamagedError) as found:
        results.load(transfers)
    text = str(found.value)
    assert text.startswith(f"{path}:3 does not fit its checksum")
    assert text.endswith("so restore this file from a copy")


def test_a_removed_line_of_the_journal(transfers: Path) -> None:
    path = transfers / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    with pytest.raises(DamagedError, match=r"journal\.jsonl:3 does not fit its checksum"):
        results.load(transfers)


def test_a_line_that_was_cut(transfers: Path) -> None:
    path = transfers / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1][:-10] + b"\n"
    path.write_bytes(b"".join(lines))
    with pytest.raises(DamagedError, match=r"journal\.jsonl:2 does not end in its checksum"):
        results.load(transfers)


@pytest.mark.parametrize("text", ["{}\n", "no JSON\n", '{"record":"trial"}\n', "[]\n", "\n"])
def test_a_journal_that_is_none(transfers: Path, text: str) -> None:
    (transfers / "journal.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(DamagedError, match=r"journal\.jsonl:1 is no record of a journal \("):
        results.load(transfers)


@pytest.mark.parametrize("text", ["", '{"record":"header"'])
def test_a_journal_without_a_header(transfers: Path, text: str) -> None:
    (transfers / "journal.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(DamagedError, match="has no header, so the run broke off before it began"):
        results.load(transfers)


def test_a_run_that_was_killed_while_it_wrote(transfers: Path) -> None:
    path = transfers / "journal.jsonl"
    whole = results.load(transfers)
    with path.open("ab") as file:
        file.write(b'{"record":"trial","cell":"tcp')
    with pytest.warns(IncompleteRunWarning, match="ends without a newline") as said:
        run = results.load(transfers)
    assert said[0].filename == __file__
    assert run.series.equals(whole.series)


def test_results_that_are_older_than_the_journal(transfers: Path, change_results: Rewrite) -> None:
    change_results(transfers, lambda all_of_it: all_of_it["trials"].pop())
    with pytest.warns(IncompleteRunWarning) as said:
        results.load(transfers)
    [one] = said
    count = len(json.loads((transfers / "results.json").read_text())["trials"]) + 1
    assert str(one.message) == (
        f"{transfers / 'results.json'} lacks 1 of the {count} trials in the journal: "
        f"write it again by `cipherbench report {transfers}`"
    )
    assert one.filename == __file__


def test_a_journal_without_checksums(transfers: Path, rewrite: Rewrite) -> None:
    rewrite(transfers, lambda record: record.update(format=5) if "format" in record else None)
    path = transfers / "journal.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        del line["sum"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert not results.load(transfers).series.empty
