"""The frames that come from results.json: trials, cells, ratios and warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from ._estimates import Estimate, estimates, figure, first_goal
from ._names import NANO, coordinates

if TYPE_CHECKING:
    from ._files import RunFiles

Json = dict[str, Any]
Row = dict[str, Any]

OF_CELL = ["cell", "group", "dut", "procedure", "baseline", "calibration"]
_OF_QUANTITY = ["quantity", "unit", "is_figure", "goal", "at_load_percent", "way", "part"]
_OF_ESTIMATE = [
    "mean",
    "low",
    "high",
    "n",
    "largest_deviation",
    "largest_deviation_percent",
    "median",
    "min",
    "max",
    "standard_deviation",
]
_OF_OUTCOME = ["status", "valid", "repeats_measured", "repeats_planned", "limit", "marks", "reason"]
CELLS = [*OF_CELL, *_OF_QUANTITY, *_OF_ESTIMATE, *_OF_OUTCOME]
_OF_TRIAL = ["repeat", "started", "took_s", "outcome", "valid", "reason", "failed_checks", "marks"]
TRIALS = [*OF_CELL, *_OF_TRIAL]
RATIOS = [
    "cell",
    "group",
    "dut",
    "baseline_dut",
    "baseline_cell",
    "quantity",
    "ratio",
    "low",
    "high",
    "differs",
    "pairs",
    "bound",
    "apart_s",
]
WARNINGS = ["kind", "cell", "text", "advice"]

_STRINGS = {
    *("cell", "group", "dut", "procedure", "quantity", "unit", "goal", "way", "part", "status"),
    *("limit", "marks", "reason", "outcome", "failed_checks", "baseline_dut", "baseline_cell"),
    *("bound", "kind", "text", "advice", "source"),
}
_SWITCHES = {"baseline", "calibration", "is_figure", "valid", "differs"}
_COUNTS = {"repeat", "n", "repeats_measured", "repeats_planned", "pairs", "frames"}


class Cells:
    """The cells of a run, with their coordinates and marks."""

    def __init__(self, files: RunFiles) -> None:
        """Index the cells of a run."""
        planned = files.journal.cells() if files.journal else {}
        self.all: dict[str, Json] = {cell["id"]: cell for cell in files.results["cells"]}
        self.coordinates = {
            cell_id: coordinates(cell, planned.get(cell_id)) for cell_id, cell in self.all.items()
        }
        # Of any cell, in the order of their first appearance; values that no cell has are no
        # columns.
        self.axes = list(
            dict.fromkeys(
                axis
                for of_cell in self.coordinates.values()
                for axis, value in of_cell.items()
                if value is not None
            )
        )
        self.outcomes = {
            (trial["cell"], int(trial["repeat"])): trial["outcome"]
            for trial in files.results["trials"]
        }
        self._marks = {cell_id: _marks(cell) for cell_id, cell in self.all.items()}
        for warning in files.results["warnings"]:
            for cell_id in warning["cells"]:
                self._marks.setdefault(cell_id, []).append(warning["kind"])

    def row(self, cell_id: str) -> Row:
        """Return the columns that each row of a cell has."""
        cell = self.all[cell_id]
        row = {
            "cell": cell_id,
            "group": cell["group"],
            "dut": cell["dut"],
            "procedure": cell["protocol"],
            "baseline": cell["baseline"],
            "calibration": cell["calibration"],
        }
        of_cell = self.coordinates[cell_id]
        return {**row, **{axis: of_cell.get(axis) for axis in self.axes}}

    def marks(self, cell_id: str) -> str:
        """Return the marks of a cell, separated by blanks: its state, and kinds of warnings."""
        return " ".join(dict.fromkeys(self._marks.get(cell_id, [])))

    def columns(self, names: list[str]) -> list[str]:
        """Return a frame's columns, with those of the coordinates behind those of the cell."""
        return [*OF_CELL, *self.axes, *[name for name in names if name not in OF_CELL]]


def _marks(cell: Json) -> list[str]:
    marks = [] if cell["status"] == "measured" else [str(cell["status"])]
    if cell.get("late_repeats"):
        marks.append("late-repeats")
    if cell.get("insecure") is not None:
        marks.append("insecure")
    return marks


def frame(rows: list[Row], columns: list[str]) -> pd.DataFrame:
    """Make a frame with these columns in any case, and with the same types if it is empty."""
    made = pd.DataFrame(rows, columns=columns)
    for name in columns:
        column = made[name]
        if name == "started":
            made[name] = pd.to_datetime(column, utc=True)
        elif name in _STRINGS:
            made[name] = column.astype("object").where(column.notna(), None)
        elif name in _SWITCHES:
            made[name] = column.astype("boolean")
        elif name in _COUNTS:
            made[name] = column.astype("Int64")
        elif column.isna().all():
            made[name] = column.astype("float64")
    return made


