"""Readers go on where containers do not: killed, away for a while, gone for good."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")

from pyspark.sql.types import StructType

import cogwork.sync
from cogwork.arrow import ArrowClient
from cogwork.cli.servers.process import free_ports
from cogwork.spark.columns import SCHEMA
from cogwork.spark.errors import SinkError, SourceError
from cogwork.spark.row_publisher import RowPublisher
from cogwork.spark.sink import publish
from cogwork.spark.source import CogworkSource
from cogwork.spark.write_options import WriteOptions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = 40_000

AWAY_S = float(os.environ.get("COGWORK_AWAY_S", "2"))


class Kept:
    """A container with a directory, that can be killed and comes back at its port."""

    def __init__(self, folder: Path) -> None:
        (self.port,) = free_ports(1)
        self.url = f"amqp://127.0.0.1:{self.port}"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "cogwork.cli.main", "serve", "--json", "--id", "kept"]
        command += ["--listen", f"127.0.0.1:{self.port}", "--data", str(self._folder)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self._process.stdout is not None
        assert self._process.stdout.readline()

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    container = Kept(tmp_path)
    container.start()
    try:
        for name in ("s", "t"):
            create = ["stream", "create", container.url, name, "--engine", "raft"]
            subprocess.run(
                [sys.executable, "-m", "cogwork.cli.main", *create],
                check=True,
                stdout=subprocess.DEVNULL,
            )
        yield container
    finally:
        container.kill()


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


@pytest.mark.timeout(120 + 2 * AWAY_S)
def test_a_query_goes_on_where_the_container_comes_back(
    spark: SparkSession, kept: Kept, tmp_path: Path
) -> None:
    with cogwork.sync.connect(kept.url) as mesh:
        mesh.stream("s").append([b"%d" % number for number in range(100)])
    query = (
        spark.readStream.format("cogwork")
        .options(url=kept.url, startingOffsets="earliest", maxOffsetsPerTrigger="30")
        .schema("body binary")
        .load("s")
        .writeStream.format("cogwork")
        .options(url=kept.url, path="stream/t", checkpointLocation=str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        wait_for(kept, 100)
        kept.kill()
        time.sleep(AWAY_S)
        kept.start()
        with cogwork.sync.connect(kept.url) as mesh:
            mesh.stream("s").append([b"%d" % number for number in range(100, 200)])
        wait_for(kept, 200)
        assert query.isActive
    finally:
        query.stop()
    with ArrowClient(kept.url) as client:
        batches = client.read("t", *client.bounds("t"), ["body"])
        found = [int(body) for batch in batches for body in batch.column("body").to_pylist()]
    assert sorted(found) == list(range(200))


def wait_for(kept: Kept, count: int) -> None:
    until_s = time.monotonic() + 100
    with ArrowClient(kept.url) as client:
        while client.bounds("t").next < count:
            assert time.monotonic() < until_s
            time.sleep(0.05)


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
