"""Measures Spark on this machine: batch reads, a stream source, and a sink into a stream.

    python bench/spark.py [--rows 1000000] [--size 256] [--runs 3] [--master 'local[2]']

It serves a container of its own, with a reader beside it. Prints one line of JSON for each case:
the median of the runs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from cogwork.cli.servers.process import free_ports
from cogwork.spark.session import local_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

STREAM, TARGET = "bench", "target"
APPEND = 20_000
TWO = "offset bigint, body binary"


@contextmanager
def served() -> Iterator[str]:
    """Runs a container in a process of its own."""
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "cogwork.cli.main", "serve", "--json", "--arrow", "1"]
        command += ["--listen", f"127.0.0.1:{port}", "--data", folder]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            assert process.stdout is not None
            process.stdout.readline()
            url = f"amqp://127.0.0.1:{port}"
            for name in (STREAM, TARGET):
                create = [sys.executable, "-m", "cogwork.cli.main", "stream", "create", url, name]
                subprocess.run([*create, "--engine", "raft"], check=True, stdout=subprocess.DEVNULL)
            yield url
        finally:
            process.terminate()
            process.wait()


def rows_of(spark: SparkSession, count: int, size: int) -> DataFrame:
    """Returns rows as publishers write them: a subject, two properties, octets."""
    return spark.range(0, count, 1, 4).selectExpr(
        "concat('flights.', id % 100) as subject",
        "map('carrier', 'UA', 'delay', cast(id % 100 as string)) as properties",
        f"cast(rpad(cast(id as string), {size}, 'x') as binary) as body",
    )


class Bench:
    """The cases, over one session and one container."""

    def __init__(self, spark: SparkSession, url: str, arguments: argparse.Namespace) -> None:
        self.spark = spark
        self.url = url
        self.arguments = arguments
        self.transactions = 0

    def sink(self, target: str = TARGET) -> None:
        self.transactions += 1
        rows = rows_of(self.spark, self.arguments.rows, self.arguments.size)
        writer = rows.write.format("cogwork").mode("append")
        writer.options(url=self.url, transactionId=str(self.transactions)).save(f"stream/{target}")

    def read(self, schema: str | None) -> None:
        reader = self.spark.read.format("cogwork").option("url", self.url)
        table = (reader if schema is None else reader.schema(schema)).load(STREAM)
        table.write.format("noop").mode("overwrite").save()

    def live(self) -> None:
        """Reads all as a query, with as many rows a trigger as there are."""
        with tempfile.TemporaryDirectory() as folder:
            stream = self.spark.readStream.format("cogwork").option("url", self.url)
            query = (
                stream.options(
                    startingOffsets="earliest", maxOffsetsPerTrigger=str(self.arguments.rows)
                )
                .load(STREAM)
                .writeStream.format("noop")
                .option("checkpointLocation", str(Path(folder) / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
            took_ms = sum(each.batchDuration for each in query.recentProgress if each.numInputRows)
        self.triggers_s = took_ms / 1000

    def measure(self, case: str, must: int, work: Callable[[], None]) -> None:
        passed = []
        for _ in range(self.arguments.runs):
            self.triggers_s = 0.0
            since_s = time.perf_counter()
            work()
            passed.append(self.triggers_s or time.perf_counter() - since_s)
        rate = round(self.arguments.rows / median(passed))
        line = {
            "case": case,
            "rows": self.arguments.rows,
            "size_bytes": self.arguments.size,
            "rows_per_s": rate,
            "runs": [round(self.arguments.rows / each) for each in passed],
            "must": must,
            "holds": rate >= must,
        }
        print(json.dumps(line), flush=True)

    def run(self) -> None:
        self.sink(STREAM)  # what is read; and everything has been loaded once
        self.measure("sink into a stream", 150_000, self.sink)
        self.measure("batch read, all columns", 800_000, lambda: self.read(None))
        self.measure("batch read, two columns", 1_500_000, lambda: self.read(TWO))
        self.measure("stream source, all rows in a trigger", 700_000, self.live)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    arguments = parser.parse_args()
    with served() as url:
        spark = local_session("bench", arguments.master)
        try:
            Bench(spark, url, arguments).run()
        finally:
            spark.stop()


if __name__ == "__main__":
    main()
