"""A replica whose files are damaged, or that fails: it is this one's trouble, and nobody else's."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from replicas import take, trio

from cogwork.log.errors import FileMissing
from cogwork.log.segment import Segment
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import FromTime
from cogwork.plugin.engine.retention import Retention
from cogwork.plugin.engine.sequencer import Sequencer
from cogwork.raft.group import Group
from cogwork.replication import calls, member, scheduler
from cogwork.replication.member import Member
from cogwork.replication.replica import Replica

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from replicas import Trio

    from cogwork.replication.calls import Answer
    from cogwork.replication.engine import RaftEngine

COUNT = 60
RECORDS = [b"%04d" % number * 50 for number in range(COUNT)]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "SEAL_ENTRIES", 10)
    monkeypatch.setattr(member, "SEAL_LATER", 0.0)
    monkeypatch.setattr(scheduler, "TRIM_S", 0.1)


def member_of(containers: Trio, name: str) -> Member:
    found = containers.nodes[name].service.streams["orders"].member
    assert found is not None
    return found


@asynccontextmanager
async def sealed(path: Path) -> AsyncIterator[tuple[Trio, dict[str, RaftEngine], str]]:
    """Run three containers, each with segments; tell who leads."""
    async with trio(path) as containers:
        engines = {name: await containers.open(name) for name in "abc"}
        for record in RECORDS:
            await engines["a"].append(Batch.of([record]))
        async with asyncio.timeout(30):
            while not all(member_of(containers, name).files.segments.segments for name in "abc"):
                await asyncio.sleep(0.01)
            while (leader := containers.nodes["a"].service.leader_of("orders")) is None:
                await asyncio.sleep(0.01)
        yield containers, engines, leader


def damage(containers: Trio, name: str) -> None:
    """Have no block and no index of a replica's segments be what was written."""
    for segment in member_of(containers, name).files.segments.segments:
        path = containers.path / name / "streams" / "17" / segment.name
        data = bytearray(path.read_bytes())
        data[100 : -len(segment.footer.encode())] = bytes(
            len(data) - 100 - len(segment.footer.encode())
        )
        path.write_bytes(data)
        segment.forget_index()


def gathered_faults() -> list[object]:
    """Gather what the running loop is told has failed."""
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: faults.append(context["exception"])
    )
    return faults


def ask(
    containers: Trio, name: str, make: Callable[[int, calls.StreamKey], calls.Call]
) -> list[Answer]:
    """Have another container ask one; return where its answers go."""
    answers: list[Answer] = []
    service = containers.nodes[name].service
    service.request_handler.carry_out(make(7, service.streams["orders"].key), answers.append)
    return answers


def test_others_answer_what_a_damaged_replica_cannot(tmp_path: Path) -> None:
    async def story() -> None:
        async with sealed(tmp_path) as (containers, engines, leader):
            damage(containers, leader)
            engine = engines[leader]
            assert [*(await engine.read(0))[0].batch.records()] == RECORDS[:1]
            assert await take(engine, COUNT) == RECORDS
            assert await engine.offset_at(0) == 0
            subscription = engine.subscribe(FromTime(0))
            first = await anext(subscription)
            assert first.offset == 0  # type: ignore[union-attr]  # a chunk comes first
            await subscription.aclose()
            told = [text for text in containers.reports if "damaged" in text]
            assert len(told) == len(set(told)), "each file's damage is told once"
            assert told
            assert all(text.startswith("stream orders: ") for text in told)

    asyncio.run(story())


async def sealed_in_full(containers: Trio, name: str) -> None:
    """Wait until a replica's state is as of its last segment, and no other one is being made."""
    found = member_of(containers, name)
    async with asyncio.timeout(30):
        while (
            found.replica.is_sealing
            or (state := found.files.state) is None
            or Sequencer.from_bytes(state.content).next_offset != found.replica.sealed_offset
        ):
            await asyncio.sleep(0.01)


def lose(containers: Trio, name: str, which: int) -> str:
    """Remove one of a replica's segments behind its back; return its path."""
    segment = member_of(containers, name).files.segments.segments[which]
    path = containers.path / name / "streams" / "17" / segment.name
    path.unlink()
    return str(path)


