"""The writers as plain objects against a container: no JVM."""

from __future__ import annotations

import pickle
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

import pyarrow as pa
from filled_streams import manage
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

import cogwork.sync
import cogwork.testing
from cogwork.pipeline.spark.errors import OptionError, SinkError
from cogwork.pipeline.spark.lookback import Lookback
from cogwork.pipeline.spark.sink import producer_of, publish
from cogwork.pipeline.spark.source import CogworkSource
from cogwork.pipeline.spark.write_options import WriteOptions, write_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STREAMS = "".join(f'[[stream]]\naddress = "stream/{name}"\n' for name in "abcdefghijk")
QUEUE = '[[queue]]\naddress = "queue/small"\nmaximum_length = 1\nmaximum_length_policy = "reject"\n'

SCHEMA = StructType([StructField("address", StringType()), StructField("body", BinaryType())])


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with cogwork.testing.container(STREAMS + QUEUE) as url:
        yield url


def batch(first: int, count: int, **columns: list[str]) -> pa.RecordBatch:
    bodies = [b"%d" % number for number in range(first, first + count)]
    return pa.RecordBatch.from_pydict({**columns, "body": bodies})


def bodies(url: str, stream: str) -> list[bytes]:
    with cogwork.sync.connect(url) as client, client.stream(stream).read("first") as reader:
        found: list[bytes] = []
        while batch := reader.drain():
            for record in batch:
                assert isinstance(record.body, bytes)
                found.append(record.body)
        return found


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_a_task_that_is_run_again_appends_what_is_missing(url: str) -> None:
    options = WriteOptions(url, "stream/a")
    producer = producer_of("query", "q", 7, 0)
    assert publish(options, producer, iter([batch(0, 3000)])).rows == 3000
    again = [batch(0, 2000), batch(2000, 0), batch(2000, 5000)]
    assert publish(options, producer, iter(again)).rows == 7000
    assert bodies(url, "a") == numbers(7000)
    assert publish(options, producer_of("query", "q", 8, 0), iter([batch(0, 1)])).rows == 1
    assert len(bodies(url, "a")) == 7001, "another batch is not the same"


def test_a_task_without_rows_does_not_even_connect() -> None:
    nowhere = WriteOptions("amqp://127.0.0.1:1", "stream/a")
    assert publish(nowhere, b"p", iter([])).rows == 0
    assert publish(nowhere, b"p", iter([batch(0, 0)])).rows == 0


def test_rows_say_where_they_go(url: str) -> None:
    addresses = ["stream/b", "queue/q", "stream/c", "topic/t", "stream/b"]
    with cogwork.sync.connect(url) as client, client.subscribe("topic/t") as messages:
        options = WriteOptions(url)
        publish(options, b"here", iter([batch(0, 5, address=addresses)]))
        publish(options, b"here", iter([batch(0, 5, address=addresses)]))
        received = messages.receive(5)
        assert received is not None
        assert received.body == b"3"
        with client.consume("queue/q") as items:
            got = [items.receive(5), items.receive(5)]
            assert [item.body for item in got if item] == [b"1", b"1"], "queues are at least once"
    assert bodies(url, "b") == [b"0", b"4"]
    assert bodies(url, "c") == [b"2"]
    with pytest.raises(SinkError, match="a row has no address"):
        publish(WriteOptions(url), b"p", iter([batch(0, 1, address=[None])]))  # type: ignore[list-item]  # what is wrong


def test_a_stream_is_the_same_by_either_spelling(url: str) -> None:
    addresses = ["stream/g", "/stream/g", "stream/h", "stream/g", "/stream/g"]
    for kind in (pa.string(), pa.large_string()):
        rows = batch(0, 5).append_column("address", pa.array(addresses, kind))
        assert publish(WriteOptions(url), b"spelt", iter([rows])).rows == 5
    assert bodies(url, "g") == [b"0", b"1", b"3", b"4"]
    assert bodies(url, "h") == [b"2"]


def test_rows_that_are_refused_are_one_line_and_no_new_producer(url: str) -> None:
    nowhere = WriteOptions(url, "stream/nowhere", timeout_s=1)
    with pytest.raises(SinkError, match="rows are not accepted: stream/nowhere"):
        publish(nowhere, b"p", iter([batch(0, 10)]))


@pytest.mark.parametrize("address", ["queue/small", None])
def test_what_went_wrong_is_said_once(url: str, address: str | None) -> None:
    rows = batch(0, 5, address=["queue/small"] * 5)
    with pytest.raises(SinkError, match=r"^rows are not accepted: (?!.*: .*: )") as caught:
        publish(WriteOptions(url, address, timeout_s=1), b"p", iter([rows]))
    assert str(caught.value).count("queue/small") <= 1
    nowhere = WriteOptions(url, "stream/nowhere", idempotency_columns=("body",), timeout_s=1)
    for options in (nowhere, WriteOptions(url, "stream/nowhere", timeout_s=1)):
        with pytest.raises(SinkError) as caught:
            publish(options, b"p", iter([batch(0, 1)]))
        told = "".join(traceback.format_exception(caught.value))
        assert told.count(str(caught.value)) == 1
        assert told.count("Traceback") == 1, "nor what was caught on the way"


