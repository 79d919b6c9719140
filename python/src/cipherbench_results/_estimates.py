"""The estimates in a cell of results.json: each quantity with its repeats, mean and interval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ._names import quantity, slug, unit

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

# Paths in a cell, without indices, and the words that their quantities begin with. A path that is
# not here adds its last key.
_WORDS: dict[tuple[str, ...], list[str]] = {
    ("bulk",): [],
    ("bulk", "directions"): [],
    # A ping times there and back; `latency_…` is one way, of frames under a load.
    ("latency",): ["round_trip"],
    ("frames",): [],
    ("frames", "throughput", "goals"): [],
    ("frames", "throughput", "goals", "lower"): ["throughput"],
    ("frames", "throughput", "goals", "upper"): ["throughput", "upper"],
    ("frames", "throughput", "goals", "conditional_throughput"): ["conditional", "throughput"],
    ("frames", "loads"): [],
    ("frames", "directions"): [],
    ("frames", "at_evidence"): ["evidence"],
    ("frames", "service", "steps"): ["service"],
    ("frames", "service", "steps", "load"): ["service"],
    ("frames", "back_to_back"): [],
    ("frames", "recovery"): [],
    ("frames", "soak", "load"): ["soak"],
    ("frames", "disturbance"): [],
    ("packet_cost",): ["per_packet"],
    ("device",): [],
    ("device", "speed"): [],
    ("device", "speed", "members"): [],
    # Of one operation, as results.csv has it.
    ("device", "speed", "latency_p50_ns"): ["operation", "p50", "ns"],
    ("device", "speed", "latency_p99_ns"): ["operation", "p99", "ns"],
}
# `mrr` has the figures of `loads` again.
_LEFT_OUT = {("frames", "mrr")}
# The way of latencies there and back.
ROUND_TRIP = "round-trip"
# The counts of a load in the trials of one kind: `quiet_lost_ppm`.
_LOADS = {("quiet", "load"), ("disturbed", "load")}
# Keys that distinguish the entries of a list, with the column for each.
_LISTS = {
    "goal": "goal",
    "direction": "way",
    "percent": "at_load_percent",
    "member": "part",
    "step": "part",
    "object_bytes": "part",
    "load": "part",
}
# The figure of a cell by its procedure; `kat` and `fatigue` have counts only.
_FIGURES = {
    "tcp": "payload_throughput_bps",
    "udp": "payload_throughput_bps",
    "ping": "round_trip_p50_s",
    "http": "http_transactions_per_s",
    "flows": "http_transactions_per_s",
    "video": "video_intact_ratio",
    "ike": "ike_completed_per_s",
    "throughput": "throughput_frames_per_s",
    "load": "forwarded_frames_per_s",
    "mrr": "forwarded_frames_per_s",
    "loss-curve": "forwarded_frames_per_s",
    "latency": "latency_p50_s",
    "back-to-back": "burst_frames",
    "recovery": "recovery_s",
    "service": "service_forwarded_frames_per_s",
    "soak": "soak_forwarded_frames_per_s",
    "rekey": "rekey_outage_s",
    "failover": "failover_outage_s",
    "reset": "reset_outage_s",
    "setup": "setup_all_carry_s",
    "desync": "desync_outage_s",
    "hostile": "hostile_forwarded_ratio",
    "speed": "operations_per_s",
}


@dataclass(frozen=True)
class Place:
    """Distinguishes quantities of one name in one cell; each part is absent by default."""

    goal: str | None = None
    at_load_percent: float | None = None
    way: str | None = None
    part: str | None = None

    def suffix(self, first_goal: str | None) -> str:
        """Return the end of a column's name in `trials`, after the quantity.

        The first goal is the figure of its cell, and has nothing.
        """
        words = []
        if self.goal is not None and self.goal != first_goal:
            words += ["goal", slug(self.goal)]
        if self.way is not None:
            words.append(slug(self.way))
        if self.part is not None:
            words.append(slug(self.part))
        if self.at_load_percent is not None:
            words.append(f"at_{self.at_load_percent:g}_percent")
        return "".join(f"_{word}" for word in words)


@dataclass(frozen=True)
class Estimate:
    """A quantity of a cell."""

    quantity: str
    unit: str
    scale: float
    place: Place
    value: Json

    def scaled(self, key: str) -> float | None:
        """Return a number of the estimate in the unit of the quantity."""
        number = self.value.get(key)
        return None if number is None else float(number) * self.scale

    def interval(self) -> tuple[float | None, float | None]:
        """Return the ends of the 95 % interval, without two repeats both `None`."""
        interval = self.value["interval_95"]
        if interval["kind"] != "student-t":
            return None, None
        return float(interval["low"]) * self.scale, float(interval["high"]) * self.scale

    def by_repeat(self) -> dict[int, float]:
        """Return the value of each repeat; of an estimate over events, the mean of its events."""
        found: dict[int, list[float]] = {}
        for sample in self.value["values"]:
            found.setdefault(int(sample["repeat"]), []).append(float(sample["value"]))
        return {at: sum(of) / len(of) * self.scale for at, of in found.items()}


def estimates(cell: Json) -> list[Estimate]:
    """Return the quantities of a cell."""
    found: list[Estimate] = []
    sections = ("bulk", "latency", "http", "video", "ike", "frames", "device", "cpu", "packet_cost")
    for section in sections:
        value = cell.get(section)
        if section == "bulk" and value:
            value = _without_copies(value)
        found += _below(value, (section,), _words((section,), []), Place())
    for energy in cell.get("energy") or []:
        place = Place(part="+".join(energy["devices"]))
        for key, value in energy.items():
            if _is_estimate(value):
                found.append(
                    _estimate(["energy", key] if key == "carried_bps" else [key], value, place)
                )
    for monitored in cell.get("monitored") or []:
        if monitored.get("mean") is not None:
            name, unit_of_it = monitored_name(monitored)
            place = Place(part=monitored["device"])
            found.append(Estimate(name, unit_of_it, 1.0, place, monitored["mean"]))
    return found


def figure(cell: Json, found: list[Estimate]) -> int | None:
    """Return the place of the estimate that is the cell's figure; of several loads the first."""
    wanted = _FIGURES.get(cell["protocol"])
    places = (place for place, one in enumerate(found) if one.quantity == wanted)
    return next(places, None)