def cells(known: Cells) -> pd.DataFrame:
    """Make a row for each quantity of each cell, and one for each cell without a figure."""
    rows: list[Row] = []
    for cell_id, cell in known.all.items():
        repeats = cell["repeats"]
        common = {
            **known.row(cell_id),
            "is_figure": False,
            "status": cell["status"],
            "valid": cell["status"] in ("measured", "partly"),
            "repeats_measured": repeats["measured"],
            "repeats_planned": repeats["planned"],
            "limit": (cell.get("verdict") or {}).get("limit"),
            "marks": known.marks(cell_id),
            "reason": "; ".join(
                f"repeat {reason['repeat']}: {reason['text']}" for reason in cell["reasons"]
            )
            or None,
        }
        found = estimates(cell)
        of_figure = figure(cell, found)
        rows += [
            {**common, **_of_estimate(estimate), "is_figure": place == of_figure}
            for place, estimate in enumerate(found)
        ]
        if not found:
            rows.append(common)
    return frame(rows, known.columns(CELLS))


def _of_estimate(estimate: Estimate) -> Row:
    low, high = estimate.interval()
    place = estimate.place
    return {
        "quantity": estimate.quantity,
        "unit": estimate.unit,
        "goal": place.goal,
        "at_load_percent": place.at_load_percent,
        "way": place.way,
        "part": place.part,
        "mean": estimate.scaled("mean"),
        "low": low,
        "high": high,
        "n": estimate.value["n"],
        "largest_deviation": estimate.scaled("largest_distance"),
        "largest_deviation_percent": estimate.value.get("largest_distance_percent"),
        "median": estimate.scaled("median"),
        "min": estimate.scaled("min"),
        "max": estimate.scaled("max"),
        "standard_deviation": estimate.scaled("standard_deviation"),
    }


def trials(known: Cells, results: Json) -> pd.DataFrame:
    """Make a row for each trial, with a column for each quantity of any cell."""
    figures: dict[tuple[str, int], Row] = {}
    names: dict[str, None] = {}
    for cell_id, cell in known.all.items():
        goal = first_goal(cell)
        for estimate in estimates(cell):
            name = estimate.quantity + estimate.place.suffix(goal)
            names[name] = None
            for repeat, value in estimate.by_repeat().items():
                # The first one of two with one name is the figure.
                figures.setdefault((cell_id, repeat), {}).setdefault(name, value)
    rows: list[Row] = []
    for trial in results["trials"]:
        cell_id, repeat = trial["cell"], int(trial["repeat"])
        valid = trial["outcome"] == "measured"
        failed = [check["name"] for check in trial["checks"] if not check["passed"]]
        row = {
            **known.row(cell_id),
            "repeat": repeat,
            "started": trial["started_utc"],
            "took_s": trial["duration_ns"] * NANO,
            "outcome": trial["outcome"],
            "valid": valid,
            "reason": "; ".join(trial["reasons"]) or None,
            "failed_checks": " ".join(failed),
            "marks": known.marks(cell_id),
        }
        # An invalid trial has no figure.
        rows.append({**row, **(figures.get((cell_id, repeat), {}) if valid else {})})
    return frame(rows, [*known.columns(TRIALS), *names])


_METRICS = {
    "payload-throughput": "payload_throughput_bps",
    "payload-bits-per-cpu-second": "cpu_payload_bits_per_cpu_s",
    "latency-p50": "round_trip_p50_s",
    "transactions-per-second": "http_transactions_per_s",
    "frame-rate": "forwarded_frames_per_s",
}


def ratios(known: Cells, results: Json) -> pd.DataFrame:
    """Make a row for each quantity of a cell that is compared with the baseline of its group."""
    rows: list[Row] = []
    for found in results["comparisons"]:
        apart = found.get("apart_ns")
        row = {key: found.get(key) for key in RATIOS}
        row["quantity"] = _METRICS.get(found["metric"], found["metric"])
        if found["metric"] == "frame-rate" and first_goal(known.all[found["cell"]]) is not None:
            row["quantity"] = "throughput_frames_per_s"
        row["baseline_dut"] = found["baseline"]
        row["apart_s"] = None if apart is None else apart * NANO
        of_cell = known.row(found["cell"])
        rows.append({**{axis: of_cell[axis] for axis in known.axes}, **row})
    of_place = RATIOS[:5]
    rest = [name for name in RATIOS if name not in of_place]
    return frame(rows, [*of_place, *known.axes, *rest])


def warnings_of(results: Json) -> pd.DataFrame:
    """Make a row for each warning and cell; one about the whole run has no cell."""
    rows: list[Row] = [
        {"kind": one["kind"], "cell": cell, "text": one["text"], "advice": one["advice"]}
        for one in results["warnings"]
        for cell in one["cells"] or [None]
    ]
    return frame(rows, WARNINGS)
