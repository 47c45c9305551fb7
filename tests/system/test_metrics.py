"""A container's figures over HTTP, as Prometheus reads them."""

from __future__ import annotations

import contextlib
import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from .meshes import Member, meshed
from .served import done, ran, started, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ANSWER_TIMEOUT_S = 20.0


class Exporter:
    """A running `cogwork metrics`."""

    def __init__(self, url: str) -> None:
        self.url = url

    def get(self, path: str, accept: str = "") -> tuple[int, str]:
        request = urllib.request.Request(f"{self.url}{path}", headers={"Accept": accept})
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_TIMEOUT_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def samples(self) -> dict[str, list[tuple[dict[str, str], float]]]:
        """Return what there is of each metric, with its labels."""
        found: dict[str, list[tuple[dict[str, str], float]]] = {}
        status, text = self.get("/metrics")
        assert status == 200
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
        return found

    def value(self, name: str, **labels: str) -> float | None:
        for found, value in self.samples().get(name, []):
            if labels.items() <= found.items():
                return value
        return None


@contextlib.contextmanager
def exporting(url: str, *options: str) -> Iterator[Exporter]:
    """Run an exporter for the length of a `with` block."""
    with started("metrics", url, "--listen", "127.0.0.1:0", "--json", *options) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        try:
            yield Exporter(told["url"].removesuffix("/metrics"))
        finally:
            process.terminate()
            process.communicate()
    assert process.returncode == 0


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Member]:
    with meshed(tmp_path, ["box"], []) as members:
        yield members["box"]


def test_queues_streams_and_exchanges_have_figures(member: Member) -> None:
    for number in range(3):
        for _ in range(number + 1):
            done("send", member.url, f"queue/q{number}", "x")
    done("stream", "create", member.url, "orders")
    done("send", member.url, "stream/orders", "first")
    done("exchange", "bind", member.url, "amq.topic", "queue/q1", "--key", "#")
    done("exchange", "publish", member.url, "amq.topic", "x", "--key", "a")
    with exporting(member.url) as exporter:
        depths = {
            labels["queue"]: value for labels, value in exporter.samples()["cogwork_queue_messages"]
        }
        assert depths == {"queue/q0": 1, "queue/q1": 3, "queue/q2": 3}
        assert exporter.value("cogwork_queues_messages") == 7
        assert exporter.value("cogwork_stream_records", stream="stream/orders") == 1
        assert exporter.value("cogwork_stream_open", stream="stream/orders") == 1
        assert exporter.value("cogwork_exchange_delivered_total", exchange="amq.topic") == 1
        assert exporter.value("cogwork_container_info", container="box") == 1
        assert exporter.value("cogwork_cluster_current") is None, "there is no cluster"
    with exporting(member.url, "--top", "1") as exporter:
        samples = exporter.samples()
        assert len(samples["cogwork_queue_messages"]) == 1
        assert samples["cogwork_queue_messages"][0][1] == 3, "it is the deepest one"
        assert exporter.value("cogwork_queues") == 3
        assert exporter.value("cogwork_queues_messages") == 7, "totals count all of them"
    with exporting(member.url, "--top", "0", "--all") as exporter:
        assert len(exporter.samples()["cogwork_queue_messages"]) == 3


def test_the_format_is_the_one_that_is_asked_for(member: Member) -> None:
    with exporting(member.url) as exporter:
        _, text = exporter.get("/metrics", "application/openmetrics-text; version=1.0.0")
        assert text.endswith("# EOF\n")
        assert "# EOF" not in exporter.get("/metrics")[1]
        status, text = exporter.get("/metric")
        assert (status, text) == (
            404,
            "'/metric' is not here (expected /metrics, /healthz or /readyz)\n",
        )


def test_hostile_names_are_text(member: Member) -> None:
    name = 'queue/a"b\\c{d="e"} 1'
    done("send", member.url, name, "x")
    with exporting(member.url) as exporter:
        assert exporter.value("cogwork_queue_messages", queue=name) == 1


def test_a_container_that_goes_is_down_and_comes_back(member: Member) -> None:
    with exporting(member.url) as exporter:
        assert (exporter.value("cogwork_up"), exporter.get("/healthz")) == (1, (200, "ok\n"))
        member.kill()
        assert exporter.samples() == {"cogwork_up": [({}, 0)]}
        assert exporter.get("/healthz") == (503, "the container does not answer\n")
        member.start()
        within(ANSWER_TIMEOUT_S, lambda: exporter.value("cogwork_up") == 1, "it is up again")
        assert exporter.get("/healthz") == (200, "ok\n")


def test_a_member_without_its_cluster_is_alive_and_not_ready(tmp_path: Path) -> None:
    def head(name: str) -> str:
        return f'data_dir = "{tmp_path / name}"\n[cluster]\nprimaries = ["a", "b", "c"]\n'

    with meshed(tmp_path, ["a"], [], head=head) as members, exporting(members["a"].url) as exporter:
        assert exporter.get("/healthz") == (200, "ok\n")
        waits = "a does not know all declarations of the cluster yet\n"
        assert exporter.get("/readyz") == (503, waits)
        assert exporter.value("cogwork_cluster_current") == 0


def test_an_address_that_is_none_is_refused() -> None:
    found = ran("metrics", "amqp://localhost", "--listen", "9419")
    assert found.returncode == 2
    assert "'9419' is no address (expected HOST:PORT)" in found.stderr
