"""Streams that fail when it is their turn: each one's trouble, and nobody else's."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from replicas import take, trio

from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import ReleasingEngine
from cogwork.plugin.engine.errors import Unavailable, Unknown
from cogwork.raft.group import Group
from cogwork.replication.files import ReplicaFiles
from cogwork.replication.member import Member

if TYPE_CHECKING:
    from pathlib import Path


def watch_faults() -> list[str]:
    """Gather what the event loop is told of."""
    faults: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: faults.append(f"{context['message']}: {context['exception']}")
    )
    return faults


@pytest.mark.parametrize("what", ["next_call", "answered", "tick"])
def test_an_outbox_that_fails_is_emptied_and_told_of_and_the_others_go_on(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        faults = watch_faults()
        async with trio(tmp_path) as made:
            failing, other = await made.open("a"), await made.open("a", "others", 18)
            for name in "bc":
                await made.open(name)
                await made.open(name, "others", 18)
            await failing.append(Batch.of([b"1"]))
            await other.append(Batch.of([b"1"]))
            outbox = made.nodes["a"].service.streams["orders"].outbox

            def fail(*_: object) -> None:
                raise RuntimeError("it cannot")

            monkeypatch.setattr(outbox, what, fail)
            if what == "tick":  # which is for those that wait
                made.passes = lambda _from, _to: False
            lost = failing.append(Batch.of([b"2"]))
            sent = other.append(Batch.of([b"2"]))
            with pytest.raises((Unavailable, Unknown), match=r"fault in container a.*it cannot"):
                await asyncio.wait_for(lost, 5)
            made.passes = lambda _from, _to: True
            await asyncio.wait_for(sent, 10)
            text = "stream orders: pending appends fail because of an internal error"
            assert f"{text}: it cannot" in faults
            assert f"{text}: RuntimeError('it cannot')" in made.reports
            monkeypatch.undo()
            await asyncio.wait_for(failing.append(Batch.of([b"3"])), 10)
            assert (await take(failing, (await failing.bounds()).next))[-1] == b"3"

    asyncio.run(asyncio.wait_for(story(), 30))


def test_a_replica_that_fails_at_what_waits_stops_and_the_others_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        faults = watch_faults()
        async with trio(tmp_path, "abcd") as made:
            engines = {}
            for name in "abcd":
                engines[name] = await made.open(name), await made.open(name, "others", 18)
            for engine in engines["a"]:
                await engine.append(Batch.of([b"1"]))
            done = Member.wake_readers

            def fail(member: Member, now_s: float | None = None) -> None:
                if member.name == "orders" and now_s is not None:
                    raise RuntimeError("it cannot")
                done(member, now_s)

            monkeypatch.setattr(Member, "wake_readers", fail)
            readings = [
                asyncio.ensure_future(engine.read_or_wait(1, 1 << 20, 0.3))
                for engine in engines["d"]
            ]
            assert await asyncio.wait_for(readings[1], 5) == []
            assert any("stops until the container restarts: it cannot" in f for f in faults)
            readings[0].cancel()

    asyncio.run(asyncio.wait_for(story(), 30))


def test_an_outbox_that_fails_at_a_loss_keeps_the_news_from_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        faults = watch_faults()
        async with trio(tmp_path, "abcd") as made:
            for name in "abcd":
                await made.open(name)
                await made.open(name, "others", 18)
            service = made.nodes["d"].service
            heard = list[str]()

            def fail(_container: str) -> None:
                raise RuntimeError("it cannot")

            monkeypatch.setattr(service.streams["orders"].outbox, "lost", fail)
            monkeypatch.setattr(service.streams["others"].outbox, "lost", heard.append)
            service.lost("b")
            assert heard == ["b"]
            text = "stream orders: pending appends fail because of an internal error"
            assert faults == [f"{text}: it cannot"]

    asyncio.run(asyncio.wait_for(story(), 30))


def test_a_replica_that_fails_to_hand_over_stops_and_the_others_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        faults = watch_faults()
        async with trio(tmp_path) as made:
            for name in "abc":
                await made.open(name)
                await made.open(name, "others", 18)
            service = made.nodes["a"].service
            asked = list[Group]()

            def transfer(group: Group, _to: str | None, _now_s: float) -> None:
                asked.append(group)
                if len(asked) == 1:
                    raise RuntimeError("it cannot")

            monkeypatch.setattr(Group, "transfer", transfer)
            monkeypatch.setattr(Group, "leadership", SimpleNamespace(transfer=None))
            service.step_back()
            monkeypatch.undo()
            assert len(asked) == 2
            assert service.streams["orders"].member is None
            assert service.streams["others"].member is not None
            text = "stream orders: the replica here stops until the container restarts"
            assert faults == [f"{text}: it cannot"]

    asyncio.run(asyncio.wait_for(story(), 30))


def test_a_stream_that_cannot_be_closed_keeps_no_other_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        faults = watch_faults()
        async with trio(tmp_path) as made:
            for name in "abc":
                await made.open(name)
            engine = await made.open("a", "others", 18)
            made.passes = lambda _from, _to: False
            waiting = engine.append(Batch.of([b"1"]))
            done, failed = ReplicaFiles.close, list[ReplicaFiles]()

            def close(files: ReplicaFiles) -> None:
                done(files)
                if not failed:
                    failed.append(files)
                    raise RuntimeError("it cannot")

            monkeypatch.setattr(ReplicaFiles, "close", close)
            await made.stop("a")
            with pytest.raises((Unavailable, Unknown), match="the container is stopping"):
                await asyncio.wait_for(waiting, 5)
            text = "stream orders: cannot close the replica here"
            assert faults == [f"{text}: it cannot"]
            assert f"{text}: RuntimeError('it cannot')" in made.reports

    asyncio.run(asyncio.wait_for(story(), 30))


def test_what_waits_for_a_leader_is_given_up_and_what_one_has_is_not(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path) as made:
            engines = [await made.open(name) for name in "abc"]
            await engines[0].append(Batch.of([b"1"]))
            leader = next(name for name in "abc" if made.nodes[name].service.leads("orders"))
            engine = engines["abc".index(leader)]
            assert isinstance(engine, ReleasingEngine)
            made.passes = lambda _from, _to: False
            taken = engine.append(Batch.of([b"2"]))
            await asyncio.sleep(0.05)
            waiting = engine.append(Batch.of([b"3"]))
            engine.release_unsent("it stops")
            with pytest.raises(Unavailable, match="it stops"):
                await asyncio.wait_for(waiting, 1)
            made.passes = lambda _from, _to: True
            assert (await asyncio.wait_for(taken, 10)).first_offset == 1
            assert (await engine.append(Batch.of([b"4"]))).first_offset == 2
            assert await take(engine, 3) == [b"1", b"2", b"4"]

    asyncio.run(asyncio.wait_for(story(), 30))