@pytest.mark.parametrize("count", [10, 30_000])
def test_rows_that_nobody_takes_fail_in_time(url: str, count: int) -> None:
    nobody = WriteOptions(url, "unicast/nobody", timeout_s=1)
    with pytest.raises(SinkError, match=r"not accepted: unicast/nobody: .*there was no credit"):
        publish(nobody, b"p", iter([batch(0, count)]))


def test_rows_that_are_taken_slowly_are_waited_for(url: str) -> None:
    with cogwork.sync.connect(url) as client, client.consume("unicast/slow", credit=1) as items:
        slow = WriteOptions(url, "unicast/slow", timeout_s=1)
        with ThreadPoolExecutor(1) as pool:
            published = pool.submit(publish, slow, b"p", iter([batch(0, 6)]))
            for _ in range(6):
                item = items.receive(5)
                assert item is not None
                time.sleep(0.4)  # for all rows that is longer than none may be taken
                items.accept(item)
            assert published.result().rows == 6


def test_a_producer_that_the_stream_does_not_know_any_more_fails(url: str) -> None:
    from cogwork.pipeline.arrow.loop_thread import loop_thread  # noqa: PLC0415  # with Spark

    async def run() -> None:
        async with cogwork.connect(url) as client:
            async with client.stream("d").publisher(producer=b"kept") as out:
                await out.send_batch([b"0", b"1"])
                assert out.producer == b"kept"
            await client.manage("DELETE", {"type": "stream", "name": "stream/d"})
            await client.manage("CREATE", {"type": "stream", "name": "stream/d"})

    loop_thread().wait(run())

    async def go_on() -> None:
        async with cogwork.connect(url) as client:
            publisher = client.stream("d").publisher(producer=b"kept")
            async with publisher as out:
                await out.send(b"0")
                assert out.producer == b"kept"
            with pytest.raises(ValueError, match="1 to 64 octets"):
                client.stream("d").publisher(producer=b"")

    loop_thread().wait(go_on())
    assert bodies(url, "d") == [b"0"]


def test_columns_tell_which_rows_are_there(url: str) -> None:
    options = WriteOptions(url, "stream/e", idempotency_columns=("key", "subject"))

    def rows(*keys: int) -> pa.RecordBatch:
        found = batch(0, len(keys), subject=["s"] * len(keys))
        return found.append_column("key", pa.array(keys))

    assert publish(options, b"", iter([rows(1, 2), rows(3)])).rows == 3
    assert publish(options, b"", iter([rows(3, 4, 4), rows(2, 5)])).rows == 2
    assert publish(options, b"", iter([rows(1, 2, 3, 4, 5)])).rows == 0
    assert len(bodies(url, "e")) == 5
    other = WriteOptions(url, "stream/e", idempotency_columns=("key",))
    assert publish(other, b"", iter([rows(1)])).rows == 1, "other columns are another identity"


FOREVER_US = 253_402_318_799_000_000
"""The end of the year 9999 in New York, as databases have it for good: in UTC, Python has none."""


@pytest.mark.parametrize(
    "instants",
    [
        lambda kind: pa.array([0, FOREVER_US], kind),
        lambda kind: pa.array([[0, 1], [0, FOREVER_US]], pa.list_(kind)),
        lambda kind: pa.array([{"at": 0}, {"at": 1}], pa.struct([pa.field("at", kind, False)])),
        lambda kind: pa.array([[("at", 0)], [("at", 1)]], pa.map_(pa.string(), kind)),
    ],
    ids=["instant", "list", "struct", "map"],
)
def test_an_instant_is_the_same_in_every_time_zone(
    url: str, instants: Callable[[pa.DataType], pa.Array]
) -> None:
    options = WriteOptions(url, "stream/i", idempotency_columns=("at",))
    for zone, fresh in (("UTC", 2), ("Europe/Berlin", 0), ("America/New_York", 0)):
        rows = batch(0, 2).append_column("at", instants(pa.timestamp("us", tz=zone)))
        assert publish(options, b"", iter([rows])).rows == fresh, zone


def test_a_row_is_named_by_its_query_its_columns_and_its_values() -> None:
    """Always the same way, or rows that an older version has written would be written again."""
    options = WriteOptions("amqp://nowhere", "stream/i", idempotency_columns=("n", "t"))
    lookback = Lookback(options)
    times = pa.array([0], pa.timestamp("us"))
    rows = batch(0, 1).append_column("n", pa.array([7])).append_column("t", times)
    with patch.object(Lookback, "_read", lambda _: set()):
        (name,) = lookback.fresh(rows).column("message_id").to_pylist()
    row = b"('', [('n', 7), ('t', datetime.datetime(1970, 1, 1, 0, 0))])"
    assert name == sha256(row).hexdigest()[:32]


