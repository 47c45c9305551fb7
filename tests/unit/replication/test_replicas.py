"""Opening replicas and giving them up, where that does not go well."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from replicas import take, trio

from cogwork.log.directory import Directory
from cogwork.log.errors import FileMissing
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import Bounds, Snapshot
from cogwork.plugin.engine.errors import InvalidSnapshot, Unavailable, Unknown
from cogwork.plugin.engine.placement import Placement
from cogwork.replication import member
from cogwork.replication import replicas as module
from cogwork.replication.engine import SNAPSHOT_BYTES_MAX
from cogwork.replication.replicas import Replicas

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cogwork.replication.stream import Stream


def make_replicas(
    directory_of: Callable[[int], Directory] | None = None,
) -> tuple[Replicas, list[str]]:
    reports: list[str] = []
    service: Any = SimpleNamespace(own="a", report=reports.append, keep_moving=lambda _stream: None)
    unasked: Any = object()  # no group is opened, nor written
    made = Replicas(
        service, unasked, wal=unasked, queue=unasked, directory_of=directory_of or unasked
    )
    return made, reports


class Orders:
    """A stream, as far as it is asked."""

    name, number, why_over, is_deleted = "orders", 17, "", False

    def __init__(self) -> None:
        self.placement = Placement([*"abc"], founders=[*"abc"])
        self.housing = asyncio.Lock()
        self.member: object = None


def make_stream() -> Stream:
    return cast("Stream", Orders())


@pytest.mark.parametrize(
    ("fault", "why"),
    [(OSError(28, "no space"), "no space"), (KeyError("term"), "KeyError('term')")],
)
def test_one_task_tries_to_open_a_replica_however_often_it_is_told(
    fault: Exception, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        made, reports = make_replicas()
        stream = make_stream()
        attempts: list[bool] = []
        unasked: Any = object()
        before = asyncio.all_tasks()

        async def opening(_replicas: Replicas, stream: Stream) -> None:
            attempts.append(True)
            if len(attempts) < 4:
                raise fault
            stream.member = unasked

        monkeypatch.setattr(Replicas, "_open", opening)
        for number in range(1, 5):
            made.house_soon(stream)
            made.house_soon(stream)
            assert len(asyncio.all_tasks() - before) == 1
            while len(attempts) < number:
                await asyncio.sleep(0)
        while asyncio.all_tasks() != before:
            await asyncio.sleep(0)
        (text,) = reports
        assert text.startswith("stream orders: cannot open the replica here: ")
        assert text.endswith(why)

    asyncio.run(asyncio.wait_for(story(), 2))


def test_what_is_told_while_a_replica_is_opened_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        made, _ = make_replicas()
        stream = make_stream()
        given_up: list[object] = []
        before = asyncio.all_tasks()

        async def opening(_replicas: Replicas, stream: Stream) -> None:
            stream.placement = Placement([*"bcd"], move=1)
            made.house_soon(stream)

        monkeypatch.setattr(Replicas, "_open", opening)
        monkeypatch.setattr(Replicas, "give_up", lambda _replicas, each: given_up.append(each))
        made.house_soon(stream)
        while asyncio.all_tasks() != before:
            await asyncio.sleep(0)
        assert given_up == [stream]

    asyncio.run(asyncio.wait_for(story(), 2))


def test_a_replica_whose_opening_is_cancelled_lets_its_directory_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        directory = Directory(tmp_path / "17")
        made, _ = make_replicas(lambda _group: directory)
        is_declaring = asyncio.Event()

        async def declare(*_arguments: object, **_options: object) -> None:
            is_declaring.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(module, "declare", declare)
        task = asyncio.ensure_future(made.house(make_stream()))
        await is_declaring.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert directory.fd == -1

    asyncio.run(asyncio.wait_for(story(), 2))


def test_a_replica_that_is_refused_is_refused_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not forget at the second try whom it voted for and what it has."""
    monkeypatch.setattr(member, "SEAL_ENTRIES", 5)

    async def story() -> None:
        async with trio(tmp_path) as made:
            folder = await made.stopped_with_state("c")
            (folder / "state").unlink()
            made.start("c")
            for _attempt in range(2):
                with pytest.raises(FileMissing, match="state is missing"):
                    await made.open("c")

    asyncio.run(asyncio.wait_for(story(), 30))


def test_what_is_left_of_a_group_that_is_open_stays(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path, "a") as made:
            made.placements[("orders", 17)] = Placement(["a"], founders=["a"])
            engine = await made.open("a")
            made.nodes["a"].service.remove("another", 17)
            await engine.append(Batch.of([b"x"]))
            assert (tmp_path / "a" / "streams" / "17").exists()

    asyncio.run(asyncio.wait_for(story(), 20))


def test_it_is_told_when_a_replica_comes_has_another_leader_and_goes(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path) as made:
            service = made.nodes["a"].service
            told: list[str] = []
            service.on_replica_changed = told.append
            await made.open("a")
            assert told == ["orders"]
            assert service.streams["orders"].member is not None
            engine = await made.open("b")
            await engine.append(Batch.of([b"1"]))
            while told == ["orders"]:
                await asyncio.sleep(0.01)
            assert service.leader_of("orders") is not None
            told.clear()
            await service.delete("orders")
            assert told == ["orders"]

    asyncio.run(asyncio.wait_for(story(), 30))


def test_a_snapshot_that_fits_no_entry_is_refused_as_too_large(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path) as made:
            engine = [await made.open(name) for name in "abc"][2]
            await engine.append(Batch.of([b"x"]))
            largest = Snapshot(1, bytes(SNAPSHOT_BYTES_MAX))
            await engine.save_snapshot(largest)
            assert await engine.load_snapshot() == largest
            with pytest.raises(InvalidSnapshot):
                await engine.save_snapshot(Snapshot(1, bytes(SNAPSHOT_BYTES_MAX + 1)))

    asyncio.run(asyncio.wait_for(story(), 60))


def test_who_has_not_heard_of_a_stream_that_was_made_again_does_nothing_to_it(
    tmp_path: Path,
) -> None:
    """The first epoch of both is the same: that alone would not tell the owner of the old one."""

    async def story() -> None:
        async with trio(tmp_path, "abcd") as made:
            *_, old = [await made.open(name) for name in "abcd"]
            old_epoch = await old.fence()
            for _ in range(5):
                await old.append(Batch.of([b"old"]), old_epoch)
            for name in "abc":
                made.nodes[name].service.remove("orders", 17)
            new, *_ = [await made.open(name, group=18) for name in "abc"]
            assert await new.fence() == old_epoch
            await new.append(Batch.of([b"new"]), old_epoch)
            late = [
                asyncio.ensure_future(old.append(Batch.of([b"late"]), old_epoch)),
                asyncio.ensure_future(old.trim(5)),
                asyncio.ensure_future(old.read_or_wait(0, 1, 0.0)),
            ]
            await asyncio.sleep(1.0)
            assert not any(each.done() for each in late)
            made.nodes["d"].service.remove("orders", 17)
            for each in late:
                with pytest.raises((Unavailable, Unknown)):  # it may just have asked once more
                    await each
            assert await new.bounds() == Bounds(0, 1, (await new.bounds()).size_bytes)
            assert await take(new, 1) == [b"new"]

    asyncio.run(asyncio.wait_for(story(), 30))
