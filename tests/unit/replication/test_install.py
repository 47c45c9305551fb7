"""A replica that takes over snapshots of its leader, where those come faster than their records."""

from __future__ import annotations

import asyncio
import errno
import gc
from typing import TYPE_CHECKING

import pytest
from replicas import trio

from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.contract import Bounds
from cogwork.plugin.engine.placement import Placement
from cogwork.replication import install, member
from cogwork.replication.install import Installation
from cogwork.replication.service import RaftService

if TYPE_CHECKING:
    from pathlib import Path

    from replicas import Trio

    from cogwork.plugin.engine.batch import Chunk
    from cogwork.plugin.engine.sequencer import Sequencer
    from cogwork.replication.engine import RaftEngine
    from cogwork.replication.files import KeptState

BEFORE, MEANWHILE = 100, 60

_read = Installation._read
_fetch = Installation._fetch


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the leader seal often, and a replica fetch little at a time, from afar."""

    async def read(installation: Installation, offset: int, end: int) -> list[Chunk]:
        await asyncio.sleep(0.01)
        return await _read(installation, offset, end)

    monkeypatch.setattr(member, "SEAL_ENTRIES", 20)
    monkeypatch.setattr(install, "SEAL_BYTES", 2000)
    monkeypatch.setattr(install, "READ_BYTES", 1000)
    monkeypatch.setattr(install, "PAUSE_S", 0.01)
    monkeypatch.setattr(Installation, "_read", read)


async def _leave_behind(containers: Trio, trimmed: int = 0) -> RaftEngine:
    """Have the entries given up that one replica needs, which is there again then.

    Args:
        containers: All of them.
        trimmed: Records below are given up before it is there.
    """
    for name in "abc":
        engine = await containers.open(name)
    engine = await containers.open("a")
    await engine.append(Batch.of([b"0"]))
    await containers.stop("c")
    for _ in range(BEFORE):
        await engine.append(Batch.of([b"x" * 100]))
    await engine.trim(trimmed)
    containers.start("c")
    await containers.open("c")
    return engine


async def _has_come_to(containers: Trio, offset: int, first: int = 0) -> None:
    """Wait until the one that was behind has as much as that, from the first record on."""
    replica = containers.nodes["c"].service.streams["orders"].member
    assert replica is not None
    async with asyncio.timeout(30):
        while replica.replica.state.bounds != Bounds(first, offset):
            await asyncio.sleep(0.01)
    at = first
    while at < offset:
        chunks = replica.chunks(at, 1 << 20)
        assert chunks[0].offset == at
        at = chunks[-1].next_offset
    assert at == offset


def test_a_newer_snapshot_takes_the_place_of_one_whose_records_are_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    async def fetch(installation: Installation, state: KeptState, sequencer: Sequencer) -> None:
        begun.append(state.snapshot.index)
        if len(begun) == 1:
            await asyncio.Event().wait()  # it never ends by itself
        await _fetch(installation, state, sequencer)

    monkeypatch.setattr(Installation, "_fetch", fetch)

    async def story() -> None:
        async with trio(tmp_path) as containers:
            engine = await _leave_behind(containers)
            meanwhile = 0
            async with asyncio.timeout(30):
                while len(begun) < 2:
                    await engine.append(Batch.of([b"y" * 100]))
                    await asyncio.sleep(0.005)
                    meanwhile += 1
            await _has_come_to(containers, 1 + BEFORE + meanwhile)
            assert begun == sorted(begun)
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
                "stream orders: cannot install a snapshot: a fault",
                "stream orders: cannot install a snapshot: AssertionError()",
            ]

    asyncio.run(story())


@pytest.mark.parametrize("trimmed", [1, 50, 99, BEFORE, 1 + BEFORE])
def test_what_was_given_up_since_a_snapshot_is_not_fetched(tmp_path: Path, trimmed: int) -> None:
    async def story() -> None:
        async with trio(tmp_path) as containers:
            engine = await _leave_behind(containers, trimmed)
            await _has_come_to(containers, 1 + BEFORE, trimmed)
            await containers.stop("c")
            await engine.append(Batch.of([b"z"]))
            containers.start("c")
            await containers.open("c")
            await _has_come_to(containers, 2 + BEFORE, trimmed)
            assert containers.reports == []

    asyncio.run(story())


def test_what_is_given_up_while_records_are_fetched_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    async def story() -> None:
        async with trio(tmp_path) as containers:

            async def trim_and_read(each: Installation, offset: int, end: int) -> list[Chunk]:
                read.append(offset)
                if len(read) == 5:
                    await (await containers.open("a")).trim(60)
                return await _read(each, offset, end)

            monkeypatch.setattr(Installation, "_read", trim_and_read)
            await _leave_behind(containers)
            await _has_come_to(containers, 1 + BEFORE, 60)
            assert 0 < read[4] < 60
            assert containers.reports == []

    asyncio.run(story())


def test_two_that_were_away_do_not_wait_for_each_other(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path, "abcde") as containers:
            containers.placements["orders", 17] = Placement([*"abcde"], founders=[*"abcde"])
            engines = [await containers.open(name) for name in "abcde"]
            await engines[0].append(Batch.of([b"0"]))
            for name in "ce":
                await containers.stop(name)
            for _ in range(BEFORE):
                await engines[0].append(Batch.of([b"x" * 100]))
            for name, other in (("c", "abde"), ("e", "abcd")):
                containers.start(name)
                await containers.open(name)
                stream = containers.nodes[name].service.streams["orders"]
                stream._reader = other.index("e" if name == "c" else "c")
            await _has_come_to(containers, 1 + BEFORE)
            assert containers.reports == []

    asyncio.run(story())


def test_who_stops_while_records_are_sealed_hears_no_more_of_how_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        faults: list[str] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: faults.append(context["message"])
        )
        has_begun, is_closed = asyncio.Event(), asyncio.Event()

        async def run(_service: RaftService, _steps: object) -> None:
            has_begun.set()
            await is_closed.wait()
            raise OSError(errno.EBADF, "Bad file descriptor")

        monkeypatch.setattr(RaftService, "run", run)
        async with trio(tmp_path) as containers:
            await _leave_behind(containers)
            await has_begun.wait()
            await containers.stop("c")
            is_closed.set()
            await asyncio.sleep(0.01)
            gc.collect()
            assert faults == []

    asyncio.run(asyncio.wait_for(story(), 10))


def test_what_was_given_up_before_a_snapshot_leaves_the_disk_with_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path) as containers:
            for name in "bc":
                await containers.open(name)
            engine = await containers.open("a")
            for _ in range(BEFORE):
                await engine.append(Batch.of([b"x" * 100]))
            await _has_come_to(containers, BEFORE)
            await containers.stop("c")
            await engine.trim(BEFORE // 2)
            for _ in range(MEANWHILE):
                await engine.append(Batch.of([b"y" * 100]))
            containers.start("c")
            await containers.open("c")
            await _has_come_to(containers, BEFORE + MEANWHILE, BEFORE // 2)
            replica = containers.nodes["c"].service.streams["orders"].member
            assert replica is not None
            assert replica.group.compacted_index > BEFORE
            first = replica.replica.segments.first_offset
            assert first is not None
            assert BEFORE // 4 < first <= BEFORE // 2

    asyncio.run(story())
