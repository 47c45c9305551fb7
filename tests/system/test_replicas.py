"""Streams on three replicas: what their users see while replicas come and go."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from replicas import take, trio

from cogwork.log.errors import DiskFull
from cogwork.log.wal import Wal
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.errors import Truncated, Unavailable

if TYPE_CHECKING:
    from pathlib import Path

    from replicas import Trio

    from cogwork.replication.engine import RaftEngine


async def leader_of(engine: RaftEngine) -> str:
    while (leader := (await engine.members()).leader) is None:
        await asyncio.sleep(0.01)
    return leader


def test_what_one_appends_all_read_in_order(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path) as made:
            a, b, c = [await made.open(name) for name in "abc"]
            sent = [b"%d" % number for number in range(300)]
            answers = [a.append(Batch.of([record])) for record in sent]
            places = [(await answer).first_offset for answer in answers]
            assert places == list(range(300))
            for engine in (a, b, c):
                assert await take(engine, 300) == sent

    asyncio.run(asyncio.wait_for(story(), 30))


def test_the_leader_stops_and_nothing_is_lost_or_twice(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path, "abcd") as made:
            engines = {name: await made.open(name) for name in "abcd"}
            far = engines["d"]
            sent = [b"%d" % number for number in range(600)]
            pending = []
            for number, record in enumerate(sent):
                pending.append(far.append(Batch.of([record])))
                if number in (200, 400):
                    leader = await leader_of(far)
                    await made.stop(leader)
                    if number == 200:
                        await asyncio.sleep(0.01)
                        made.start(leader)
                        engines[leader] = await made.open(leader)
                await asyncio.sleep(0)
            for answer in pending:
                await answer
            alive = [engines[name] for name in made.nodes]
            for engine in alive:
                assert await take(engine, 600) == sent

    asyncio.run(asyncio.wait_for(story(), 60))


@pytest.mark.parametrize("is_pressed", [False, True])
def test_who_was_away_for_long_gets_a_snapshot_and_the_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_pressed: bool
) -> None:
    """Also where the write-ahead log asks with every flush that old files be let go."""
    if is_pressed:
        flush = Wal.flush

        def flush_and_press(wal: Wal) -> None:
            flush(wal)
            wal.on_pressure(17)

        monkeypatch.setattr(Wal, "flush", flush_and_press)
    monkeypatch.setattr("cogwork.replication.member.SEAL_BYTES", 20_000)
    monkeypatch.setattr("cogwork.replication.install.SEAL_BYTES", 50_000)
    monkeypatch.setattr("cogwork.replication.install.READ_BYTES", 10_000)
    sent = [b"%06d" % number * 20 for number in range(3_000)]

    async def story() -> None:
        async with trio(tmp_path) as made:
            a, _, c = [await made.open(name) for name in "abc"]
            for start in range(0, 500, 50):
                await a.append(Batch.of(sent[start : start + 50], b"p", start))
            await take(c, 500)
            await made.stop("c")
            for start in range(500, 2_500, 50):
                await a.append(Batch.of(sent[start : start + 50], b"p", start))
            leader = made.nodes[await leader_of(a)].service.streams["orders"].member
            assert leader is not None
            while leader.group.compacted_index <= 20:
                await asyncio.sleep(0.01)
            made.start("c")
            c = await made.open("c")
            for start in range(2_500, 3_000, 50):
                await a.append(Batch.of(sent[start : start + 50], b"p", start))
            assert await take(c, 3_000) == sent
            member = made.nodes["c"].service.streams["orders"].member
            assert member is not None
            assert member.journal.snapshot.index > 20
            while member.replica.state.next_offset < 3_000:
                await asyncio.sleep(0.01)
            assert member.replica.read(0, 1 << 30), "from what is here"
            await made.stop("a")
            await made.stop("b")
            for name in "ab":
                made.start(name)
                await made.open(name)
            assert await take(c, 3_000) == sent
            again = await c.append(Batch.of(sent[2_950:], b"p", 2_950))
            assert again.is_repeated

    asyncio.run(asyncio.wait_for(story(), 60))


def test_after_a_restart_of_all_everything_is_there(tmp_path: Path) -> None:
    sent = [b"%d" % number * 10 for number in range(1_000)]

    async def first() -> None:
        async with trio(tmp_path) as made:
            a, _, _ = [await made.open(name) for name in "abc"]
            for start in range(0, 1_000, 50):
                await a.append(Batch.of(sent[start : start + 50], b"p", start))

    async def second() -> None:
        async with trio(tmp_path) as made:
            engines = [await made.open(name) for name in "abc"]
            for engine in engines:
                assert await take(engine, 1_000) == sent
            again = await engines[0].append(Batch.of(sent[950:], b"p", 950))
            assert again.is_repeated
            assert again.first_offset == 950

    asyncio.run(asyncio.wait_for(first(), 30))
    asyncio.run(asyncio.wait_for(second(), 30))


def test_the_leader_has_what_is_too_much_given_up_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cogwork.replication.member.SEAL_BYTES", 20_000)
    monkeypatch.setattr("cogwork.replication.scheduler.TRIM_S", 0.05)

    async def story() -> None:
        async with trio(tmp_path) as made:
            options = {"group": 17, "replicas": ["a", "b", "c"], "retention_bytes": 60_000}
            engines = [await made.nodes[name].service.open("orders", options) for name in "abc"]
            for _ in range(200):
                await engines[0].append(Batch.of([b"x" * 1_000]))
            for engine in engines:
                while (await engine.bounds()).first <= 50:
                    await asyncio.sleep(0.01)
            for node in made.nodes.values():
                member = node.service.streams["orders"].member
                assert member is not None
                while (member.replica.segments.first_offset or 0) < 50:
                    await asyncio.sleep(0.01)
                assert member.replica.segments.size_bytes < 200_000
            first = (await engines[1].bounds()).first
            with pytest.raises(Truncated):
                await engines[1].read(first - 1)

    asyncio.run(asyncio.wait_for(story(), 60))


async def leader_of_one(made: Trio, engine: RaftEngine) -> str:
    """Append a record; return who leads, and know that it does."""
    await engine.append(Batch.of([b"1"]))
    leader = await leader_of(engine)
    while not made.nodes[leader].service.leads_any:
        await asyncio.sleep(0.01)
    return leader


def test_who_stops_in_order_has_others_lead_first(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path) as made:
            a, b, c = [await made.open(name) for name in "abc"]
            leader = await leader_of_one(made, a)
            service = made.nodes[leader].service
            service.step_back()
            while service.leads_any:
                await asyncio.sleep(0.01)
            others = [
                engine for name, engine in zip("abc", (a, b, c), strict=True) if name != leader
            ]
            while await leader_of(others[0]) == leader:
                await asyncio.sleep(0.01)
            assert (await others[1].append(Batch.of([b"2"]))).first_offset == 1

    asyncio.run(asyncio.wait_for(story(), 30))


def test_of_two_that_stop_at_once_neither_has_the_other_lead(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path) as made:
            a, _, _ = [await made.open(name) for name in "abc"]
            leader = await leader_of_one(made, a)
            service = made.nodes[leader].service
            # Both others have everything: the first one of them is asked first.
            first, last = (name for name in "abc" if name != leader)
            await made.nodes[first].service.hand_over(0)
            await service.hand_over(20)
            assert not service.leads_any
            while not made.nodes[last].service.leads_any:
                assert not made.nodes[first].service.leads_any
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(story(), 30))


def test_whose_disk_takes_nothing_hands_over_though_the_first_attempt_comes_to_nothing(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with trio(tmp_path) as made:
            engines = {name: await made.open(name) for name in "abc"}
            await engines["a"].append(Batch.of([b"1"]))
            leader = await leader_of(engines["a"])
            node = made.nodes[leader]
            while not node.service.leads_any:
                await asyncio.sleep(0.01)
            deaf, other = (name for name in "abc" if name != leader)
            made.passes = lambda one, two: {one, two} != {leader, deaf}
            with patch.object(Wal, "is_full", property(lambda wal: wal is node.wal)):
                node.service.step_back()
                while node.service.leads_any:
                    await asyncio.sleep(0.01)
                assert (await engines[other].append(Batch.of([b"2"]))).first_offset == 1

    asyncio.run(asyncio.wait_for(story(), 15))


def test_where_no_disk_takes_anything_what_there_is_can_be_read(tmp_path: Path) -> None:
    def refuse(_wal: Wal, *_record: object) -> int:
        raise DiskFull(str(tmp_path))

    async def story() -> None:
        async with trio(tmp_path) as made:
            engines = [await made.open(name) for name in "abc"]
            await engines[0].append(Batch.of([b"1"]))
            await leader_of(engines[0])
            with (
                patch.object(Wal, "is_full", property(lambda _wal: True)),
                patch.object(Wal, "append", refuse),
            ):
                for node in made.nodes.values():
                    node.service.step_back()
                await asyncio.sleep(3)
                assert [(await engine.bounds()).next for engine in engines] == [1, 1, 1]

    asyncio.run(asyncio.wait_for(story(), 30))


def test_a_stream_that_is_deleted_while_it_is_opened_leaves_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path, "a") as nodes:
            service = nodes.nodes["a"].service
            opening = asyncio.ensure_future(nodes.open("a", group=17))
            await asyncio.sleep(0)
            service.remove("orders", 17)
            with pytest.raises(Unavailable, match="deleted"):
                await opening
            assert not (tmp_path / "a" / "streams" / "17").exists()
            await nodes.open("a", group=18)
            service.remove("orders", 17)
            assert "orders" in service.streams
            assert (tmp_path / "a" / "streams" / "18").exists()

    asyncio.run(asyncio.wait_for(story(), 30))


def test_a_container_that_stops_while_it_opens_a_stream_loses_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path, "abc") as nodes:
            engines = [await nodes.open(name) for name in "abc"]
            await engines[0].append(Batch.of([b"1"]))
            await nodes.stop("b")
            service = nodes.start("b").service
            opening = asyncio.ensure_future(nodes.open("b"))
            await asyncio.sleep(0)
            await service.close()
            await asyncio.gather(opening, return_exceptions=True)
            assert (tmp_path / "b" / "streams" / "17" / "declaration.json").exists()

    asyncio.run(asyncio.wait_for(story(), 30))
