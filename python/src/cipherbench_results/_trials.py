"""What only a journal has: time series and histograms of trials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from ._estimates import ROUND_TRIP, monitored_name
from ._files import parse
from ._frames import OF_CELL, Cells, frame
from ._names import NANO, unit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._files import Journal

Json = dict[str, Any]
Row = dict[str, Any]

SERIES = [
    *OF_CELL,
    "repeat",
    "valid",
    "source",
    "part",
    "way",
    "t_s",
    "width_s",
    "quantity",
    "unit",
    "value",
    "max",
]
LATENCY = [
    *OF_CELL,
    "repeat",
    "valid",
    "source",
    "part",
    "way",
    "at_load_percent",
    "load_frames_per_s",
    "above_s",
    "upto_s",
    "frames",
    "share",
    "share_upto",
]


# What the points of one series have in common, next to the columns of their trial.
_OF_SERIES = ("source", "part", "way", "quantity", "unit")


class _Table:
    """Rows that share most of their columns: a long run has millions of bins in few histograms."""

    def __init__(self, names: list[str]) -> None:
        self.heads: list[Row] = []
        self.of: list[int] = []
        self.values: dict[str, list[Any]] = {name: [] for name in names}

    def head(self, row: Row) -> int:
        """Add the common columns of rows, and return their place."""
        self.heads.append(row)
        return len(self.heads) - 1

    def add(self, head: int, *values: Any) -> None:
        """Add a row."""
        self.of.append(head)
        for column, value in zip(self.values.values(), values):
            column.append(value)

    def frame(self, columns: list[str]) -> pd.DataFrame:
        """Make the frame with these columns."""
        common = frame(self.heads, [name for name in columns if name not in self.values])
        made = common.take(self.of).reset_index(drop=True)
        for name, values in self.values.items():
            made[name] = pd.array(values, dtype="Int64" if name == "frames" else "float64")
        return made[columns]


def _measured(journal: Journal, known: Cells, *, invalid: bool) -> Iterator[tuple[Row, Json, Json]]:
    """Yield the columns, the planned cell and the measured outcome of each trial."""
    planned = journal.cells()
    for (cell_id, repeat), line in journal.trials.items():
        record = parse(line)
        outcome = record["outcome"]
        measured = outcome if outcome["kind"] == "measured" else outcome.get("measured")
        # By the results: `report` finds trials with contradictory counts, too.
        valid = known.outcomes.get((cell_id, repeat)) == "measured"
        if measured is None or cell_id not in known.all or not (valid or invalid):
            continue
        row = {**known.row(cell_id), "repeat": repeat, "valid": valid}
        yield row, planned[cell_id], measured


def series(journal: Journal, known: Cells, *, invalid: bool) -> pd.DataFrame:
    """Make a row for each value of each time series."""
    table = _Table(["t_s", "width_s", "value", "max"])
    for row, cell, measured in _measured(journal, known, invalid=invalid):
        # Points of one quantity are one after the other, or alternate with a few others.
        heads: dict[tuple[Any, ...], int] = {}
        for point in _points(cell, measured):
            point.setdefault("unit", unit(point["quantity"]))
            of_head = {key: point.get(key) for key in _OF_SERIES}
            key = tuple(of_head.values())
            if key not in heads:
                heads[key] = table.head({**row, **of_head})
            values = (point[name] for name in ("t_s", "width_s", "value"))
            table.add(heads[key], *values, point.get("max"))
    return table.frame(known.columns(SERIES))


def _points(cell: Json, measured: Json) -> Iterator[Row]:
    transfer = measured.get("transfer")
    if transfer:
        # Without a way the campaign is of a version that only sent from A to B.
        way = cell["measurement"].get("direction") or "a-to-b"
        backwards = transfer.get("reverse")
        yield from _intervals(transfer, "a-to-b" if backwards else str(way))
        if backwards:
            yield from _intervals(backwards, "b-to-a")
    if measured.get("latency"):
        interval = cell["measurement"].get("interval_ns")
        for place, time in enumerate(measured["latency"]["round_trips_ns"]):
            # Requests without a reply are not in the list, so that the times of later ones are
            # early by an interval each.
            at = None if interval is None else place * interval
            yield _point("ping", at, None, "round_trip_s", time * NANO)
    frames = measured.get("frames") or {}
    yield from _soak(frames)
    for disturbance in frames.get("disturbances") or []:
        yield from _disturbance(disturbance)
    yield from _devices(measured.get("device") or {})
    yield from _monitored(measured.get("monitored") or {})


def _point(
    source: str,
    at_ns: float | None,
    width_ns: float | None,
    name: str,
    value: float | None,
    **more: Any,
) -> Row:
    return {
        "source": source,
        "t_s": None if at_ns is None else at_ns * NANO,
        "width_s": None if width_ns is None else width_ns * NANO,
        "quantity": name,
        "value": value,
        **more,
    }


def _intervals(transfer: Json, way: str) -> Iterator[Row]:
    for interval in transfer["intervals"]:
        start, width = interval["start_ns"], interval["end_ns"] - interval["start_ns"]
        rate = interval["bytes"] * 8 / (width * NANO) if width > 0 else None
        yield _point("transfer", start, width, "payload_throughput_bps", rate, way=way)


def _soak(frames: Json) -> Iterator[Row]:
    """Yield the points of a soak: rates of all loaded directions together, from its first frame."""
    segments = frames.get("soak") or []
    began = segments[0]["started_unix_ns"] if segments else 0
    for segment in segments:
        since = segment["started_unix_ns"] - began
        points = segment["points"]
        length = frames["trials"][segment["trial"]]["duration_ns"]
        ends = [point["at_ns"] for point in points[1:]] + [length]
        part = f"segment {segments.index(segment) + 1}"
        for point, end in zip(points, ends):
            at, width = point["at_ns"], end - point["at_ns"]
            for name, value in _soak_values(point, width * NANO):
                yield _point("soak", since + at, width, name, value, part=part)
        for probe in segment.get("probes") or []:
            trial = probe["trial"]
            seconds = trial["duration_ns"] * NANO
            value = trial["received"] / seconds if seconds > 0 else None
            yield _point(
                "probe",
                probe["at_unix_ns"] - began,
                trial["duration_ns"],
                "received_frames_per_s",
                value,
                part=part,
            )


def _soak_values(point: Json, seconds: float) -> Iterator[tuple[str, float | None]]:
    if seconds > 0:
        yield "intended_frames_per_s", point["intended"] / seconds
        yield "received_frames_per_s", point["received"] / seconds
    yield "lost_frames", float(point["intended"] - point["received"])
    for key, name in (
        ("silent_ns", "silent_s"),
        ("p50_ns", "latency_p50_s"),
        ("p99_ns", "latency_p99_s"),
        ("max_ns", "latency_max_s"),
    ):
        if point.get(key) is not None:
            yield name, point[key] * NANO
    device = point.get("device") or {}
    if device.get("cpu_ns") is not None and device["wall_ns"] > 0:
        yield "device_cpu_cores", device["cpu_ns"] / device["wall_ns"]
    for key in ("resident_bytes", "rekeys", "desyncs"):
        if device.get(key) is not None:
            yield f"device_{key}", float(device[key])


def _disturbance(disturbance: Json) -> Iterator[Row]:
    part = f"trial {disturbance['trial'] + 1}"
    timeline: Json = disturbance.get("timeline") or {"bins": [], "bin_ns": 0}
    width = timeline["bin_ns"]
    for place, one in enumerate(timeline["bins"]):
        at, seconds = place * width, width * NANO
        yield _point(
            "timeline", at, width, "intended_frames_per_s", one["intended"] / seconds, part=part
        )
        yield _point(
            "timeline", at, width, "received_frames_per_s", one["received"] / seconds, part=part
        )
        longest = one.get("latency_ns_max")
        if longest is not None and one["received"]:
            yield _point("timeline", at, width, "latency_max_s", longest * NANO, part=part)
    for event in disturbance["events"]:
        of_event = {"part": event["name"]}
        at, took = event["at_ns"], event.get("took_ns")
        yield _point("event", at, took, "lost_frames", float(event["lost"]), **of_event)
        for key, name in (
            ("took_ns", "took_s"),
            ("first_ns", "first_frame_s"),
            ("outage_ns", "outage_s"),
            ("slowest_ns", "latency_max_s"),
        ):
            if event.get(key) is not None:
                yield _point("event", at, took, name, event[key] * NANO, **of_event)


def _devices(device: Json) -> Iterator[Row]:
    names = [one["member"] for one in device.get("devices") or []]
    speed: Json = device.get("speed") or {"devices": [], "span_ns": 0}
    for one in speed["devices"]:
        slices = one.get("slices") or []
        width = speed["span_ns"] / len(slices) if slices else 0
        for place, operations in enumerate(slices):
            rate = operations / (width * NANO) if width > 0 else None
            at, part = place * width, names[one["device"]]
            yield _point("speed", at, width, "operations_per_s", rate, part=part)
    segments = device.get("fatigue") or []
    began = segments[0]["started_unix_ns"] if segments else 0
    for segment in segments:
        since = segment["started_unix_ns"] - began
        for one in segment["devices"]:
            for point in one["points"]:
                at, part = since + point["at_ns"], names[one["device"]]
                # Since the start of the segment.
                for key in ("right", "bad"):
                    name = f"{key}_operations"
                    yield _point("fatigue", at, None, name, float(point[key]), part=part)


def _monitored(monitored: Json) -> Iterator[Row]:
    for device in monitored.get("devices") or []:
        for one in device["series"]:
            name, unit_of_it = monitored_name(one)
            for point in one["points"]:
                yield _point(
                    "monitored",
                    point["at_ns"],
                    one["point_ns"],
                    name,
                    point["mean_milli"] / 1000,
                    max=point["max_milli"] / 1000,
                    unit=unit_of_it,
                    part=device["name"],
                )


def latency(journal: Journal, known: Cells, *, invalid: bool) -> pd.DataFrame:
    """Make a row for each bin of each histogram."""
    table = _Table(["above_s", "upto_s", "frames", "share", "share_upto"])
    for row, _, measured in _measured(journal, known, invalid=invalid):
        for of_histogram, bins in _histograms(measured):
            head = table.head({**row, **of_histogram})
            total = sum(count for _, count in bins) or 1
            above, before = 0, 0
            for upto, count in bins:
                before += count
                times = (above * NANO, upto * NANO)
                table.add(head, *times, count, count / total, before / total)
                above = upto
    return table.frame(known.columns(LATENCY))


Bins = list[tuple[int, int]]


def _bins(buckets: list[Json], count: str = "frames") -> Bins:
    return [(one["upto_ns"], one[count]) for one in buckets]


def _counted(times: list[int]) -> Bins:
    """Return exact times as bins."""
    counts: dict[int, int] = {}
    for time in sorted(times):
        counts[time] = counts.get(time, 0) + 1
    return list(counts.items())


def _histograms(measured: Json) -> Iterator[tuple[Row, Bins]]:
    ping = measured.get("latency") or {}
    if ping:
        yield {"source": "ping"}, _counted(ping["round_trips_ns"])
    for loaded in ping.get("loaded") or []:
        of_load = {"source": "ping-loaded", "way": loaded["direction"]}
        yield of_load, _counted(loaded["round_trips_ns"])
    frames = measured.get("frames") or {}
    for one in frames.get("latency") or []:
        yield from _under_load("frames", one)
    for step in frames.get("service") or []:
        if step.get("latency"):
            yield from _under_load("service", step["latency"], _step(step["step"]))
    for segment in frames.get("soak") or []:
        yield {"source": "soak", "part": f"start {segment['start']}"}, _bins(segment["histogram"])
    for disturbance in frames.get("disturbances") or []:
        part = f"trial {disturbance['trial'] + 1}"
        yield {"source": "disturbance", "part": part}, _bins(disturbance["histogram"])
    for size in (measured.get("http") or {}).get("objects") or []:
        for key in ("first_byte", "last_byte"):
            of_size = {
                "source": f"http-{key.replace('_', '-')}",
                "part": f"{size['object_bytes']} B",
            }
            yield of_size, _bins(size[key], "count")


def _step(step: str | Json) -> str:
    """Return the name of a step of a service as results.json has it."""
    if isinstance(step, dict):
        return f"{step['cir']} % of CIR"
    return "CIR + EIR" if step == "eir" else step


def _under_load(source: str, one: Json, part: str | None = None) -> Iterator[tuple[Row, Bins]]:
    of_load = {
        "source": source,
        "part": part,
        "at_load_percent": one.get("percent"),
        "load_frames_per_s": one.get("load"),
    }
    if one.get("round_trip"):
        of_load["way"] = ROUND_TRIP
    yield of_load, _bins(one["histogram"])
    for way, histogram in zip(("a-to-b", "b-to-a"), one.get("directions") or []):
        yield {**of_load, "way": way}, _bins(histogram)
    if one.get("round_trip"):
        residence = one["round_trip"]["residence"]
        yield {**of_load, "source": "reflector"}, _bins(residence)
