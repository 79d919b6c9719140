"""A loaded run."""

from __future__ import annotations

import warnings
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from . import _frames, _trials
from ._errors import DamagedError, PartMissingWarning
from ._files import RunFiles, read, shown

if TYPE_CHECKING:
    import os

    import pandas as pd


Made = TypeVar("Made")


class Run:
    """A run of Cipherbench as frames. Each frame is made once it is asked for, and then kept."""

    def __init__(self, files: RunFiles, *, include_invalid: bool) -> None:
        """Keep the files of a run: `load` makes runs."""
        self._files = files
        self._include_invalid = include_invalid

    def __repr__(self) -> str:
        """Name the run, its start and where it was loaded."""
        return f"<Run {self.name} of {self.started}, {self._files.place}>"

    @property
    def path(self) -> Path:
        """The run's folder, or its results.json if that was loaded alone."""
        return self._files.place

    @property
    def results(self) -> dict[str, Any]:
        """All of results.json, as docs/schema/result-1.json describes it."""
        return self._files.results

    @cached_property
    def name(self) -> str:
        """The name of the campaign."""
        return str(self._made(lambda: self.results["run"]["name"]))

    @cached_property
    def started(self) -> str:
        """The start of the run, ISO 8601."""
        return str(self._made(lambda: self.results["run"]["started_utc"]))

    @cached_property
    def trials(self) -> pd.DataFrame:
        """A row for each trial: its cell, its repeat, whether it is valid, and its figures."""
        return self._made(lambda: _frames.trials(self._cells, self.results))

    @cached_property
    def cells(self) -> pd.DataFrame:
        """A row for each quantity of each cell: mean, interval, unit and marks."""
        return self._made(lambda: _frames.cells(self._cells))

    @cached_property
    def ratios(self) -> pd.DataFrame:
        """A row for each quantity of a cell compared with the baseline of its group."""
        return self._made(lambda: _frames.ratios(self._cells, self.results))

    @cached_property
    def warnings(self) -> pd.DataFrame:
        """A row for each warning and cell; a warning about the whole run has no cell."""
        return self._made(lambda: _frames.warnings_of(self.results))

    @property
    def series(self) -> pd.DataFrame:
        """A row for each value of each time series; empty without a journal."""
        self._warn_without_journal("time series")
        return self._series

    @property
    def latency(self) -> pd.DataFrame:
        """A row for each bin of each histogram of latencies; empty without a journal."""
        self._warn_without_journal("histograms of latencies")
        return self._latency

    @cached_property
    def _series(self) -> pd.DataFrame:
        return self._of_journal(_trials.series, _trials.SERIES)

    @cached_property
    def _latency(self) -> pd.DataFrame:
        return self._of_journal(_trials.latency, _trials.LATENCY)

    @cached_property
    def _cells(self) -> _frames.Cells:
        return _frames.Cells(self._files)

    def _of_journal(self, make: Callable[..., pd.DataFrame], columns: list[str]) -> pd.DataFrame:
        journal = self._files.journal
        if journal is None:
            return self._made(lambda: _frames.frame([], self._cells.columns(columns)))
        return self._made(
            lambda: make(journal, self._cells, invalid=self._include_invalid),
            journal.path,
        )

    def _warn_without_journal(self, what: str) -> None:
        if self._files.journal is not None:
            return
        beside = self._files.folder_with_journal
        todo = (
            f"load its folder, {beside}"
            if beside
            else "load the run's folder, which has the journal"
        )
        warnings.warn(
            f"{self.path} has no {what}, which are only in a run's journal: {todo}",
            PartMissingWarning,
            # The caller of the property.
            stacklevel=3,
        )

    def _made(self, make: Callable[[], Made], path: Path | None = None) -> Made:
        """Make a part of the run; a file with another structure than its format is damaged."""
        try:
            return make()
        except (
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            IndexError,
            OverflowError,
        ) as error:
            path = path or self._files.results_path
            raise DamagedError(
                f"{path} has another structure than its format ({type(error).__name__}: "
                f"{shown(str(error))}): restore it from a copy, or write the results again by "
                "`cipherbench report` if the journal is unchanged",
            ) from error


def load(path: str | os.PathLike[str], *, include_invalid: bool = False) -> Run:
    """Load a run.

    `path` is the folder of a run, a folder with one run in it (a job in the cache of a fleet's
    runs), or a results.json. With `include_invalid`, `series` and `latency` contain invalid trials
    too, and `valid` distinguishes them.

    Raises `ResultsError` with one sentence if there is no run, it is damaged, or it has a format
    version that this package does not read.
    """
    return Run(read(Path(path)), include_invalid=include_invalid)
