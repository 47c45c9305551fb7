"""Groups that the write-ahead log asks do without its old file, a few at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest
from replicas import take, trio

from cogwork.log.position import number_of
from cogwork.log.wal import Wal
from cogwork.plugin.engine.batch import Batch
from cogwork.replication import compaction_scheduler
from cogwork.replication.compaction_scheduler import (
    PAUSE_S,
    RENEWED_TOGETHER,
    SEALED_TOGETHER,
    CompactionScheduler,
)
from cogwork.replication.member import Member

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from replicas import Trio

    from cogwork.replication.engine import RaftEngine

FILE_BYTES = 32 << 10


class Sealer:
    """Stands for a replica: notes what it did, and can do so or not."""

    def __init__(self, stage: Stage, group: int) -> None:
        self.stage = stage
        self.group = group

    def renew(self) -> bool:
        if self.group in self.stage.little:
            self.stage.renewed.append(self.group)
        return self.group in self.stage.little

    def seal(self) -> bool:
        if self.group in self.stage.unable:
            return False
        if self.group in self.stage.raising:
            raise RuntimeError(self.group)
        self.stage.begun.append(self.group)
        if self.group in self.stage.failing:
            self.stage.compaction_scheduler.ended(self.group)
        return True


LET_GO = RENEWED_TOGETHER + 2


class Disk:
    """Stands for the log: all but one still hold its oldest file."""

    end_lsn = 7
    durable_lsn = 0
    takes_nothing = False
    flushed = 0

    def holds_oldest(self, group: int) -> bool:
        return group != LET_GO

    def flush(self) -> None:
        self.flushed += 1


class Stage:
    def __init__(
        self,
        count: int,
        *,
        unable: frozenset[int] = frozenset(),
        failing: frozenset[int] = frozenset(),
        raising: frozenset[int] = frozenset(),
        little: frozenset[int] = frozenset(),
        wal: Wal | None = None,
    ) -> None:
        self.little = little
        self.renewed: list[int] = []
        self.unable = unable
        self.failing = failing
        self.raising = raising
        self.begun: list[int] = []
        members = {group: Sealer(self, group) for group in range(count)}
        self.stopped: list[tuple[int, str]] = []
        self.compaction_scheduler = CompactionScheduler(
            wal,
            cast("Mapping[int, Member]", members),
            stop=lambda group, error: self.stopped.append((group, str(error))),
            renew=lambda _group: None,
        )

    def ask(self, *groups: int) -> None:
        for group in groups:
            self.compaction_scheduler.ask(group)


def test_a_few_seal_at_a_time_in_the_order_in_which_they_were_asked() -> None:
    stage = Stage(10)
    stage.ask(*range(9, -1, -1))
    assert stage.begun == [9, 8][:SEALED_TOGETHER]
    for group in range(9, -1, -1):
        stage.compaction_scheduler.ended(group)
        assert len(stage.begun) <= 10 - group + SEALED_TOGETHER
    assert stage.begun == list(range(9, -1, -1))


def test_one_that_is_asked_again_before_its_turn_seals_once() -> None:
    stage = Stage(4)
    stage.ask(0, 1, 2, 2, 2, 3)
    for group in range(4):
        stage.compaction_scheduler.ended(group)
    assert stage.begun == [0, 1, 2, 3]


def test_who_cannot_seal_or_is_not_there_holds_up_nobody() -> None:
    stage = Stage(5, unable=frozenset({0, 1}))
    stage.ask(0, 77, 1, 2, 3, 4)
    assert stage.begun == [2, 3]
    stage.compaction_scheduler.ended(2)
    assert stage.begun == [2, 3, 4]


def test_any_number_may_fail_at_once() -> None:
    count = 5000  # deeper than calls may nest
    stage = Stage(count, failing=frozenset(range(2, count)))
    stage.ask(*range(count))
    assert stage.begun == [0, 1]
    stage.compaction_scheduler.ended(0)
    assert stage.begun == list(range(count))


def test_an_error_is_told_and_holds_up_nobody_afterwards() -> None:
    stage = Stage(8, raising=frozenset({0, 1, 4}))
    stage.ask(0, 1, 2, 3, 4, 5, 6)
    assert stage.begun == [2, 3]
    assert stage.stopped == [(0, "0"), (1, "1")]
    stage.compaction_scheduler.ended(2)
    assert stage.stopped[2:] == [(4, "4")]
    assert stage.begun == [2, 3, 5]
    stage.compaction_scheduler.ended(3)
    assert stage.begun == [2, 3, 5, 6]


def test_who_seals_without_being_asked_counts_for_nothing() -> None:
    stage = Stage(4)
    stage.ask(0, 1, 2)
    stage.compaction_scheduler.ended(3)
    assert stage.begun == [0, 1]


def test_who_has_little_seals_nothing_and_some_at_a_time_go_on() -> None:
    count = 3 * RENEWED_TOGETHER

    async def story() -> None:
        wal = Disk()
        stage = Stage(count, little=frozenset(range(1, count)), wal=cast("Wal", wal))
        for group in range(count):
            stage.ask(group)
        assert stage.begun == [0]
        assert stage.renewed == [*range(1, RENEWED_TOGETHER + 1)]
        stage.compaction_scheduler.ended(0)
        await asyncio.sleep(3 * PAUSE_S)
        assert len(stage.renewed) == RENEWED_TOGETHER, "it is not on the disk yet"
        wal.durable_lsn = wal.end_lsn
        while len(stage.renewed) < count - 2:
            await asyncio.sleep(0.001)
        assert stage.renewed == [each for each in range(1, count) if each != LET_GO]
        assert wal.flushed, "or else it waits for others"
        stage.ask(*range(1, count))
        renewed = [*stage.renewed]
        assert len(renewed) < 2 * (count - 2)
        stage.compaction_scheduler.close()
        await asyncio.sleep(2 * PAUSE_S)
        assert stage.renewed == renewed, "a closed one asks nobody"

    asyncio.run(asyncio.wait_for(story(), 20))


@pytest.mark.parametrize("payload", [b"a" * 1000, b"."])
def test_a_stream_of_little_is_kept_by_the_log_alone_while_others_go_on(
    payload: bytes, tmp_path: Path
) -> None:
    async def turn_over(containers: Trio, others: RaftEngine) -> None:
        """Append until no container's log has a file that it has now."""
        newest = {name: number_of(node.wal.end_lsn) for name, node in containers.nodes.items()}
        while any(
            node.wal.oldest_number <= newest[name] for name, node in containers.nodes.items()
        ):
            await others.append(Batch.of([bytes(2000)]))

    async def story() -> None:
        expected = [b"%d" % number + payload for number in range(6)]
        is_tiny = len(payload) == 1
        async with trio(tmp_path, file_bytes=FILE_BYTES) as containers:
            engines = {name: await containers.open(name) for name in "abc"}
            for name in "abc":
                others = await containers.open(name, "others", 18)
            await engines["a"].append(Batch.of(expected))
            sealed = [tmp_path / name / "streams" / "17" / "state" for name in "abc"]
            for _ in range(3):
                await turn_over(containers, others)
                assert [each.exists() for each in sealed] == [False] * 3 or not is_tiny
            assert all(each.exists() for each in sealed) != is_tiny, "it is not renewed for ever"
            for name in "abc":
                await containers.stop(name)
            for name in "abc":
                containers.start(name)
            engines = {name: await containers.open(name) for name in "abc"}
            for engine in engines.values():
                assert await take(engine, len(expected)) == expected

    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_replica_that_fails_when_another_one_has_sealed_stops_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction_scheduler, "SEALED_TOGETHER", 1)
    monkeypatch.setattr(Member, "renew", lambda _: False)
    seal = Member.seal

    def fail(member: Member) -> bool:
        if member.name == "others":
            raise RuntimeError("it cannot")
        return seal(member)

    async def story() -> None:
        faults = list[str]()
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: faults.append(str(context["exception"]))
        )
        async with trio(tmp_path) as made:
            engine = await made.open("a")
            for name in "abc":
                await made.open(name)
                await made.open(name, "others", 18)
            await engine.append(Batch.of([b"1"]))
            service = made.nodes["a"].service
            member = service.streams["orders"].member
            assert member is not None
            while not (member.replica.state.next_offset and made.nodes["a"].wal.holds_oldest(18)):
                await asyncio.sleep(0.01)
            monkeypatch.setattr(Member, "seal", fail)
            for group in (17, 18):
                service.compaction_scheduler.ask(group)
            assert member.replica.is_sealing
            async with asyncio.timeout(30):
                while service.streams["others"].member is not None or member.replica.is_sealing:
                    await asyncio.sleep(0.01)
            assert faults == ["it cannot"]
            assert member.replica.sealed_offset == 1

    asyncio.run(asyncio.wait_for(story(), 20))


def test_a_grown_tail_leaves_the_last_space_to_the_log_unless_that_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cogwork.replication.member.SEAL_BYTES", 1)
    is_low = True
    said = property(lambda _: is_low, lambda *_: None)  # so nothing is renewed either
    monkeypatch.setattr(Wal, "is_low", said, raising=False)

    async def story() -> None:
        nonlocal is_low
        async with trio(tmp_path) as made:
            engine = await made.open("a")
            for name in "bc":
                await made.open(name)
            service = made.nodes["a"].service
            member = service.streams["orders"].member
            assert member is not None
            replica = member.replica
            await engine.append(Batch.of([b"1"]))
            await until(lambda: replica.state.next_offset == 1)
            assert (replica.is_sealing, replica.sealed_offset) == (False, 0)
            service.compaction_scheduler.ask(member.number)
            await until(lambda: replica.sealed_offset == 1 and not replica.is_sealing)
            await engine.append(Batch.of([b"2"]))
            assert not replica.is_sealing
            is_low = False
            member.look_whether_to_seal()
            await until(lambda: replica.sealed_offset == 2)

    async def until(condition: Callable[[], bool]) -> None:
        while not condition():
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(story(), 20))
