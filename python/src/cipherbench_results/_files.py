"""Finds and reads the files of a run: results.json, and the journal with its checksums."""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from ._errors import (
    DamagedError,
    FormatVersionError,
    IncompleteRunWarning,
    NotFoundInPathError,
)

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]
"""An object of JSON."""

RESULTS = "results.json"
JOURNAL = "journal.jsonl"

_SCHEMA_NAME = "cipherbench-result"
_SCHEMA_VERSION = 1
_FORMAT_OLDEST = 1
_FORMAT_NEWEST = 8
_FORMAT_CHECKED = 6
# The end of a line with a checksum: `,"sum":"`, 32 digits, `"}` and the newline.
_SUM_KEY = b',"sum":"'
_SUM_END = b'"}\n'
_SUM_DIGITS = 32
_SUM_BYTES = len(_SUM_KEY) + _SUM_DIGITS + len(_SUM_END)
_SHOWN_MAX = 60


@dataclass
class Journal:
    """The records of a journal that are evaluated."""

    path: Path
    header: Json
    # As bytes: the histograms of a long run take much more memory as objects.
    trials: dict[tuple[str, int], bytes] = field(default_factory=dict)

    def cells(self) -> dict[str, Json]:
        """Return the cells of the plan by their ids."""
        return {cell["id"]: cell for cell in self.header["plan"]["cells"]}


@dataclass
class RunFiles:
    """What was read of a run."""

    place: Path
    results_path: Path
    results: Json
    journal: Journal | None
    # The folder of a results.json that was loaded alone, if a journal is next to it.
    folder_with_journal: Path | None


def read(path: Path) -> RunFiles:
    """Read a run's folder, a folder with one run in it, or a results.json."""
    try:
        if path.is_dir():
            folder = _run_folder(path)
            journal_path, results_path = folder / JOURNAL, folder / RESULTS
            journal = _read_journal(journal_path) if journal_path.is_file() else None
            if not results_path.is_file():
                raise NotFoundInPathError(
                    f"{folder} has a journal but no {RESULTS}: "
                    f"write it by `cipherbench report {folder}`",
                )
            results = _read_results(results_path)
            if journal is not None:
                _compare(folder, results, journal)
            return RunFiles(folder, results_path, results, journal, None)
        if not path.exists():
            raise NotFoundInPathError(
                f"{path} does not exist: give the folder of a run, such as "
                f"runs/20261120T113000Z-quick, or its {RESULTS}",
            )
        if path.suffix == ".jsonl":
            raise NotFoundInPathError(
                f"{path} is a journal, which has no figures of cells: "
                f"give its folder, {path.parent}",
            )
        results = _read_results(path)
        beside = path.parent if (path.parent / JOURNAL).is_file() else None
        return RunFiles(path, path, results, None, beside)
    except OSError as error:
        reason = error.strerror or str(error)
        raise NotFoundInPathError(
            f"{error.filename or path} cannot be read ({reason}): "
            "check that it is a file of a run, and who may read it",
        ) from error


def _has_run(folder: Path) -> bool:
    return (folder / JOURNAL).is_file() or (folder / RESULTS).is_file()


def _run_folder(path: Path) -> Path:
    """Return the run's folder: the path itself, or the only run below it.

    The cache of `cipherbench compare fleet:JOB` has a folder for each job, with its run in it.
    """
    if _has_run(path):
        return path
    # Hidden folders are runs that are still being fetched.
    below = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
    runs = sorted(entry for entry in below if entry.is_dir() and _has_run(entry))
    if len(runs) == 1:
        return runs[0]
    if runs:
        raise NotFoundInPathError(
            f"{path} is a folder with {len(runs)} runs: give one of them, such as {runs[-1]}",
        )
    raise NotFoundInPathError(
        f"{path} is not the folder of a run, since it has neither {JOURNAL} nor {RESULTS}: "
        "give a folder such as runs/20261120T113000Z-quick",
    )


def shown(value: Any) -> str:
    """Return a value from a file as a short text without control characters."""
    text = ascii(value)
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "…"


def _no_constant(word: str) -> NoReturn:
    """Refuse `NaN` and `Infinity`, which Python reads although JSON has no such numbers."""
    raise ValueError(f"{word} is not JSON")


