"""What the built program writes, compared with its results.csv."""

from __future__ import annotations

import os
import shutil
import subprocess
import warnings
from pathlib import Path

import pandas as pd
import pytest

import cipherbench_results as results

HERE = Path(__file__).parent


@pytest.fixture
def program(repository: Path) -> Path:
    """Return the program in `CIPHERBENCH`, or the one that is built here."""
    path = Path(os.environ.get("CIPHERBENCH", repository / "target/debug/cipherbench"))
    if not path.is_file():
        text = f"{path} is not built (`cargo build`), so that nothing was compared with it"
        if os.environ.get("CI") == "true":
            pytest.fail(text)
        # Prominently: pytest's summary of skipped tests is easily overlooked.
        warnings.warn(f"SKIPPED: {text}", stacklevel=1)
        pytest.skip(text)
    return path


@pytest.mark.filterwarnings("default:SKIPPED")
def test_a_run_of_the_program(program: Path, tmp_path: Path) -> None:
    words = [
        str(program),
        "run",
        str(HERE / "fixtures/frames.yaml"),
        "--out",
        str(tmp_path),
        "--quiet",
    ]
    # On a busy machine trials may be invalid, and it ends with 1.
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 1), done.stderr
    run = results.load(tmp_path)
    csv = pd.read_csv(run.path / "results.csv")
    key = ["cell", "repeat"]
    first = {
        (row["cell"], row["repeat"]): row for row in csv.drop_duplicates(key).to_dict("records")
    }
    trials = {(row["cell"], row["repeat"]): row for row in run.trials.to_dict("records")}
    assert trials.keys() == first.keys()
    for at, row in trials.items():
        of_csv = first[at]
        assert row["outcome"] == of_csv["outcome"]
        assert row["dut"] == of_csv["dut"]
        assert row["frame_mix"] == str(of_csv["frame_mix"])
        assert row["took_s"] == pytest.approx(of_csv["duration_ns"] / 1e9)
        assert set(row["marks"].split()) - {"partly", "invalid"} <= set(of_csv["warnings"].split())
    valid = {at for at, row in trials.items() if row["valid"]}
    assert set(zip(run.series["cell"], run.series["repeat"])) <= valid
    of_soak = run.latency[run.latency["source"] == "soak"]
    for (cell, repeat), bins in of_soak.groupby(key):
        mine = csv[(csv["cell"] == cell) & (csv["repeat"] == repeat)]
        [segment] = mine[mine["figure"] == "segment"].to_dict("records")
        assert bins["frames"].sum() == segment["latency_frames"]
        median = bins.loc[bins["share_upto"] >= 0.5, "upto_s"].iloc[0]
        assert float(median) == pytest.approx(segment["latency_p50_ns"] / 1e9)


@pytest.mark.filterwarnings("default:SKIPPED")
def test_results_of_every_record(program: Path, repository: Path, tmp_path: Path) -> None:
    shutil.copy(repository / "fuzz/seeds/journal/every-record.jsonl", tmp_path / "journal.jsonl")
    words = [str(program), "report", str(tmp_path)]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)
    assert (tmp_path / "results.json").is_file(), done.stderr
    run = results.load(tmp_path)
    assert len(run.trials) == len(run.results["trials"])
    for frame in (run.cells, run.ratios, run.series, run.latency, run.warnings):
        assert list(frame.columns)
