"""Runs of Cipherbench as tidy pandas frames: `load(path)`."""

from ._errors import (
    DamagedError,
    FormatVersionError,
    IncompleteRunWarning,
    NotFoundInPathError,
    PartMissingWarning,
    ResultsError,
)
from ._run import Run, load

__all__ = [
    "DamagedError",
    "FormatVersionError",
    "IncompleteRunWarning",
    "NotFoundInPathError",
    "PartMissingWarning",
    "ResultsError",
    "Run",
    "load",
]
