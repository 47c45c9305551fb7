"""A Spark query is a consumer that others see: what it reports, and what the container keeps."""

from __future__ import annotations

import asyncio
import json
import time
from queue import SimpleQueue
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from click.testing import CliRunner

import cogwork.sync
import cogwork.testing
from cogwork.cli.main import cogwork as command
from cogwork.cli.management.manager import Manager
from cogwork.client.client import Client
from cogwork.client.errors import LinkRefused
from cogwork.container.vhost.reported import EXPIRY_S, REPORTS_MAX, Reported
from cogwork.pipeline.arrow.loop_thread import loop_thread
from cogwork.pipeline.spark.listener import PositionListener, listen, positions_of
from cogwork.plugin.management import Report

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import QueryProgressEvent

KIND = "org.cogwork.consumer"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with cogwork.testing.container('[[stream]]\naddress = "stream/seen"\n') as url:
        yield url


def consumers(url: str) -> list[dict[str, Any]]:
    async def run() -> list[dict[str, Any]]:
        async with cogwork.connect(url) as client:
            return (await Manager(client).rows(KIND))[0]

    return loop_thread().wait(run())


def report(number: int) -> Report:
    return Report(f"q {number}", "stream/s", "spark", "q", number, number + 5, 1.5, 0)


def test_reports_expire_and_are_bounded() -> None:
    now = [0.0]
    reported = Reported("", lambda: now[0])
    for number in range(REPORTS_MAX + 1):
        reported.note(report(number))
    assert len(reported.rows) == REPORTS_MAX
    assert reported.rows.find("q 0") is None
    now[0] = EXPIRY_S
    reported.note(report(1))
    row = reported.rows.find("q 1")
    assert row is not None
    assert (row["behind"], row["reported_s"]) == (5, 0.0)
    now[0] = EXPIRY_S + 1
    assert [each["name"] for each in reported.rows.rows(0, 10)] == ["q 1"]
    assert reported.forget("q 1")
    assert not reported.forget("q 1")


def test_positions_are_read_from_the_progress_of_a_query() -> None:
    source = {
        "description": "org.apache.spark.sql...python.PythonMicroBatchStream@5018ca65",
        "endOffset": '{"a": 5, "b": 7, "starts/": {"b": 2}}',
        "latestOffset": {"a": 9},
        "processedRowsPerSecond": 2.0,
    }
    other = {"description": "RateStream", "endOffset": 4}
    assert list(positions_of({"sources": [source, other]})) == [
        ("a", 5, 9, 2.0),
        ("b", 7, 7, 2.0),
    ]


@pytest.mark.parametrize(
    ("about", "body", "line"),
    [
        ({"name": "q"}, None, "needs address"),
        ({"name": "q", "address": "stream/s", "position": -1}, None, "needs kind"),
        (
            {"name": "q", "address": "s", "kind": "spark", "query": "q", "position": -1},
            None,
            "position is a whole number",
        ),
        (
            {"name": "q", "address": "s", "kind": "spark", "query": "q"},
            {"records_per_s": "many"},
            "records_per_s is a number",
        ),
        (
            {"name": "q" * 500, "address": "s", "kind": "spark", "query": "q"},
            None,
            "over 200 characters",
        ),
    ],
)
def test_a_report_that_makes_no_sense_is_refused(
    url: str, about: dict[str, Any], body: dict[str, Any] | None, line: str
) -> None:
    async def run() -> None:
        async with cogwork.connect(url) as client:
            await Manager(client).ask("REPORT", KIND, properties=about, body=body)

    with pytest.raises(LinkRefused, match=line):
        loop_thread().wait(run())


def progress_of(query: str) -> QueryProgressEvent:
    source = {"description": "PythonMicroBatchStream", "endOffset": {query: 1}}
    about = {"runId": query, "id": query, "name": query, "batchId": 0, "sources": [source]}
    event: Any = SimpleNamespace(progress=SimpleNamespace(json=json.dumps(about)))
    return cast("QueryProgressEvent", event)


def test_a_query_does_not_keep_another_from_being_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: SimpleQueue[str] = SimpleQueue()
    may_end = asyncio.Event()

    async def slow(operation: str, about: dict[str, Any], body: object) -> None:
        told.put(about["name"])
        await may_end.wait()

    listener = PositionListener("amqp://nowhere")
    monkeypatch.setattr(listener, "_manage", slow)
    for query in ("one", "one", "two"):
        listener.onQueryProgress(progress_of(query))
    assert sorted(told.get(timeout=10) for _ in range(2)) == ["one one", "two two"]
    assert told.empty(), "what is under way is not sent once more"
    loop_thread().loop.call_soon_threadsafe(may_end.set)


def test_queries_that_are_reported_at_once_share_a_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Client] = []

    def client(*given: Any, **more: Any) -> Client:
        made.append(Client(*given, **more))
        return made[-1]

    monkeypatch.setattr("cogwork.pipeline.spark.listener.Client", client)
    with cogwork.testing.container() as url:
        listener = PositionListener(url)
        for query in ("one", "two"):
            listener.onQueryProgress(progress_of(query))
        until_s = time.monotonic() + 60
        while len(found := consumers(url)) < 2:
            assert time.monotonic() < until_s, found
            time.sleep(0.05)
        listener.close()
    assert len(made) == 1


def test_a_query_is_seen_while_it_runs(spark: SparkSession, url: str, tmp_path: Path) -> None:
    with cogwork.sync.connect(url) as client:
        client.stream("seen").append([b"x"] * 10)
    listener = listen(spark, url)
    try:
        rows = (
            spark.readStream.format("cogwork")
            .options(url=url, startingOffsets="earliest", maxOffsetsPerTrigger="4")
            .schema("body binary")
            .load("seen")
        )
        query = (
            rows.writeStream.format("noop")
            .queryName("watcher")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )
        until_s = time.monotonic() + 60
        while not (found := consumers(url)) or found[0]["position"] != 10:
            assert time.monotonic() < until_s, found
            time.sleep(0.05)
        assert found[0]["name"] == "watcher seen"
        assert (found[0]["address"], found[0]["behind"]) == ("stream/seen", 0)
        shown = CliRunner().invoke(command, ["status", url])
        assert "watcher" in shown.output
        query.stop()
        while consumers(url):
            assert time.monotonic() < until_s
            time.sleep(0.05)
    finally:
        spark.streams.removeListener(listener)
        listener.close()
