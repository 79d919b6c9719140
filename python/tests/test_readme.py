"""The examples of the README run, in their order and in one notebook."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def test_the_examples_run(
    transfers: Path,
    frames: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    for run in (transfers, frames):
        run.rename(runs / run.name)
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("matplotlib", reason="the README's plots need it").use("Agg")
    text = (HERE.parent / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 10
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)  # noqa: S102
    printed = capsys.readouterr().out
    assert "no-clear-text" in printed
    assert f"runs is a folder with 2 runs: give one of them, such as runs{os.sep}" in printed


def test_every_error_and_frame_is_described() -> None:
    import cipherbench_results  # noqa: PLC0415

    text = (HERE.parent / "README.md").read_text(encoding="utf-8")
    for name in cipherbench_results.__all__:
        assert f"`{name}" in text or name in ("load", "Run"), name
