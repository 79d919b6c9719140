"""The dashboards in deploy/grafana: their structure, and metrics and labels that exist in the code.

The structure is that of Grafana's dashboards since version 10 (`schemaVersion` 39).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Json = dict[str, Any]
NAMES = ("encryptor", "results")
PROMETHEUS = {"type": "prometheus", "uid": "${datasource}"}
UNITS = {"bps", "pps", "bytes", "s", "short", "reqps", "ops"}
OPTIONS = {
    "timeseries": {"legend", "tooltip"},
    "stat": {
        "reduceOptions",
        "orientation",
        "colorMode",
        "graphMode",
        "justifyMode",
        "textMode",
        "wideLayout",
        "showPercentChange",
        "percentChangeColorMode",
    },
    "table": {"frameIndex", "showHeader", "cellHeight"},
}
VARIABLES = {"$__rate_interval", "$__range"}


@pytest.fixture
def dashboards(repository: Path) -> dict[str, Json]:
    folder = repository / "deploy/grafana"
    assert {path.stem for path in folder.glob("*.json")} == set(NAMES)
    return {
        name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in NAMES
    }


def source(path: Path) -> str:
    """Return the Rust code of a file without its tests and comments."""
    text = path.read_text(encoding="utf-8").partition("#[cfg(test)]")[0]
    return re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)


def of_encryptor(repository: Path) -> tuple[set[str], set[str]]:
    """Return the metrics and the labels in the code of the encryptor."""
    folder = repository / "crates/tunnel/encryptor/src"
    metrics, status = source(folder / "metrics.rs"), source(folder / "status.rs")
    written = metrics + "".join(source(file) for file in sorted((folder / "metrics").glob("*.rs")))
    found = set(re.findall(r'"(cipherbench_[a-z_]+)"', written))
    flows = metrics[metrics.index("const FLOWS") : metrics.index("type Counter")]
    for flow in re.findall(r'\("(\w+)",', flows):
        found |= {f"cipherbench_{flow}_{what}_total" for what in ("packets", "bytes")}
    others = metrics[metrics.index("const OTHERS") : metrics.index("pub struct Source")]
    counters = status[status.index("pub fn counters") :]
    counters = counters[: counters.index("\n    }\n")]
    for name in re.findall(r'\(\s*"(\w+)",', others) + re.findall(r'\(\s*"(\w+)",', counters):
        found.add(f"cipherbench_{name}_total")
    labels = set(re.findall(r'(\w+)=\\"', written))
    # Prometheus adds these to each target.
    return found, labels | {"instance", "job"}


def of_export(repository: Path) -> tuple[set[str], set[str]]:
    """Return the metrics and the labels in the code of exports."""
    folder = repository / "crates/results/report/src/documents"
    text = source(folder / "export/openmetrics.rs")
    described = text[text.index("const fn described") : text.index("fn family")]
    pairs = re.findall(r'\(\s*"(\w+)",\s*"(\w+)",\s*"', described)
    labels = source(folder / "export.rs")
    labels = labels[labels.index("fn labels") :]
    named = set(re.findall(r'\("(\w+)",', labels[: labels.index("\n    }\n")] + text))
    return {f"cipherbench_{stem}_{unit}" for stem, unit in pairs}, named


def code(repository: Path, name: str) -> tuple[set[str], set[str]]:
    """Return the metrics and labels that a dashboard may have."""
    return of_encryptor(repository) if name == "encryptor" else of_export(repository)


def queries(board: Json) -> Iterator[str]:
    """Yield the queries of the panels, and those of the variables."""
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield target["expr"]
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["definition"]


def metrics_in(query: str) -> set[str]:
    """Return the metrics in a query, with those of a regular expression on names."""
    found: set[str] = set()
    for names in re.findall(r'__name__=~"cipherbench_\(([^)]*)\)"', query):
        found |= {f"cipherbench_{name}" for name in names.split("|")}
    rest = re.sub(r'__name__=~"[^"]*"', "", query)
    return found | set(re.findall(r"cipherbench_\w+", rest))


def labels_in(query: str) -> set[str]:
    """Return the labels by which a query selects or groups."""
    found = set(re.findall(r'(\w+)(?:=~|!=|=)"', query)) - {"__name__"}
    for group in re.findall(r"\bby \(([^)]*)\)", query):
        found |= {label.strip() for label in group.split(",")}
    return found | set(re.findall(r"label_values\(.*, (\w+)\)$", query))


def test_the_code_has_the_documented_metrics(repository: Path) -> None:
    """The names that are found in the code are all: the reader above misses none."""
    found, labels = of_encryptor(repository)
    text = (repository / "docs/encryptor.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `(cipherbench_\w+)`", text, re.MULTILINE))
    assert documented <= found
    flows = {name.replace("_packets_total", "_bytes_total") for name in documented}
    assert found - documented <= flows
    assert {"lane", "reason", "tunnel", "peer", "cause", "measure"} <= labels
    exported, of_exports = of_export(repository)
    assert len(exported) == 12
    assert "cipherbench_payload_throughput_bits_per_second" in exported
    assert {"campaign", "run", "cell", "kind", "dut", "repeat", "load_percent"} <= of_exports


@pytest.mark.parametrize("name", NAMES)
def test_metrics_and_labels_exist(repository: Path, dashboards: dict[str, Json], name: str) -> None:
    metrics, labels = code(repository, name)
    asked = list(queries(dashboards[name]))
    for query in asked:
        assert metrics_in(query), query
        assert metrics_in(query) <= metrics, query
        assert labels_in(query) <= labels, query
    # Nothing that is measured is left out.
    assert metrics == {metric for query in asked for metric in metrics_in(query)}
    for panel in dashboards[name]["panels"]:
        for target in panel.get("targets", []):
            legend = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            assert legend <= labels_in(target["expr"]) | {"instance", "tunnel"}, legend


@pytest.mark.parametrize("name", NAMES)
def test_queries_use_variables_that_exist(dashboards: dict[str, Json], name: str) -> None:
    board = dashboards[name]
    declared = {f"${one['name']}" for one in board["templating"]["list"]}
    for query in queries(board):
        assert set(re.findall(r"\$\w+", query)) <= declared | VARIABLES, query
        for left, right in ("()", "{}", "[]"):
            assert query.count(left) == query.count(right), query
        # A counter is shown by its rate or increase, except for a total that should be 0.
        if "_total" in query and "engine_replaced" not in query:
            assert re.search(r"\b(rate|increase)\(", query), query


@pytest.mark.parametrize("name", NAMES)
def test_the_structure_is_that_of_grafana(dashboards: dict[str, Json], name: str) -> None:
    board = dashboards[name]
    assert board["schemaVersion"] == 39
    assert board["uid"] == f"cipherbench-{name}"
    assert board["title"]
    # Grafana gives it an id when it is imported.
    assert "id" not in board
    assert set(board["time"]) == {"from", "to"}
    source_variable, *variables = board["templating"]["list"]
    assert (source_variable["type"], source_variable["query"]) == ("datasource", "prometheus")
    for variable in variables:
        assert variable["datasource"] == PROMETHEUS
        assert variable["definition"] == variable["query"]["query"]
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    for panel in board["panels"]:
        check_panel(panel)


def check_panel(panel: Json) -> None:
    """Check a panel by itself."""
    assert panel["title"]
    if panel["type"] == "row":
        assert panel["panels"] == []
        return
    assert panel["description"].endswith(".")
    assert panel["datasource"] == PROMETHEUS
    assert set(panel["options"]) == OPTIONS[panel["type"]]
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["unit"] in UNITS
    # The first step of thresholds has no value.
    assert defaults["thresholds"]["steps"][0]["value"] is None
    references = [target["refId"] for target in panel["targets"]]
    assert len(references) == len(set(references)) > 0
    for target in panel["targets"]:
        assert target["datasource"] == PROMETHEUS
        assert target["instant"] != target["range"]
        # Tables show one moment, all others a time.
        assert target["instant"] == (panel["type"] == "table")
        assert target["instant"] == (target.get("format") == "table")


@pytest.mark.parametrize("name", NAMES)
def test_panels_do_not_overlap(dashboards: dict[str, Json], name: str) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboards[name]["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        mine = {
            (place["x"] + dx, place["y"] + dy)
            for dx in range(place["w"])
            for dy in range(place["h"])
        }
        assert not mine & taken, panel["title"]
        taken |= mine
