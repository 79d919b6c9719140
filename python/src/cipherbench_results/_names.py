"""Names of quantities with their units, and coordinates of cells.

A name ends in its unit, as keys of results.json do, except that times are in seconds: `_ns` becomes
`_s`.
"""

from __future__ import annotations

import re
from typing import Any

Json = dict[str, Any]

NANO = 1e-9

# By the longest suffix that fits. The numbers of a quantity with `ns` in its name are scaled.
_UNITS = (
    ("_bits_per_cpu_s", "bit/CPU s"),
    ("_bits_per_dut_cpu_s", "bit/CPU s"),
    ("_joules_per_gbit", "J/Gbit"),
    ("_frames_per_s", "frames/s"),
    ("_datagrams_per_s", "datagrams/s"),
    ("_packets_per_s", "packets/s"),
    ("_transactions_per_s", "transactions/s"),
    ("_connections_per_s", "connections/s"),
    ("_operations_per_s", "operations/s"),
    ("_tunnels_per_s", "tunnels/s"),
    ("_bytes_per_s", "B/s"),
    ("_s_per_operation", "s/operation"),
    ("_per_s", "1/s"),
    ("_bps", "bit/s"),
    ("_ppm", "ppm"),
    ("_ratio", "1"),
    ("_cores", "cores"),
    ("_bytes", "B"),
    ("_frames", "frames"),
    ("_percent", "%"),
    ("_db", "dB"),
    ("_j", "J"),
    ("_w", "W"),
    ("_c", "°C"),
    ("_s", "s"),
)


def quantity(parts: list[str]) -> tuple[str, float]:
    """Return a quantity's name of its parts, and the factor that its numbers are to have."""
    words = [word for part in parts for word in part.split("_")]
    scale = NANO if "ns" in words else 1.0
    # `p50_each_ns`: the value of each repeat, as all are here.
    words = ["s" if word == "ns" else word for word in words if word != "each"]
    return "_".join(words), scale


def unit(name: str) -> str:
    """Return the unit that a name ends in; `1` of counts."""
    if name.startswith("per_packet_"):
        return "1/packet"
    return next((unit for suffix, unit in _UNITS if f"_{name}".endswith(suffix)), "1")


def slug(text: str) -> str:
    """Return a text as a part of a column's name."""
    return re.sub(r"[^0-9a-z]+", "_", text.lower()).strip("_")


# Axes with a unit: their columns, and the factors of their numbers.
_TIMES = (
    "interval ramp delay variation drain timeout burst overload_time relief_time every down watch "
    "duration warmup within"
)
_AXES: dict[str, tuple[str, float]] = {
    **{axis: (f"{axis}_s", NANO) for axis in _TIMES.split()},
    **{axis: (f"{axis}_percent", 1) for axis in ("load", "step", "overload", "relief")},
    "mtu": ("mtu_bytes", 1),
    "datagram": ("datagram_bytes", 1),
    "payload": ("payload_bytes", 1),
    "object": ("object_bytes", 1),
    "bytes": ("input_bytes", 1),
    "window": ("window_bytes", 1),
    "rate": ("rate_bps", 1),
}
# Axes with another name in results.json and results.csv.
_RENAMED = {
    "cores": "cores_per_station",
    "frame": "frame_mix",
    "ip": "ip_version",
    "congestion": "congestion_control",
    "server": "http_server",
    "client": "http_client",
    "version": "http_version",
    "transactions-per-s": "intended_transactions_per_s",
    "setups-per-s": "intended_setups_per_s",
}
_FACTORS = {
    "ns": NANO,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "B": 1.0,
    "kB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "bps": 1.0,
    "kbps": 1e3,
    "Mbps": 1e6,
    "Gbps": 1e9,
    "Tbps": 1e12,
    "%": 1.0,
}
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)([A-Za-zµ%]*)")


def _of_axis(axis: str, value: Any) -> tuple[str, Any]:
    """Return the column and the value there of a number or word on an axis."""
    if axis in _AXES and not isinstance(value, str):
        column, factor = _AXES[axis]
        return column, None if value is None else value * factor
    column = _RENAMED.get(axis, axis.replace("-", "_"))
    if column == "frame_mix" and value is not None:
        # A mix with one size is a number in plans.
        value = str(value)
    return column, value


def _of_id(axis: str, text: str) -> tuple[str, Any]:
    """As `_of_axis`, for a value as ids have it: `4MiB`, `1.5s`, `on`."""
    if text in ("on", "off"):
        return _of_axis(axis, text == "on")
    if text in ("auto", "max", "none", "unlimited"):
        # The value was left open. Of an axis of words it may also be a word.
        return _of_axis(axis, None if axis in _AXES else text)
    match = _NUMBER.fullmatch(text)
    if match is None:
        return _of_axis(axis, text)
    number, unit = match.groups()
    if not unit:
        exact = float(number) if "." in number else int(number)
        return _of_axis(axis, text if axis == "version" else exact)
    if axis not in _AXES or unit not in _FACTORS:
        return _of_axis(axis, text)
    return _AXES[axis][0], float(number) * _FACTORS[unit]


def coordinates(cell: Json, planned: Json | None) -> dict[str, Any]:
    """Return the coordinates of a cell of results.json, with those of the plan if it is known.

    Values in force come first: the plan and the id have `auto` for a value that was left open.
    """
    found: dict[str, Any] = {
        key: cell.get(key) for key in ("mtu_bytes", "cores_per_station", "offloads")
    }
    traffic = cell.get("traffic") or {}
    if traffic:
        found["frame_mix"] = traffic["mix"]
        found["frame_bytes_mean"] = traffic["mean_frame_bytes"]
        for key in ("ip_version", "flows", "tunnels", "direction", "duplex"):
            found[key] = traffic[key]
    test = cell.get("device_test") or {}
    for key, column in (
        ("operation", "operation"),
        ("input_bytes", "input_bytes"),
        ("concurrency", "at_once"),
        ("workers", "workers"),
        ("depth", "depth"),
    ):
        found[column] = test.get(key)
    parameters = cell["parameters"]
    for key in ("tool", "streams", "window_bytes", "datagram_bytes", "intended_payload_bps"):
        # The size of a ping's payload is there too.
        is_ping = key == "datagram_bytes" and cell["protocol"] == "ping"
        found["payload_bytes" if is_ping else key] = parameters.get(key)
    axes = (planned or {}).get("coordinates")
    if axes is not None:
        given = [_of_axis(str(one["axis"]), one["value"]) for one in axes]
    else:
        parts = [part.partition("=") for part in str(cell["group"]).split("/")]
        given = [_of_id(axis, text) for axis, equals, text in parts if equals]
    for column, value in given:
        if found.get(column) is None:
            found[column] = value
    return found