def monitored_name(series: Json) -> tuple[str, str]:
    """Return the name and the unit of a value that a box or a machine reported."""
    suffix = {"%": "percent", "°C": "c", "W": "w"}.get(series["unit"], slug(series["unit"]))
    per_s = "_per_s" if series["kind"] == "counter" else ""
    unit_of_it = f"{series['unit']}/s" if per_s else series["unit"]
    return f"monitored_{slug(series['name'])}_{suffix}{per_s}", unit_of_it


def first_goal(cell: Json) -> str | None:
    """Return the goal of the search that is the cell's figure."""
    search = (cell.get("frames") or {}).get("throughput") or {}
    goals = search.get("goals") or []
    return str(goals[0]["goal"]) if goals else None


def _without_copies(bulk: Json) -> Json:
    """Return a transfer without the figures of its only direction that it has itself."""
    directions = bulk.get("directions") or []
    if len(directions) != 1:
        return bulk
    rest = {key: value for key, value in directions[0].items() if key not in bulk}
    return {**bulk, "directions": [rest]}


def _is_estimate(value: Any) -> bool:
    return isinstance(value, dict) and "interval_95" in value and "values" in value


def _estimate(parts: list[str], value: Json, place: Place) -> Estimate:
    name, scale = quantity(parts)
    return Estimate(name, unit(name), scale, place, value)


def _words(path: tuple[str, ...], above: list[str]) -> list[str]:
    # Of events, those that ended: `rekey_outage_s`.
    if path[-1] in ("ended_ns", "shares") or path[-2:] in _LOADS:
        return above
    return _WORDS.get(path, [*above, path[-1]] if len(path) > 1 else [path[-1]])


def _below(value: Any, path: tuple[str, ...], words: list[str], place: Place) -> Iterator[Estimate]:
    if path in _LEFT_OUT:
        return
    if _is_estimate(value):
        yield _estimate(words, value, place)
    elif isinstance(value, dict):
        if isinstance(value.get("round_trip"), dict):
            # Frames that station B reflected: never to be mixed with times of one way.
            place = replace(place, way=ROUND_TRIP)
        for key, item in value.items():
            below = (*path, key)
            yield from _below(item, below, _words(below, words), place)
    elif isinstance(value, list):
        for entry in value:
            if isinstance(entry, dict):
                yield from _below(entry, path, words, _within(entry, place))


def _within(entry: Json, place: Place) -> Place:
    """Return the place of an entry of a list."""
    found = {
        column: getattr(place, column) for column in ("goal", "at_load_percent", "way", "part")
    }
    for key, column in _LISTS.items():
        value = entry.get(key)
        if value is None or isinstance(value, (dict, list)):
            continue
        if column == "at_load_percent":
            found[column] = float(value)
        else:
            found[column] = f"{value} B" if key == "object_bytes" else str(value)
    return Place(**found)