def test_rows_of_other_columns_and_of_other_queries_are_others(url: str) -> None:
    def written(names: tuple[str, ...], query: str = "") -> int:
        rows = batch(0, 2).append_column("a", pa.array([1, 2])).append_column("b", pa.array([1, 2]))
        return publish(
            WriteOptions(url, "stream/j", idempotency_columns=names, query=query), b"", iter([rows])
        ).rows

    assert written(("a",)) == 2
    assert written(("b",)) == 2, "the same values in another column"
    assert written(("a",), "orders") == 2, "the same values of another query"
    assert written(("a", "b")) == 2
    assert [written(("b", "a")), written(("a",)), written(("a",), "orders")] == [0, 0, 0]
    options = {"url": url, "address": "stream/j", "idempotencyColumns": "a", "queryName": "orders"}
    schema = StructType([StructField("a", StringType()), StructField("body", BinaryType())])
    found = write_options(options, schema, is_streaming=True)
    assert found.query == "orders", "as Spark's queryName() has it"


def test_a_message_id_of_the_user_is_never_replaced() -> None:
    options = {"url": "amqp://localhost", "address": "stream/j", "idempotencyColumns": "body"}
    rows = StructType([*SCHEMA.fields, StructField("message_id", StringType())])
    with pytest.raises(OptionError, match="gives each row a message-id of its own, and rows have"):
        CogworkSource(options).writer(rows, overwrite=False)


def in_partitions(url: str, name: str, *parts: pa.RecordBatch) -> list[int | str]:
    """Write as Spark does, a task for each partition; return what they say."""
    options = {"url": url, "address": "/stream/k", "transactionId": name}
    writer = pickle.dumps(CogworkSource(options).writer(ROWS, overwrite=False))
    told: list[int | str] = []
    for number, rows in enumerate(parts):
        with patch("cogwork.pipeline.spark.sink._partition", return_value=number):
            try:
                halves = [rows[: rows.num_rows // 2], rows[rows.num_rows // 2 :]]
                told.append(pickle.loads(writer).write(iter(halves)).rows)
            except SinkError as error:
                told.append(str(error).partition(" (")[0])
    return told


ROWS = StructType([StructField("body", BinaryType()), StructField("subject", StringType())])
REFUSED = "transactionId 't' was used before for other rows, or for other partitions"


@pytest.mark.parametrize(
    "again",
    [
        [(0, 300)],
        [(0, 150), (150, 150)],
        [(0, 100), (100, 100), (200, 50), (250, 50)],
        [(0, 50), (50, 50), (100, 50), (150, 50), (200, 50), (250, 50)],
        [(0, 100), (100, 100)],
        [(100, 100), (0, 100), (200, 100)],
        [(0, 101), (101, 99), (200, 100)],
        [(0, 100), (100, 100), (200, 99)],
        [(500, 100), (600, 100), (700, 100)],
    ],
    ids=str,
)
def test_a_transaction_in_other_partitions_writes_nothing(
    url: str, again: list[tuple[int, int]]
) -> None:
    manage(url, "DELETE", "k")
    manage(url, "CREATE", "k")
    parts = [batch(first, 100, subject=["x"] * 100) for first in (0, 100, 200)]
    assert in_partitions(url, "t", *parts) == [100, 100, 100]
    other = [batch(first, count, subject=["x"] * count) for first, count in again]
    if again == [(0, 100), (100, 100)]:  # one is missing: its task has nothing to send
        other.append(batch(0, 0, subject=[]))
    told = in_partitions(url, "t", *other)
    assert any(isinstance(each, str) for each in told)
    assert {each for each in told if isinstance(each, str)} == {REFUSED}
    assert len(bodies(url, "k")) == 300, "nothing was written"
    assert in_partitions(url, "t", *parts) == [100, 100, 100], "the same again is fine"
    assert in_partitions(url, "u", *other) == [each.num_rows for each in other]


def test_a_transaction_that_was_not_finished_is_finished(url: str) -> None:
    manage(url, "DELETE", "k")
    manage(url, "CREATE", "k")
    parts = [batch(first, 100, subject=["x"] * 100) for first in (0, 100, 200)]
    assert in_partitions(url, "t", parts[0][:40], parts[1][:0], parts[2][:1]) == [40, 0, 1]
    assert in_partitions(url, "t", *parts) == [100, 100, 100]
    assert sorted(map(int, bodies(url, "k"))) == list(range(300))


def test_writers_are_sent_to_workers(url: str) -> None:
    source = CogworkSource({"url": url, "address": "stream/f", "transactionId": "t1"})
    writer = pickle.loads(pickle.dumps(source.writer(SCHEMA, overwrite=False)))
    written = writer.write(iter([batch(0, 10)]))
    writer.abort([written])
    writer.commit([written])
    assert bodies(url, "f") == numbers(10), "abort takes nothing back"
    with pytest.raises(OptionError, match="cannot be overwritten"):
        source.writer(SCHEMA, overwrite=True)
