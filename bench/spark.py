"""Measures Spark on this machine: batch reads, a stream source, and a sink into a stream.

    python bench/spark.py [--rows 4000000] [--trigger 1000000] [--size 256] [--warm 2] [--runs 3]
                          [--master 'local[2]'] [--set K=V] [--only TEXT]

It serves a container of its own, with a reader beside it. Each case runs a few times before its
time is taken: a session's first reads start Spark's workers, and the JVM compiles what it runs
often. Prints one line of JSON for each case: the median of the runs, and the CPU seconds that each
party took for a million rows. Parquet files with the same rows are read in turn with the streams,
in the same session; `of_parquet` is the rate in relation to theirs. A read of ten rows tells what a
read takes before its first row. The sink gets as many rows as a trigger.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from parties import children, own_cpu_s, since, tree_cpu_s

from cogwork.bench.servers.process import free_ports
from cogwork.pipeline.spark.session import local_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

STREAM, TARGET = "bench", "target"
STARTS = 9
TWO = ("offset", "body")
SCHEMAS = {"all columns": None, "two columns": "offset bigint, body binary"}


@contextmanager
def served() -> Iterator[tuple[str, int]]:
    """Run a container in a process of its own; yield where, and the process."""
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
            yield url, process.pid
        finally:
            process.terminate()
            process.wait()


def rows_of(spark: SparkSession, count: int, size: int) -> DataFrame:
    """Return rows as publishers write them: a subject, two properties, octets."""
    return spark.range(0, count, 1, 4).selectExpr(
        "concat('flights.', id % 100) as subject",
        "map('carrier', 'UA', 'delay', cast(id % 100 as string)) as properties",
        f"cast(rpad(cast(id as string), {size}, 'x') as binary) as body",
    )


def consume(table: DataFrame) -> None:
    """Have Spark make all rows, and keep none."""
    table.write.format("noop").mode("overwrite").save()


class Case:
    """One that is measured.

    Attributes:
        name: What is done.
        rows: With how many rows.
        must: Rows a second that there have to be; None where it is measured beside another one.
        work: Does it once; returns how long that took, where it is not the call's own time.
    """

    def __init__(
        self, name: str, rows: int, must: int | None, work: Callable[[], float | None]
    ) -> None:
        self.name = name
        self.rows = rows
        self.must = must
        self.work = work
        self.passed_s: list[float] = []
        self.cpu_s: list[dict[str, float]] = []


class Bench:
    """The cases, over one session and one container."""

    def __init__(
        self,
        spark: SparkSession,
        url: str,
        container: int,
        folder: Path,
        arguments: argparse.Namespace,
    ) -> None:
        self.spark = spark
        self.url = url
        self.container = container
        self.folder = folder
        self.arguments = arguments
        self.transactions = 0

    # -- what is measured

    def sink(self, rows: int, target: str = TARGET) -> None:
        self.transactions += 1
        table = rows_of(self.spark, rows, self.arguments.size)
        writer = table.write.format("cogwork").mode("append")
        writer.options(url=self.url, transactionId=str(self.transactions)).save(f"stream/{target}")

    def stream(self, columns: str) -> DataFrame:
        reader = self.spark.read.format("cogwork").option("url", self.url)
        schema = SCHEMAS[columns]
        return (reader if schema is None else reader.schema(schema)).load(STREAM)

    def parquet(self, columns: str) -> DataFrame:
        table = self.spark.read.parquet(str(self.folder / "rows"))
        return table if SCHEMAS[columns] is None else table.select(*TWO)

    def live(self) -> float:
        """Read all as a query; return how long its triggers took."""
        stream = self.spark.readStream.format("cogwork").option("url", self.url)
        checkpoint = tempfile.mkdtemp(dir=self.folder)
        query = (
            stream.options(
                startingOffsets="earliest", maxOffsetsPerTrigger=str(self.arguments.trigger)
            )
            .load(STREAM)
            .writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return sum(each.batchDuration for each in query.recentProgress if each.numInputRows) / 1000

    # -- measuring

    def cpu_s(self) -> dict[str, float]:
        """Return what each party has taken so far."""
        gateway = self.spark.sparkContext._gateway
        assert gateway is not None
        java = gateway.proc.pid
        container, jvm = own_cpu_s(self.container), own_cpu_s(java)
        return {
            "container": container,
            "reader": sum(map(tree_cpu_s, children(self.container))),
            "jvm": jvm,
            "workers": tree_cpu_s(java) - jvm,
            "driver": own_cpu_s(os.getpid()),
        }

    def time(self, case: Case) -> None:
        before, since_s = self.cpu_s(), time.perf_counter()
        told_s = case.work()
        case.passed_s.append(told_s or time.perf_counter() - since_s)
        case.cpu_s.append(since(before, self.cpu_s(), case.rows / 1e6))

    def measure(self, *cases: Case) -> None:
        """Measure cases in turn, and print each; the last one is what others are compared to."""
        if self.arguments.only not in cases[0].name:
            return
        for _ in range(self.arguments.warm):
            for case in cases:
                case.work()
        for _ in range(self.arguments.runs):
            for case in cases:
                self.time(case)
        rates = [case.rows / median(case.passed_s) for case in cases]
        for case, rate in zip(cases, rates, strict=True):
            self.tell(case, rate, rate / rates[-1] if case is not cases[-1] else None)

    def tell(self, case: Case, rate: float, of_parquet: float | None) -> None:
        line: dict[str, object] = {
            "case": case.name,
            "rows": case.rows,
            "size_bytes": self.arguments.size,
            "rows_per_s": round(rate),
            "runs": [round(case.rows / each) for each in case.passed_s],
            "cpu_s_a_million": {
                party: round(median(each[party] for each in case.cpu_s), 2)
                for party in case.cpu_s[0]
            },
        }
        if of_parquet is not None:
            line["of_parquet"] = round(of_parquet, 2)
        if case.must is not None:
            line |= {"must": case.must, "holds": rate >= case.must}
        print(json.dumps(line), flush=True)

    def run(self) -> None:
        rows, trigger = self.arguments.rows, self.arguments.trigger
        self.sink(rows, STREAM)  # what is read
        self.stream("all columns").write.parquet(str(self.folder / "rows"))
        self.beside_parquet("all columns", 800_000)
        self.beside_parquet("two columns", 1_500_000)
        self.measure(Case(f"stream source, {trigger} rows a trigger", rows, 700_000, self.live))
        self.measure(Case("sink into a stream", trigger, 150_000, lambda: self.sink(trigger)))
        self.measure_start()

    def measure_start(self) -> None:
        """Measure what a read takes before its first row."""
        few = self.spark.read.format("cogwork").options(url=self.url, endingOffsets="10")
        passed_s = []
        for _ in range(STARTS):
            since_s = time.perf_counter()
            consume(few.load(STREAM))
            passed_s.append(time.perf_counter() - since_s)
        line = {"case": "batch read, ten rows", "seconds": round(median(passed_s), 3)}
        print(json.dumps(line), flush=True)

    def beside_parquet(self, columns: str, must: int) -> None:
        rows = self.arguments.rows
        self.measure(
            Case(f"batch read, {columns}", rows, must, lambda: consume(self.stream(columns))),
            Case(f"parquet, {columns}", rows, None, lambda: consume(self.parquet(columns))),
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--trigger", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--warm", type=int, default=2, help="runs that do not count")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--only", default="", help="cases with this in their names")
    parser.add_argument("--set", action="append", default=[], metavar="K=V", help="of Spark")
    arguments = parser.parse_args()
    settings = dict(each.split("=", 1) for each in arguments.set)
    with served() as (url, container), tempfile.TemporaryDirectory() as folder:
        spark = local_session("bench", arguments.master, settings)
        try:
            Bench(spark, url, container, Path(folder), arguments).run()
        finally:
            spark.stop()


if __name__ == "__main__":
    main()
