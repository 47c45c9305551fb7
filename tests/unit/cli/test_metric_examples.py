"""The alert rules and the dashboard ask for metrics that there are, and Prometheus takes them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cogwork.cli.metrics.collector import Scrape
from cogwork.cli.metrics.families import EXCHANGES, QUEUES, STREAMS
from cogwork.cli.metrics.scrape import Scraped

EXAMPLES = Path(__file__).parents[3] / "examples"
PROMETHEUS, GRAFANA = EXAMPLES / "prometheus", EXAMPLES / "grafana"

CONTAINER = {
    "name": "a",
    "version": "1",
    "cluster": {"leader": "a", "is_current": True, "declarations": 1, "level": 1},
    "memory": {"limit_bytes": 0, "are_publishers_blocked": False},
    "descriptors": {"limit": 1, "refused": 0},
    "security_log": {"dropped": 0},
}


def names() -> set[str]:
    """Return the names of all samples of a container that has one of everything."""
    rows = [
        {"name": "x", "exchange": "x", "vhost": "", "state": "open"}
        | {each.attribute: 1 for each in metrics}
        for metrics in (QUEUES, STREAMS, EXCHANGES)
    ]
    totals = dict.fromkeys(("connections", "links", "unsettled"), 1)
    totals |= dict.fromkeys(("unsent_bytes", "backlog_bytes", "held_bytes"), 1)
    plain = ("incarnation", "cpu_s", "resident_bytes", "is_draining", "frames_in", "unroutable")
    counts = ("connections_accepted", "connections_refused", "connections_redirected")
    more = ("durable_in_memory", "certificate_days_left")
    container = {**CONTAINER, "totals": totals, **dict.fromkeys((*plain, *counts, *more), 1)}
    scraped = Scraped(container, *([row] for row in rows))
    families = list(Scrape([scraped], None).collect())
    empty = [family.name for family in families if not family.samples]
    assert empty == [], "an attribute is not there under its name"
    return {sample.name for family in families for sample in family.samples}


@pytest.mark.parametrize(
    "file", [PROMETHEUS / "cogwork.rules.yml", GRAFANA / "cogwork.json"], ids=lambda each: each.name
)
def test_examples_ask_for_metrics_that_there_are(file: Path) -> None:
    asked = set(re.findall(r"\bcogwork_\w+", file.read_text()))
    assert len(asked) > 10
    assert asked - names() == set()


@pytest.mark.parametrize(
    "words",
    [
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "cogwork.rules.yml"),
        ("test", "rules", "cogwork.test.yml"),
    ],
    ids=" ".join,
)
def test_prometheus_takes_the_examples(words: tuple[str, ...]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    found = subprocess.run(
        [promtool, *words], cwd=PROMETHEUS, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr
