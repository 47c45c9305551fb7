"""A replica that takes over snapshots of its leader, where those come faster than their records."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from replicas import trio

from cogwork.consensus.batch import Batch, Chunk
from cogwork.consensus.replicated import install, member
from cogwork.consensus.replicated.install import Installation

if TYPE_CHECKING:
    from pathlib import Path

    from replicas import Trio

    from cogwork.consensus.batch import Chunk
    from cogwork.consensus.replicated.engine import RaftEngine
    from cogwork.consensus.replicated.files import KeptState
    from cogwork.consensus.sequencer import Sequencer

BEFORE, MEANWHILE = 100, 60

_read = Installation._read
_fetch = Installation._fetch


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the leader seal often, and a replica fetch little at a time, from afar."""

    async def read(installation: Installation, offset: int, end: int) -> list[Chunk]:
        await asyncio.sleep(0.01)
        return await _read(installation, offset, end)

    monkeypatch.setattr(member, "SEAL_ENTRIES", 20)
    monkeypatch.setattr(install, "SEAL_BYTES", 2000)
    monkeypatch.setattr(install, "READ_BYTES", 1000)
    monkeypatch.setattr(install, "PAUSE_S", 0.01)
    monkeypatch.setattr(Installation, "_read", read)


async def _leave_behind(containers: Trio) -> RaftEngine:
    """Has the entries given up that one replica needs, which is there again then."""
    for name in "abc":
        engine = await containers.open(name)
    engine = await containers.open("a")
    await engine.append(Batch.of([b"0"]))
    await containers.stop("c")
    for _ in range(BEFORE):
        await engine.append(Batch.of([b"x" * 100]))
    containers.start("c")
    await containers.open("c")
    return engine


async def _has_come_to(containers: Trio, offset: int) -> None:
    """Waits until the one that was behind has as much as that."""
    replica = containers.nodes["c"].service.streams["orders"].member
    assert replica is not None
    async with asyncio.timeout(5):
        while replica.replica.state.next_offset < offset:
            await asyncio.sleep(0.01)
    chunks: list[Chunk] = []
    while not chunks or chunks[-1].next_offset < offset:
        chunks += replica.chunks(chunks[-1].next_offset if chunks else 0, 1 << 20)
    assert sum(chunk.batch.count for chunk in chunks) == offset


def test_a_newer_snapshot_takes_the_place_of_one_whose_records_are_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    async def fetch(installation: Installation, state: KeptState, sequencer: Sequencer) -> None:
        begun.append(state.snapshot.index)
        await _fetch(installation, state, sequencer)

    monkeypatch.setattr(Installation, "_fetch", fetch)

    async def story() -> None:
        async with trio(tmp_path) as containers:
            engine = await _leave_behind(containers)
            for _ in range(MEANWHILE):
                await engine.append(Batch.of([b"y" * 100]))
                await asyncio.sleep(0.005)
            await _has_come_to(containers, 1 + BEFORE + MEANWHILE)
            assert len(begun) > 1
            assert containers.reports == []

    asyncio.run(story())


def test_a_snapshot_comes_once_more_whatever_went_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults: list[Exception] = [ValueError("a fault"), AssertionError()]

    async def fetch(installation: Installation, state: KeptState, sequencer: Sequencer) -> None:
        if faults:
            raise faults.pop(0)
        await _fetch(installation, state, sequencer)

    monkeypatch.setattr(Installation, "_fetch", fetch)

    async def story() -> None:
        async with trio(tmp_path) as containers:
            await _leave_behind(containers)
            await _has_come_to(containers, 1 + BEFORE)
            assert containers.reports == [
                "stream orders: a snapshot is refused: a fault",
                "stream orders: a snapshot is refused: AssertionError()",
            ]

    asyncio.run(story())
