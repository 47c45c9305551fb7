"""How fast a stream gets into an Iceberg table, from end to end: one JSON line.

    python bench/archive.py [--rows N] [--size BYTES] [--master local[2]] [--engine orb]

A container in a process of its own gets the records; `cogwork.pipeline.archive` reads them by
Arrow, writes Parquet with the workers of a Spark session that has started, and commits. Neither the
container's filling nor Spark's start count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import cogwork
from cogwork.bench.servers.process import free_ports
from cogwork.client import Retry
from cogwork.client.requests.management import manage
from cogwork.pipeline.archive import Archive, Archiver, Settings
from cogwork.pipeline.archive.origin import Origin
from cogwork.pipeline.archive.upkeep import Upkeep, keep
from cogwork.pipeline.archive.workers import SparkWorkers, ThreadWorkers
from cogwork.pipeline.spark.session import local_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.pipeline.archive.workers import Workers

STREAM, WARM = "bench", "warm"
WARM_ROWS = 200_000
BATCH = 1_000


@contextmanager
def served(folder: Path) -> Iterator[str]:
    (port,) = free_ports(1)
    file = folder / "cogwork.toml"
    file.write_text(f'id = "bench"\ndata_dir = "{folder / "data"}"\n[[listen]]\nport = {port}\n')
    command = [sys.executable, "-m", "cogwork.cli.main", "serve", "--config", str(file)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield f"amqp://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(15)


async def fill(url: str, name: str, engine: str, rows: int, size_bytes: int) -> None:
    rng = random.Random(1)
    size_bytes -= size_bytes % 2
    async with await reached(url) as client:
        asked = {"type": "stream", "name": f"stream/{name}"}
        await manage(client, "CREATE", asked, {"engine": engine})
        async with client.stream(name).publisher() as out:
            for start in range(0, rows, BATCH):
                await out.ready()
                out.post_batch(
                    cogwork.Message(
                        rng.randbytes(size_bytes // 2).hex().encode(),  # a half is redundant
                        subject="bench",
                        to="topic/bench",
                    )
                    for _ in range(start, min(rows, start + BATCH))
                )
            await out.flush()


async def reached(url: str) -> cogwork.Client:
    """Wait until the container is there."""
    for _ in range(100):
        try:
            async with cogwork.connect(url):
                break
        except OSError:
            await asyncio.sleep(0.1)
    return cogwork.connect(url, retry=Retry(give_up_after_s=30))


def measure(url: str, workers: Workers, folder: Path, arguments: argparse.Namespace) -> None:
    settings = Settings(commit_rows=arguments.commit_rows)
    with Origin(url) as origin, Archive.open(str(folder / "archive"), make=True) as archive:
        Archiver(origin, archive, workers).run(WARM)  # Spark's Python workers have started
        began = time.monotonic()
        outcome = Archiver(origin, archive, workers, settings).run(STREAM)
        archived_s = time.monotonic() - began
        table = archive.table(STREAM)
        size_bytes = sum(file.size_bytes for file in table.files())
        began = time.monotonic()
        kept = keep(table, Upkeep(small_files_min=2, target_bytes=2**30, orphan_age_s=0))
        kept_s = time.monotonic() - began
        rows = sum(file.rows for file in table.files())
    assert rows == outcome.rows == arguments.rows
    print(
        json.dumps(
            {
                "bench": "archive",
                "rows": rows,
                "size_bytes": arguments.size,
                "engine": arguments.engine,
                "master": arguments.master,
                "commits": outcome.commits,
                "rows_per_s": round(rows / archived_s),
                "parquet_bytes": size_bytes,
                "compacted_files": kept.compacted,
                "upkeep_s": round(kept_s, 2),
            }
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--commit-rows", type=int, default=500_000)
    parser.add_argument("--engine", default="raft")
    parser.add_argument("--master", default="local[2]", help="Spark's; none is threads.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, served(Path(place)) as url:
        asyncio.run(fill(url, WARM, arguments.engine, WARM_ROWS, arguments.size))
        asyncio.run(fill(url, STREAM, arguments.engine, arguments.rows, arguments.size))
        if arguments.master == "none":
            measure(url, ThreadWorkers(), Path(place), arguments)
            return
        session = local_session("bench", arguments.master)
        try:
            measure(url, SparkWorkers(session), Path(place), arguments)
        finally:
            session.stop()


if __name__ == "__main__":
    main()
