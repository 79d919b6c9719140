"""Errors and warnings: the text of each is one sentence with the problem, the path, a remedy."""

from __future__ import annotations


class ResultsError(Exception):
    """A run that cannot be read."""


class NotFoundInPathError(ResultsError):
    """The path does not exist, or has no run."""


class FormatVersionError(ResultsError):
    """The file has a format version that this package does not read."""


class DamagedError(ResultsError):
    """The file was cut, changed, or never written by Cipherbench."""


class PartMissingWarning(UserWarning):
    """The loaded files do not contain this part of the run, so that its frame is empty."""


class IncompleteRunWarning(UserWarning):
    """The run was interrupted, or its results are older than its journal."""
