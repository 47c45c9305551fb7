"""Readers go on where containers do not: killed, away for a while, gone for good."""

from __future__ import annotations

import threading
from contextlib import ExitStack, nullcontext
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

import pyarrow as pa
from kept_container import AWAY_S, Kept
from pyspark.sql.types import StructType

import cogwork.sync
from cogwork.bench.servers.process import free_ports
from cogwork.client.errors import LinkRefused
from cogwork.client.links.link_end import LinkEnd
from cogwork.pipeline.arrow import ArrowClient
from cogwork.pipeline.spark.columns import SCHEMA
from cogwork.pipeline.spark.errors import SinkError, SourceError
from cogwork.pipeline.spark.row_publisher import RowPublisher
from cogwork.pipeline.spark.sink import publish
from cogwork.pipeline.spark.source import CogworkSource
from cogwork.pipeline.spark.write_options import WriteOptions

ROWS = 40_000


def reader(url: str, timeout_s: int) -> Any:  # of Spark
    options = {"url": url, "stream": "s", "minPartitions": "1", "timeoutSeconds": str(timeout_s)}
    return CogworkSource(options).reader(StructType([SCHEMA["offset"]]))


def test_a_container_that_is_away_for_a_while_only_delays_a_read(kept: Kept) -> None:
    with cogwork.sync.connect(kept.url) as mesh:
        mesh.stream("s").append([bytes(200)] * ROWS)
    nobody = free_ports(1)[0]
    reading = reader(f"amqp://127.0.0.1:{nobody},{kept.url}", 60)
    batches = reading.read(reading.partitions()[0])
    found = next(batches).column("offset").to_pylist()
    kept.kill()
    timer = threading.Timer(AWAY_S, kept.start)
    timer.start()
    for batch in batches:
        found += batch.column("offset").to_pylist()
    timer.join()
    assert found == list(range(ROWS))


def test_a_container_that_does_not_come_back_is_one_line(kept: Kept) -> None:
    with cogwork.sync.connect(kept.url) as mesh:
        mesh.stream("s").append([bytes(200)] * ROWS)
    reading = reader(kept.url, 2)
    (task,) = reading.partitions()
    batches = reading.read(task)
    next(batches)
    kept.kill()
    with pytest.raises(SourceError) as caught:
        list(batches)
    assert "\n" not in str(caught.value)
    with pytest.raises(SourceError):
        reading.partitions()


def test_rows_behind_some_that_could_not_be_sent_do_not_get_their_numbers(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task runs again with the same producer, and numbers its rows as before."""
    opens = LinkEnd.open
    refusals = [LinkRefused("stream/s", None, "no replica is opened")]

    async def open_later(end: LinkEnd) -> None:
        if refusals:
            raise refusals.pop()
        await opens(end)

    monkeypatch.setattr(LinkEnd, "open", open_later)
    options = WriteOptions(url=kept.url, address="stream/s", transaction_id="t")
    names = [[f"{part}{number}" for number in range(2)] for part in "abc"]
    for is_refused in (True, False):
        with (
            pytest.raises(SinkError) if is_refused else nullcontext(),
            RowPublisher(options, b"p" * 24) as rows,
        ):
            for each in names:
                rows.publish(pa.RecordBatch.from_arrays([pa.array(each)], names=["body"]))
    with cogwork.sync.connect(kept.url) as mesh, mesh.stream("s").read("first") as reading:
        found = [reading.receive(5) for _ in range(6)]
    bodies = [message.body for message in found if message is not None]
    assert bodies == [name for each in names for name in each]


def test_a_sink_goes_on_where_the_container_comes_back(kept: Kept) -> None:
    import pyarrow as pa  # noqa: PLC0415 # with Spark

    bodies = [b"%d" % number for number in range(ROWS)]
    options = WriteOptions(kept.url, "stream/t", timeout_s=60)
    with ExitStack() as stack:
        publisher = stack.enter_context(RowPublisher(options, b"task"))
        publisher.publish(pa.RecordBatch.from_pydict({"body": bodies[: ROWS // 2]}))
        kept.kill()
        timer = threading.Timer(AWAY_S, kept.start)
        timer.start()
        publisher.publish(pa.RecordBatch.from_pydict({"body": bodies[ROWS // 2 :]}))
        stack.callback(timer.join)
    with ArrowClient(kept.url) as client:
        found = [
            body
            for batch in client.read("t", *client.bounds("t"), ["body"])
            for body in batch.column("body").to_pylist()
        ]
    assert found == bodies


def test_a_sink_whose_container_is_gone_is_one_line() -> None:
    import pyarrow as pa  # noqa: PLC0415 # with Spark

    nobody = f"amqp://127.0.0.1:{free_ports(1)[0]}"
    options = WriteOptions(nobody, "stream/t", timeout_s=1)
    rows = pa.RecordBatch.from_pydict({"body": [b""]})
    with pytest.raises(SinkError, match="rows are not accepted: ") as caught:
        publish(options, b"task", iter([rows]))
    assert "\n" not in str(caught.value)
