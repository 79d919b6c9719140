"""The frames have the figures of results.json and of the journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

import pandas as pd
import pytest

import cipherbench_results as results

Rewrite = Callable[[Path, Callable[[dict[str, Any]], Any]], None]

TCP = "tcp/mtu=1500/cores=1/cipherbench"
PING = "ping/mtu=1500/cipherbench"
SOAK = "soak/frame=imix1/direction=both/cipherbench"


def records(run: Path, cell: str) -> list[dict[str, Any]]:
    """Return the trials of a cell in the journal, by repeat."""
    lines = (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    of_cell = [one for one in found if one["record"] == "trial" and one["cell"] == cell]
    return sorted(of_cell, key=lambda one: int(one["repeat"]))


def test_trials_have_coordinates_outcome_and_figures(transfers: Path) -> None:
    trials = results.load(transfers).trials
    assert len(trials) == 10
    assert trials["started"].is_monotonic_increasing
    of_tcp = trials[trials["cell"] == TCP].sort_values("repeat")
    assert (
        of_tcp[["group", "dut", "procedure", "mtu_bytes", "cores_per_station"]].to_numpy().tolist()
        == [["tcp/mtu=1500/cores=1", "cipherbench", "tcp", 1500, 1]] * 2
    )
    measured = [one["outcome"]["transfer"] for one in records(transfers, TCP)]
    rates = [one["received_bytes"] * 8e9 / one["duration_ns"] for one in measured]
    assert of_tcp["payload_throughput_bps"].tolist() == pytest.approx(rates)
    took = [one["duration_ns"] / 1e9 for one in records(transfers, TCP)]
    assert of_tcp["took_s"].tolist() == pytest.approx(took)
    # Figures of other procedures are absent.
    assert of_tcp["round_trip_p50_s"].isna().all()
    of_ping = trials[trials["cell"] == PING].sort_values("repeat")
    times = sorted(records(transfers, PING)[0]["outcome"]["latency"]["round_trips_ns"])
    assert of_ping["round_trip_p50_s"].iloc[0] == pytest.approx(times[len(times) // 2 - 1] / 1e9)


def test_an_invalid_trial_has_its_reason_and_no_figure(transfers: Path) -> None:
    run = results.load(transfers)
    invalid = run.trials[~run.trials["valid"]]
    [row] = invalid.to_dict("records")
    assert (row["cell"], row["repeat"], row["outcome"]) == (PING, 2, "invalid")
    assert row["reason"] == "no-clear-text: the stations' marker was seen (made up)"
    figures = invalid.filter(regex="^(round_trip|payload_throughput|cpu)_")
    assert figures.shape[1] > 5
    assert figures.isna().all().all()
    of_cell = run.cells[run.cells["cell"] == PING]
    assert set(of_cell["status"]) == {"partly"}
    assert set(of_cell["n"].dropna()) == {1}
    assert all(marks.split()[0] == "partly" for marks in of_cell["marks"])


def test_series_of_invalid_trials_are_there_on_request_alone(transfers: Path) -> None:
    without = results.load(transfers)
    with_invalid = results.load(transfers, include_invalid=True)
    for name in ("series", "latency"):
        frame, more = getattr(without, name), getattr(with_invalid, name)
        assert frame["valid"].all()
        assert len(more) > len(frame)
        of_invalid = more[~more["valid"]]
        assert set(zip(of_invalid["cell"], of_invalid["repeat"])) == {(PING, 2)}


def test_cells_have_estimates_in_the_unit_of_their_quantity(transfers: Path) -> None:
    run = results.load(transfers)
    cells = run.cells
    assert set(cells["cell"]) == {cell["id"] for cell in run.results["cells"]}
    figures = cells[cells["is_figure"]]
    assert not figures["cell"].duplicated().any()
    figure = figures.set_index("cell").loc[TCP]
    raw = next(cell for cell in run.results["cells"] if cell["id"] == TCP)["bulk"]
    estimate = raw["payload_throughput_bps"]
    assert (figure["quantity"], figure["unit"], figure["n"]) == (
        "payload_throughput_bps",
        "bit/s",
        2,
    )
    interval = estimate["interval_95"]
    assert (figure["mean"], figure["low"], figure["high"]) == (
        estimate["mean"],
        interval["low"],
        interval["high"],
    )
    assert figure["largest_deviation"] == estimate["largest_distance"]
    ping = figures.set_index("cell").loc[PING.replace("cipherbench", "direct")]
    of_ping = next(one for one in run.results["cells"] if one["id"] == ping.name)["latency"]
    assert (ping["quantity"], ping["unit"]) == ("round_trip_p50_s", "s")
    assert ping["mean"] == pytest.approx(of_ping["p50_ns"]["mean"] / 1e9)
    assert ping["high"] == pytest.approx(of_ping["p50_ns"]["interval_95"]["high"] / 1e9)
    # One repeat has no interval.
    one = figures.set_index("cell").loc[PING]
    assert one["n"] == 1
    assert one[["low", "high"]].isna().all()


def test_no_quantity_of_a_cell_is_there_twice(transfers: Path, frames: Path) -> None:
    of_quantity = ["cell", "quantity", "goal", "at_load_percent", "way", "part"]
    for run in (transfers, frames):
        cells = results.load(run).cells
        assert not cells.duplicated(of_quantity).any()


def test_a_cell_without_a_valid_trial_has_one_row(transfers: Path, change_results: Rewrite) -> None:
    def no_figure(all_of_it: dict[str, Any]) -> None:
        cell = next(one for one in all_of_it["cells"] if one["id"] == PING)
        cell.update(status="invalid", latency=None, cpu=None, packet_cost=None, bulk=None)
        cell["reasons"] = [{"repeat": 1, "text": "first"}, {"repeat": 2, "text": "second"}]
        for trial in all_of_it["trials"]:
            if trial["cell"] == PING:
                trial["outcome"] = "invalid"

    change_results(transfers, no_figure)
    run = results.load(transfers)
    [row] = run.cells[run.cells["cell"] == PING].to_dict("records")
    assert row["quantity"] is None
    assert (row["valid"], row["status"], row["is_figure"]) == (False, "invalid", False)
    assert row["reason"] == "repeat 1: first; repeat 2: second"
    assert pd.isna(row["mean"])
    # By the results, though the journal has it as measured.
    assert PING not in set(run.latency["cell"])


def test_ratios_have_intervals(transfers: Path) -> None:
    run = results.load(transfers)
    assert len(run.ratios) == len(run.results["comparisons"]) == 3
    by_quantity = run.ratios.set_index("quantity")
    raw = {one["metric"]: one for one in run.results["comparisons"]}
    row, one = by_quantity.loc["payload_throughput_bps"], raw["payload-throughput"]
    assert (row["ratio"], row["low"], row["high"]) == (one["ratio"], one["low"], one["high"])
    assert (row["cell"], row["baseline_dut"], row["mtu_bytes"]) == (TCP, "direct", 1500)
    single = by_quantity.loc["round_trip_p50_s"]
    assert pd.isna(single["differs"])
    assert pd.isna(single["low"])
    # Each is a quantity of its cell.
    for ratio in run.ratios.to_dict("records"):
        of_cell = run.cells[run.cells["cell"] == ratio["cell"]]
        assert ratio["quantity"] in set(of_cell["quantity"])


def test_intervals_of_a_transfer_are_its_bytes(transfers: Path) -> None:
    series = results.load(transfers).series
    for record in records(transfers, TCP):
        mine = series[(series["cell"] == TCP) & (series["repeat"] == record["repeat"])]
        mine = mine[mine["source"] == "transfer"]
        transfer = record["outcome"]["transfer"]
        assert len(mine) == len(transfer["intervals"])
        assert set(mine["way"]) == {"a-to-b"}
        carried = (mine["value"] * mine["width_s"]).sum() / 8
        assert carried == pytest.approx(sum(one["bytes"] for one in transfer["intervals"]))
        assert set(mine["unit"]) == {"bit/s"}


def test_a_duplex_transfer_has_both_ways(transfers: Path, rewrite: Rewrite) -> None:
    def both(record: dict[str, Any]) -> None:
        if record["record"] == "trial" and record["cell"] == TCP:
            transfer = record["outcome"]["transfer"]
            transfer["reverse"] = json.loads(json.dumps(transfer))

    rewrite(transfers, both)
    series = results.load(transfers).series
    of_tcp = series[(series["cell"] == TCP) & (series["source"] == "transfer")]
    assert set(of_tcp["way"]) == {"a-to-b", "b-to-a"}


def test_monitored_values_have_their_unit(transfers: Path) -> None:
    run = results.load(transfers)
    power = run.series[run.series["source"] == "monitored"]
    assert set(zip(power["quantity"], power["unit"], power["part"])) == {
        ("monitored_power_w", "W", "machine")
    }
    first = power[(power["cell"] == TCP) & (power["repeat"] == 1)]
    assert first[["t_s", "width_s", "value", "max"]].to_numpy().tolist() == [
        [0.0, 0.5, 40.0, 41.0],
        [0.5, 0.5, 40.5, 41.0],
    ]
    of_cell = run.cells[(run.cells["cell"] == TCP) & (run.cells["part"] == "machine")]
    assert {"monitored_power_w", "power_w", "energy_j", "joules_per_gbit"} <= set(
        of_cell["quantity"]
    )
    assert "power_w_machine" in run.trials.columns


def test_a_soak_has_points_on_one_axis(frames: Path) -> None:
    run = results.load(frames)
    soak = run.series[(run.series["source"] == "soak") & (run.series["repeat"] == 1)]
    [record] = records(frames, SOAK)[:1]
    [segment] = record["outcome"]["frames"]["soak"]
    received = soak[soak["quantity"] == "received_frames_per_s"]
    assert len(received) == len(segment["points"])
    count = (received["value"] * received["width_s"]).sum()
    assert count == pytest.approx(sum(point["received"] for point in segment["points"]))
    # Without gaps, from the first frame to the end of the load.
    ends = received["t_s"] + received["width_s"]
    assert received["t_s"].iloc[1:].tolist() == pytest.approx(ends.iloc[:-1].tolist())
    assert ends.iloc[-1] == pytest.approx(1.0)
    median = soak[soak["quantity"] == "latency_p50_s"]["value"]
    assert median.tolist() == pytest.approx([point["p50_ns"] / 1e9 for point in segment["points"]])
    # One before the load, and one after it.
    probes = run.series[(run.series["source"] == "probe") & (run.series["repeat"] == 1)]
    before, after = probes["t_s"]
    assert before < 0
    assert after > 1


def test_bins_are_the_histogram(frames: Path) -> None:
    latency = results.load(frames).latency
    [record] = records(frames, SOAK)[:1]
    [segment] = record["outcome"]["frames"]["soak"]
    mine = latency[(latency["source"] == "soak") & (latency["repeat"] == 1)]
    assert mine["frames"].tolist() == [one["frames"] for one in segment["histogram"]]
    assert mine["upto_s"].tolist() == pytest.approx(
        [one["upto_ns"] / 1e9 for one in segment["histogram"]]
    )
    assert mine["above_s"].iloc[1:].tolist() == mine["upto_s"].iloc[:-1].tolist()
    assert mine["above_s"].iloc[0] == 0
    assert mine["share"].sum() == pytest.approx(1)
    assert mine["share_upto"].iloc[-1] == pytest.approx(1)


def test_reflected_frames_are_distinguished(
    frames: Path, rewrite: Rewrite, change_results: Rewrite
) -> None:
    def in_results(all_of_it: dict[str, Any]) -> None:
        cell = next(one for one in all_of_it["cells"] if one["id"].startswith("load/"))
        cell["frames"]["latency"][0]["round_trip"] = {"from_arrival": True}

    def in_journal(record: dict[str, Any]) -> None:
        if record["record"] == "trial" and record["cell"].startswith("load/"):
            residence = [{"upto_ns": 1000, "frames": 20}]
            record["outcome"]["frames"]["latency"][0]["round_trip"] = {"residence": residence}

    change_results(frames, in_results)
    rewrite(frames, in_journal)
    run = results.load(frames)
    cells = run.cells[run.cells["procedure"] == "load"].set_index("quantity")
    assert cells["way"]["latency_p50_s"] == "round-trip"
    assert cells["way"]["forwarded_frames_per_s"] is None
    assert "latency_p50_s_round_trip" in run.trials.columns
    latency = run.latency[run.latency["procedure"] == "load"]
    assert set(zip(latency["source"], latency["way"])) == {
        ("frames", "round-trip"),
        ("reflector", "round-trip"),
    }


def test_mixes_and_sizes_are_in_columns_of_their_own(frames: Path) -> None:
    cells = results.load(frames).cells
    assert set(zip(cells["cell"], cells["frame_mix"], cells["frame_bytes_mean"])) == {
        (SOAK, "imix1", 345.5),
        ("load/frame=512/direction=both/cipherbench", "512", 512.0),
    }


def test_warnings_name_their_cells(transfers: Path) -> None:
    run = results.load(transfers)
    assert set(run.warnings["kind"]) == {one["kind"] for one in run.results["warnings"]}
    of_tcp = run.warnings[run.warnings["cell"] == TCP]
    marks = set(str(run.cells[run.cells["cell"] == TCP]["marks"].iloc[0]).split())
    assert marks == set(of_tcp["kind"])


def test_empty_frames_have_their_columns(transfers: Path, change_results: Rewrite) -> None:
    whole = results.load(transfers)

    def empty(all_of_it: dict[str, Any]) -> None:
        for key in ("cells", "trials", "comparisons", "warnings"):
            all_of_it[key] = []

    change_results(transfers, empty)
    (transfers / "journal.jsonl").unlink()
    run = results.load(transfers)
    for name in ("trials", "cells", "ratios", "warnings"):
        frame, full = getattr(run, name), getattr(whole, name)
        assert frame.empty
        assert set(frame.columns) <= set(full.columns)
        assert {"cell"} <= set(frame.columns)
