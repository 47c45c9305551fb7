"""What the log costs: `python bench/log.py` prints one line of JSON.

Appends of records of 100 octets, in batches with a flush each, beside a loop that only writes as
many octets and synchronises them, with nothing around it; replay from segments, beside a loop that
only reads the same files. Every figure comes with the plain loop's of the same run, for disks
differ and so do days.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import shutil
import sys
import tempfile
import time
from pathlib import Path

from cogwork.dataplane.disk import Disk
from cogwork.log.block import Block
from cogwork.log.directory import Directory
from cogwork.log.disk_queue import DiskQueue
from cogwork.log.record import OVERHEAD_BYTES
from cogwork.log.segment_store import SegmentStore
from cogwork.log.wal import Wal

RECORD = b"x" * 100
BATCHES = (1, 10, 100, 1000)
IN_FLIGHT_BYTES = 1 << 20
READ_BYTES = 1 << 20
FILE_BYTES = 64 << 20
GROUP = 7


def appends(path: Path, batch: int, seconds: float) -> dict[str, float]:
    """Append as fast as the disk takes it, and lets old records go."""
    disk = Disk()
    queue = DiskQueue(disk)
    wal = Wal(Directory(path), queue, "bench")
    assert list(wal.recover()) == []
    queue.finish()
    count, syncs = 0, disk.sync_count
    start_s, cpu_s = time.perf_counter(), time.process_time()
    while time.perf_counter() - start_s < seconds:
        for index in range(count, count + batch):
            wal.append(GROUP, 1, index, 1, RECORD)
        wal.flush()
        count += batch
        wal.low_water(GROUP, wal.end_lsn)
        while wal.waiting_bytes > IN_FLIGHT_BYTES:
            queue.wait()
        if select.select([disk], [], [], 0)[0]:
            queue.dispatch()
    queue.finish()
    wall_s, cpu_s = time.perf_counter() - start_s, time.process_time() - cpu_s
    syncs = disk.sync_count - syncs
    wal.close()
    queue.close()
    return {
        "records_per_s": round(count / wall_s),
        "cpu_s_per_million": round(cpu_s / count * 1e6, 3),
        "syncs_per_s": round(syncs / wall_s),
    }


def one_by_one(path: Path, seconds: float) -> list[float]:
    """Wait for each record before the next one; return how long each took, in seconds."""
    queue = DiskQueue(Disk())
    wal = Wal(Directory(path), queue, "bench")
    assert list(wal.recover()) == []
    queue.finish()
    taken_s = []
    end_s = time.perf_counter() + seconds
    while (start_s := time.perf_counter()) < end_s:
        lsn = wal.append(GROUP, 1, 0, 1, RECORD)
        wal.flush()
        while wal.durable_lsn <= lsn:
            queue.wait()
        taken_s.append(time.perf_counter() - start_s)
    wal.close()
    queue.close()
    return taken_s


def plain_appends(path: Path, batch: int, seconds: float) -> tuple[float, list[float]]:
    """Write and synchronise as many octets, one batch after the other, in a reserved file."""
    data = (RECORD + bytes(OVERHEAD_BYTES)) * batch
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.posix_fallocate(fd, 0, FILE_BYTES)
    os.fsync(fd)
    position, taken_s = 0, []
    start_s = time.perf_counter()
    while time.perf_counter() - start_s < seconds:
        before_s = time.perf_counter()
        os.pwrite(fd, data, position)
        os.fdatasync(fd)
        taken_s.append(time.perf_counter() - before_s)
        position = (position + len(data)) % (FILE_BYTES - len(data))
    wall_s = time.perf_counter() - start_s
    os.close(fd)
    return len(taken_s) * batch / wall_s, taken_s


def replay(path: Path, records: int) -> dict[str, float]:
    """Seal segments and read them, twice: the figures are of the second time, from memory."""
    queue = DiskQueue(Disk())
    store = SegmentStore(Directory(path), queue)
    data = (len(RECORD).to_bytes(4, "big") + RECORD) * 100
    per_segment = 500_000
    cpu_s = time.process_time()
    for first in range(0, records, per_segment):
        blocks = [Block(each, 100, each, data) for each in range(first, first + per_segment, 100)]
        queue.run(store.sealing(blocks))
    seal_cpu_s = time.process_time() - cpu_s
    size = sum(_read_all(store))
    start_s, cpu_s = time.perf_counter(), time.process_time()
    assert sum(_read_all(store)) == size
    wall_s, cpu_s = time.perf_counter() - start_s, time.process_time() - cpu_s
    start_s = time.perf_counter()
    for file in path.glob("*.seg"):
        with file.open("rb", buffering=0) as opened:
            while opened.read(READ_BYTES):
                pass
    plain_s = time.perf_counter() - start_s
    queue.close()
    return {
        "mb_per_s": round(size / wall_s / 1e6),
        "records_per_s": round(records / wall_s),
        "cpu_s_per_million": round(cpu_s / records * 1e6, 4),
        "of_plain_reads": round(plain_s / wall_s, 3),
        "seal_cpu_s_per_million": round(seal_cpu_s / records * 1e6, 4),
    }


def _read_all(store: SegmentStore) -> list[int]:
    offset, sizes = 0, []
    while blocks := store.read(offset, READ_BYTES):
        sizes.append(sum(len(block.data) for block in blocks))
        offset = blocks[-1].next_offset
    return sizes


def recovery(path: Path, records: int) -> dict[str, float]:
    """Read a log of as many records after an orderly end."""
    queue = DiskQueue(Disk())
    wal = Wal(Directory(path), queue, "bench", waiting_bytes_max=FILE_BYTES)
    assert list(wal.recover()) == []
    for index in range(records):
        wal.append(GROUP, 1, index, 1, RECORD)
        if index % 1000 == 0:
            wal.flush()
            queue.finish()
    wal.close()
    wal = Wal(Directory(path), queue, "bench")
    start_s = time.perf_counter()
    assert sum(1 for _ in wal.recover()) == records
    wall_s = time.perf_counter() - start_s
    wal.close()
    queue.close()
    return {"records_per_s": round(records / wall_s)}


def quantiles(taken_s: list[float]) -> dict[str, float]:
    taken_s = sorted(taken_s)
    return {
        f"p{percent}_ms": round(taken_s[len(taken_s) * percent // 100] * 1e3, 3)
        for percent in (50, 99)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", help="where the files go; its disk is what is measured")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each case")
    parser.add_argument("--records", type=int, default=5_000_000, help="to be replayed")
    options = parser.parse_args()
    path = Path(tempfile.mkdtemp(dir=options.directory, prefix="cogwork-log-"))
    try:
        cases = {}
        for batch in BATCHES:
            plain, _ = plain_appends(path / "plain", batch, options.seconds)
            case = appends(path / f"batch-{batch}", batch, options.seconds)
            case["plain_records_per_s"] = round(plain)
            case["of_plain"] = round(case["records_per_s"] / plain, 2)
            cases[str(batch)] = case
        _, plain_s = plain_appends(path / "plain", 1, options.seconds)
        durable = {
            "log": quantiles(one_by_one(path / "durable", options.seconds)),
            "plain": quantiles(plain_s),
        }
        found = {
            "record_bytes": len(RECORD),
            "append": cases,
            "durable": durable,
            "replay": replay(path / "segments", options.records),
            "recovery": recovery(path / "recovery", 300_000),
        }
        json.dump(found, sys.stdout)
        print()
    finally:
        shutil.rmtree(path)


if __name__ == "__main__":
    main()