def test_a_first_segment_that_is_lost_is_not_taken_for_one_that_was_given_up(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with sealed(tmp_path) as (containers, _, leader):
            lose(containers, leader, 0)
            await containers.stop(leader)
            containers.start(leader)
            engine = await containers.open(leader)
            await engine.bounds()
            assert await take(engine, COUNT) == RECORDS
            assert await engine.offset_at(0) == 0
            assert [each for each in containers.reports if "the segment with offset 0" in each]

    asyncio.run(story())


def test_a_replica_whose_last_segment_is_lost_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with sealed(tmp_path) as (containers, _, _):
            await sealed_in_full(containers, "c")
            path = lose(containers, "c", -1)
            await containers.stop("c")
            containers.start("c")
            with pytest.raises(FileMissing, match=re.escape(path)):
                await containers.open("c")

    asyncio.run(story())


def test_whoever_asks_a_damaged_replica_is_refused_and_not_told_of_its_files(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with sealed(tmp_path) as (containers, _, leader):
            damage(containers, leader)
            asked = [
                ask(containers, leader, lambda number, key: calls.Read(number, key, 0, 99, 0)),
                ask(containers, leader, lambda number, key: calls.FindTime(number, key, 0)),
            ]
            async with asyncio.timeout(30):
                while not all(asked):
                    await asyncio.sleep(0.01)
            for answers in asked:
                assert isinstance(answers[0], calls.Refused)
                assert answers[0].failure.kind == "Unavailable"
                assert str(tmp_path) not in answers[0].failure.text

    asyncio.run(story())


def test_a_damaged_replica_that_is_moved_away_and_back_is_sound(tmp_path: Path) -> None:
    async def story() -> None:
        async with sealed(tmp_path) as (containers, _, leader):
            damage(containers, leader)
            async with asyncio.timeout(30):
                containers.move("abc".replace(leader, ""))
                await containers.settled()
                containers.move("abc")
                await containers.settled()
            chunks = member_of(containers, leader).chunks(0, 1 << 20)
            assert [*chunks[0].batch.records()] == RECORDS[:1]

    asyncio.run(story())


def test_a_leader_with_damaged_segments_goes_on(tmp_path: Path) -> None:
    async def story() -> None:
        async with sealed(tmp_path) as (containers, engines, leader):
            damage(containers, leader)
            leading = member_of(containers, leader)
            leading.retention = Retention(age_s=3600)  # what it is to give up, it has to look up
            term = leading.group.term
            async with asyncio.timeout(30):
                while not any("damaged" in text for text in containers.reports):
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.3)  # it has looked, and may not step down for what it has found
            await engines["a"].append(Batch.of([b"more"]))
            assert leading.group.term == term
            assert leading.group.leadership is not None
            leading.retention = Retention(records=1)
            async with asyncio.timeout(30):
                while leading.files.segments.segments:
                    await asyncio.sleep(0.01)
            found = await engines[leader].read(COUNT)
            assert [*found[0].batch.records()] == [b"more"]

    asyncio.run(story())


def test_a_segment_that_cannot_be_removed_goes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with sealed(tmp_path) as (containers, engines, leader):
            store = member_of(containers, leader).files.segments
            remove = store._directory.remove
            refused: list[str] = []

            def refuse(name: str) -> None:
                refused.append(name)
                raise PermissionError(1, "Operation not permitted", name)

            monkeypatch.setattr(store._directory, "remove", refuse)
            names = {segment.name for segment in store.segments}
            await engines["a"].trim(COUNT)
            async with asyncio.timeout(30):
                while len(refused) <= len(names):
                    await asyncio.sleep(0.01)
            told = [text for text in containers.reports if "cannot remove a segment" in text]
            assert len(told) == 1, "it is tried often, and told once"
            assert {segment.name for segment in store.segments} >= names
            await engines["a"].append(Batch.of([b"more"]))
            monkeypatch.setattr(store._directory, "remove", remove)
            async with asyncio.timeout(30):
                while store.segments:
                    await asyncio.sleep(0.01)
            assert [*(await engines[leader].read(COUNT))[0].batch.records()] == [b"more"]

    asyncio.run(story())


def test_a_replica_that_fails_stops_and_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        faults = gathered_faults()
        async with sealed(tmp_path) as (containers, engines, leader):
            failing = member_of(containers, leader)
            apply = Replica.apply

            def fail(replica: Replica, index: int, payload: bytes) -> object:
                if replica is failing.replica:
                    raise RuntimeError("it cannot")
                return apply(replica, index, payload)

            monkeypatch.setattr(Replica, "apply", fail)
            for name in "abc":
                await engines[name].append(Batch.of([b"from " + name.encode()]))
            assert containers.nodes[leader].service.streams["orders"].member is None
            assert [str(fault) for fault in faults] == ["it cannot"]
            assert sum("stops until the container" in text for text in containers.reports) == 1
            expected = [*RECORDS, b"from a", b"from b", b"from c"]
            assert await take(engines[leader], len(expected)) == expected
            monkeypatch.undo()
            await containers.stop(leader)
            containers.start(leader)
            engine = await containers.open(leader)
            assert await take(engine, len(expected)) == expected
            assert member_of(containers, leader).replica.state.next_offset == len(expected)

    asyncio.run(story())


def test_a_group_that_fails_takes_nothing_of_others_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        faults = gathered_faults()
        async with trio(tmp_path) as containers:
            orders = {name: await containers.open(name) for name in "abc"}
            others = {name: await containers.open(name, "others", 18) for name in "abc"}
            await asyncio.gather(*(each["a"].append(Batch.of([b"1"])) for each in (orders, others)))
            leader = containers.nodes["a"].service.leader_of("orders")
            assert leader is not None
            failing = member_of(containers, leader).group
            ready = Group.ready

            def fail(group: Group) -> object:
                if group is failing:
                    raise RuntimeError("it cannot")
                return ready(group)

            monkeypatch.setattr(Group, "ready", fail)
            async with asyncio.timeout(30):
                await asyncio.gather(
                    *(each[leader].append(Batch.of([b"2"])) for each in (orders, others))
                )
            assert [str(fault) for fault in faults] == ["it cannot"]
            for each in (orders, others):
                assert await take(each[leader], 2) == [b"1", b"2"]

    asyncio.run(story())


def test_a_replica_that_fails_to_look_for_what_is_old_stops_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        faults = gathered_faults()
        async with trio(tmp_path) as containers:
            engines = {name: await containers.open(name) for name in "abc"}
            await containers.open("a", "others", 18)
            await engines["a"].append(Batch.of([b"1"]))
            failing = member_of(containers, "a")
            looked = set[str]()

            def fail(member: Member) -> None:
                looked.add(member.name)
                if member is failing:
                    raise RuntimeError("it cannot")

            monkeypatch.setattr(Member, "look_to_trim", fail)
            service = containers.nodes["a"].service
            async with asyncio.timeout(30):
                while service.streams["orders"].member is not None or "others" not in looked:
                    await asyncio.sleep(0.01)
            assert [str(fault) for fault in faults] == ["it cannot"]
            assert sum("stops until the container" in text for text in containers.reports) == 1
            await engines["b"].append(Batch.of([b"2"]))
            assert await take(engines["b"], 2) == [b"1", b"2"]

    asyncio.run(story())


def test_a_replica_that_has_stopped_is_opened_again_only_by_a_new_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        async with sealed(tmp_path) as (containers, engines, leader):
            failing = member_of(containers, leader)

            def fail(*_: object) -> None:
                raise RuntimeError("it cannot")

            monkeypatch.setattr(failing.replica, "apply", fail)
            await engines["a"].append(Batch.of([b"more"]))
            node = containers.nodes[leader].service
            node.place("orders", 17, containers.placements["orders", 17])
            await asyncio.sleep(0.2)
            assert node.streams["orders"].member is None
            assert any("start the container anew" in text for text in containers.reports)
            directory = tmp_path / leader / "streams" / "17"
            assert directory.exists()
            node.remove("orders", 17)
            assert not directory.exists(), "a stream that is deleted leaves nothing here either"

    asyncio.run(story())


def test_an_index_that_cannot_be_read_is_no_fault_of_who_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with sealed(tmp_path) as (_, engines, leader):
            loaded = Segment.load_index

            def refuse(segment: Segment) -> object:
                if f"/{leader}/streams/" in segment._file:
                    raise OSError(24, "Too many open files")
                return loaded(segment)

            monkeypatch.setattr(Segment, "load_index", refuse)
            assert await take(engines[leader], COUNT) == RECORDS

    asyncio.run(story())
