"""Places of the repository, and copies of the runs in `fixtures` that tests may change."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any, Callable

import pytest

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent
FIXTURES = HERE / "fixtures"

Change = Callable[[dict[str, Any]], Any]


@pytest.fixture
def repository() -> Path:
    return REPOSITORY


@pytest.fixture
def transfers(tmp_path: Path) -> Path:
    """Return a run with TCP, UDP and ping, and with one invalid trial."""
    return Path(shutil.copytree(FIXTURES / "transfers", tmp_path / "20261201T081026Z-transfers"))


@pytest.fixture
def frames(tmp_path: Path) -> Path:
    """Return a run with a load of frames and a soak."""
    return Path(shutil.copytree(FIXTURES / "frames", tmp_path / "20261201T081016Z-frames"))


@pytest.fixture
def rewrite() -> Callable[[Path, Change], None]:
    """Change the records of a run's journal, with fitting checksums."""

    def change_all(run: Path, change: Change) -> None:
        journal, before, lines = run / "journal.jsonl", "", []
        for line in journal.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            del record["sum"]
            change(record)
            body = json.dumps(record, separators=(",", ":"), ensure_ascii=False)[:-1]
            before = hashlib.sha256((before + body).encode()).hexdigest()[:32]
            lines.append(f'{body},"sum":"{before}"}}\n')
        journal.write_text("".join(lines), encoding="utf-8")

    return change_all


@pytest.fixture
def change_results() -> Callable[[Path, Change], None]:
    """Change a run's results.json."""

    def change_one(run: Path, change: Change) -> None:
        path = run / "results.json"
        results = json.loads(path.read_text(encoding="utf-8"))
        change(results)
        path.write_text(json.dumps(results), encoding="utf-8")

    return change_one