def parse(text: bytes) -> Json:
    """Parse an object; the text of a `ValueError` is the mistake in it."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError("it is no object")  # noqa: TRY004
    return value


def _read_results(path: Path) -> Json:
    try:
        results = parse(path.read_bytes())
    except ValueError as error:
        raise DamagedError(
            f"{path} is damaged or no JSON ({error}): copy it again, or write it by "
            f"`cipherbench report {path.parent}` if the journal is next to it",
        ) from error
    schema = results.get("schema")
    name, _, version = str(schema).partition("/")
    if name != _SCHEMA_NAME or not version.isdecimal():
        raise DamagedError(
            f"{path} is no result of Cipherbench, since its key `schema` is {shown(schema)}: "
            f"give the folder of a run, or its {RESULTS}",
        )
    if int(version) != _SCHEMA_VERSION:
        todo = (
            "install a newer version of cipherbench-results"
            if int(version) > _SCHEMA_VERSION
            else f"write it again by `cipherbench report {path.parent}`"
        )
        raise FormatVersionError(
            f"{path} has format {shown(schema)}, and this version of cipherbench-results reads "
            f"{_SCHEMA_NAME}/{_SCHEMA_VERSION}: {todo}",
        )
    return results


class _Reader:
    """Reads a journal line by line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal: Journal | None = None
        # Line of the record that is read, from 1, and the digits of the line before it.
        self.number = 0
        self.before = b""

    def damaged(self, problem: str) -> DamagedError:
        return DamagedError(
            f"{self.path}:{self.number} {problem}: a journal is only ever appended to, so restore "
            "this file from a copy",
        )

    def read(self, line: bytes) -> None:
        self.number += 1
        try:
            if self.journal is None:
                # Before its checksum: the format in it decides whether lines have one.
                self.journal = self.header(line)
                self.check(line)
                return
            # Before the record: a changed line is reported as changed, not as bad JSON.
            self.check(line)
            record = parse(line)
            if record["record"] == "trial":
                # A later trial of a cell and repeat replaces the one before.
                self.journal.trials[str(record["cell"]), int(record["repeat"])] = line
        except KeyError as error:
            raise self.damaged(f"is no record of a journal (it has no key {error})") from error
        except (ValueError, TypeError) as error:
            raise self.damaged(f"is no record of a journal ({error})") from error

    def header(self, line: bytes) -> Journal:
        record = parse(line)
        if record["record"] != "header":
            raise ValueError(f"it begins with {shown(record['record'])} instead of a header")
        version = record["format"]
        if not isinstance(version, int) or version < _FORMAT_OLDEST:
            raise ValueError(f"its format is {shown(version)}")
        if version > _FORMAT_NEWEST:
            raise FormatVersionError(
                f"{self.path} has journal format {shown(version)}, and this version of "
                f"cipherbench-results reads formats {_FORMAT_OLDEST} to {_FORMAT_NEWEST}: install "
                "a newer one",
            )
        return Journal(self.path, record)

    def check(self, line: bytes) -> None:
        """Check the checksum of a line, which covers all lines before it too."""
        if self.journal is None or self.journal.header["format"] < _FORMAT_CHECKED:
            return
        body, digits = line[:-_SUM_BYTES], line[-len(_SUM_END) - _SUM_DIGITS : -len(_SUM_END)]
        if line[len(body) :] != _SUM_KEY + digits + _SUM_END:
            raise self.damaged("does not end in its checksum, so it was cut or changed")
        if digits != hashlib.sha256(self.before + body).hexdigest()[:_SUM_DIGITS].encode():
            raise self.damaged(
                "does not fit its checksum, so it was changed, or a line before it was changed or "
                "removed",
            )
        self.before = digits


def _read_journal(path: Path) -> Journal:
    reader = _Reader(path)
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                reader.read(line)
            elif reader.journal is not None:
                # Bytes without a newline are no record, even if they are valid JSON: the write of
                # that line did not end.
                warnings.warn(
                    f"{path}:{reader.number + 1} ends without a newline, so the run was killed "
                    "while it wrote this line, which is ignored: go on by "
                    f"`cipherbench resume {path.parent}`",
                    IncompleteRunWarning,
                    # The caller of `load`.
                    stacklevel=4,
                )
    if reader.journal is None:
        raise DamagedError(
            f"{path} has no header, so the run broke off before it began: nothing was measured, "
            "so delete the folder and run again",
        )
    return reader.journal


def _compare(folder: Path, results: Json, journal: Journal) -> None:
    """Warn if the results are of an earlier state of the journal."""
    try:
        evaluated = {(trial["cell"], trial["repeat"]) for trial in results["trials"]}
    except (KeyError, TypeError):
        # Reported with its place once a frame is asked for.
        return
    later = len(journal.trials.keys() - evaluated)
    if later:
        warnings.warn(
            f"{folder / RESULTS} lacks {later} of the {len(journal.trials)} trials in the journal: "
            f"write it again by `cipherbench report {folder}`",
            IncompleteRunWarning,
            stacklevel=4,
        )
