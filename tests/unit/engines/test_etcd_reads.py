"""How much one read from etcd brings, where etcd bounds it by the number of entries alone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

pytest.importorskip("aiohttp", reason="the extra [etcd] is not installed")

from cogwork.engines.etcd.reader import READ_ENTRIES_MAX, EtcdReader
from cogwork.engines.shared.entry import Kind, pack_batches
from cogwork.engines.shared.head import Head
from cogwork.engines.shared.pace import READ_BYTES_MAX
from cogwork.plugin.engine.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Sequence

LARGE_BYTES = 1 << 19


class Etcd:
    """A log of entries of some sizes; it writes down what is asked of it."""

    entry_bytes_max = 1 << 20

    def __init__(self, sizes: Sequence[int]) -> None:
        self.entries: list[bytes] = []
        self.reads: list[int] = []
        self.fetches = 0
        head = Head()
        for size in sizes:
            body = pack_batches([Batch.of([bytes(size)])])
            data = head.entry(bytes(8), Kind.RECORDS, body, 0, count=1).to_bytes()
            self.entries.append(data)
            head.take(len(self.entries), data)

    async def range(self, position: int, count: int) -> tuple[list[tuple[int, bytes]], int]:
        found = list(enumerate(self.entries, 1))[position - 1 :][:count]
        self.reads.append(sum(len(data) for _, data in found))
        return found, 1

    async def fetch(self, position: int) -> tuple[int, bytes] | None:
        self.fetches += 1
        found = list(enumerate(self.entries, 1))[position - 1 :]
        return found[0] if found else None


def reads(etcd: Etcd) -> list[int]:
    """Read everything; return how many entries came at a time."""

    async def story() -> list[int]:
        reader = EtcdReader(cast("Any", etcd), 1)
        counts: list[int] = []
        position = 1
        while position <= len(etcd.entries):
            entries = await reader.next(1.0)
            assert [each for each, _ in entries] == list(range(position, position + len(entries)))
            counts.append(len(entries))
            position += len(entries)
        return counts

    return asyncio.run(story())


def test_a_read_is_of_some_mib_even_where_large_entries_follow_many_small_ones() -> None:
    etcd = Etcd([10] * 1500 + [LARGE_BYTES] * 300 + [10] * 1500)
    counts = reads(etcd)
    assert max(etcd.reads) <= READ_BYTES_MAX
    assert max(counts[: len(counts) // 2]) == READ_ENTRIES_MAX


def test_many_small_entries_are_read_at_once() -> None:
    etcd = Etcd([10] * 5 * READ_ENTRIES_MAX)
    counts = reads(etcd)
    assert counts[:9] == [8, 16, 32, 64, 128, 256, 512, 512, 512]
    assert etcd.fetches < 40


def test_what_somebody_else_has_put_there_is_read_by_few() -> None:
    etcd = Etcd([])
    etcd.entries = [b"x"] * 100 + [bytes(LARGE_BYTES)] * 50
    assert max(reads(etcd)) == READ_BYTES_MAX // etcd.entry_bytes_max
    assert max(etcd.reads) <= READ_BYTES_MAX
