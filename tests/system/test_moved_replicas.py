"""Streams whose replicas are moved: what their users see meanwhile, and what is left."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from replicas import take, trio

from cogwork.log.wal import Wal
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import Members
from cogwork.replication.calls import GetRoom, RoomIs, StreamKey
from cogwork.replication.files import ReplicaFiles
from cogwork.replication.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from replicas import Trio

    from cogwork.log.disk_queue import Operation
    from cogwork.replication.engine import RaftEngine
    from cogwork.replication.files import Declared
    from cogwork.replication.member import Member

SMALL = ("member.SEAL_BYTES", "install.SEAL_BYTES", "install.READ_BYTES")


def member_of(made: Trio, name: str) -> Member:
    member = made.nodes[name].service.streams["orders"].member
    assert member is not None
    return member


def leader_of(made: Trio) -> str:
    return next((name for name, node in made.nodes.items() if node.service.leads("orders")), "")


def has_files(made: Trio, name: str) -> bool:
    return (made.path / name / "streams" / "17").exists()


async def gone_but_at(made: Trio, names: str) -> None:
    """Wait until only these have files of the stream."""
    while {name for name in made.nodes if has_files(made, name)} != set(names):
        await asyncio.sleep(0.01)


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SMALL:
        monkeypatch.setattr(f"cogwork.replication.{name}", 20_000)


async def append(engine: RaftEngine, count: int) -> list[bytes]:
    """Append records in batches; return them."""
    sent = [b"%06d" % number * 20 for number in range(count)]
    for start in range(0, count, 50):
        await engine.append(Batch.of(sent[start : start + 50]))
    return sent


async def keep_appending(engine: RaftEngine, sent: list[bytes], is_over: asyncio.Event) -> None:
    while not is_over.is_set():
        record = b"%06d" % len(sent) * 50
        sent.append(record)
        await engine.append(Batch.of([record]))


@pytest.mark.parametrize("voters", ["abd", "dbc", "def", "abcde", "a", "cba"])
def test_others_hold_it_while_it_is_used(tmp_path: Path, voters: str) -> None:
    async def story() -> None:
        async with trio(tmp_path, "abcdef") as made:
            engines = {name: await made.open(name) for name in "abcdef"}
            sent: list[bytes] = []
            is_over = asyncio.Event()
            appending = asyncio.ensure_future(keep_appending(engines["f"], sent, is_over))
            reading = [asyncio.ensure_future(take(engines[name], 300)) for name in "abcdef"]
            await asyncio.sleep(0.3)
            made.move(voters)
            await made.settled()
            while len(sent) < 300:
                await asyncio.sleep(0.01)
            is_over.set()
            await appending
            for each in reading:
                assert (await each)[:300] == sent[:300]
            for engine in engines.values():
                assert await take(engine, len(sent)) == sent
                members = await engine.members()
                assert members.voters == tuple(voters)
                assert members.leader in (None, *voters)
            await gone_but_at(made, voters)

    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_learner_has_everything_and_counts_for_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path, "abcd") as made:
            engines = {name: await made.open(name) for name in "abcd"}
            made.move("abc", "d")
            await made.settled()
            members = await engines["a"].members()
            assert (members.voters, members.learners) == (("a", "b", "c"), ("d",))
            await engines["d"].append(Batch.of([b"1"]))
            while not member_of(made, "d").is_current:
                await asyncio.sleep(0.01)
            while member_of(made, "d").replica.state.next_offset < 1:
                await asyncio.sleep(0.01)
            made.move("ad", "c")
            await made.settled()
            assert await engines["b"].members() == Members(("a", "d"), ("c",), leader_of(made))
            await gone_but_at(made, "acd")

    asyncio.run(asyncio.wait_for(story(), 30))


@pytest.mark.usefixtures("small_segments")
def test_who_joins_gets_a_snapshot_and_the_records(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path, "abcd") as made:
            engines = {name: await made.open(name) for name in "abcd"}
            sent = await append(engines["d"], 2_000)
            while member_of(made, leader_of(made)).group.compacted_index <= 20:
                await asyncio.sleep(0.01)
            made.move("bcd")
            await made.settled()
            assert await take(engines["d"], 2_000) == sent
            assert member_of(made, "d").journal.snapshot.index > 20
            await made.stop("b")
            await made.stop("a")
            await engines["d"].append(Batch.of([b"more"]))
            assert await take(engines["c"], 2_001) == [*sent, b"more"]

    asyncio.run(asyncio.wait_for(story(), 60))


@pytest.mark.usefixtures("small_segments")
def test_what_a_crash_left_of_one_that_was_given_up_is_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path, "abcd") as made:
            engines = {name: await made.open(name) for name in "abcd"}
            sent = await append(engines["d"], 500)
            while member_of(made, "c").group.compacted_index < 4:
                await asyncio.sleep(0.01)
            await made.stop("c")
            folder = made.path / "c" / "streams" / "17"
            (folder / "declaration.json").rename(folder / "given-up")
            min(folder.iterdir()).unlink()
            assert (folder / "state").exists()
            for voters in ("abd", "abc"):
                made.move(voters)
                if voters == "abc":
                    made.start("c")
                    engines["c"] = await made.open("c")
                await made.settled()
            while not member_of(made, "c").is_current:
                await asyncio.sleep(0.01)
            assert await take(engines["c"], 500) == sent

    asyncio.run(asyncio.wait_for(story(), 30))


def test_the_log_is_void_before_another_replica_is_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with trio(tmp_path, "abcd") as made:
            for name in "abcd":
                await made.open(name)
            wal = made.nodes["d"].wal
            told: list[int] = []
            forget, declaring = Journal.forget, ReplicaFiles.declaring

            def forgetting(journal: Journal) -> None:
                forget(journal)
                told.append(wal.end_lsn)

            def looking(files: ReplicaFiles, declared: Declared) -> Generator[Operation]:
                told.append(wal.durable_lsn)
                return declaring(files, declared)

            monkeypatch.setattr(Journal, "forget", forgetting)
            monkeypatch.setattr(ReplicaFiles, "declaring", looking)
            made.move("abcd")
            await made.settled()
            voided, durable = told
            assert durable >= voided

    asyncio.run(asyncio.wait_for(story(), 30))


def test_a_container_without_room_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with trio(tmp_path) as made:
            service = made.nodes["a"].service

            async def asked(*voters: str) -> RoomIs:
                return await service.ask(
                    "b",
                    lambda number, key: GetRoom(number, key, [*voters]),
                    RoomIs,
                    StreamKey(""),
                    5.0,
                )

            await made.open("b")
            found = await asked("c", "b", "a")
            assert (found.replicas, found.problem) == (1, "")
            assert "whose primaries are a, b, c" in (await asked("a")).problem
            made.nodes["b"].service.room.why_none = "it leaves"
            assert (await asked("a", "b", "c")).problem == "it leaves"
            monkeypatch.setattr(Wal, "is_full", True)
            assert (await asked("a", "b", "c")).problem == "its disk is full"

    asyncio.run(asyncio.wait_for(story(), 30))


def test_one_that_is_gone_for_good_is_replaced(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path, "abcd") as made:
            engines = {name: await made.open(name) for name in "abcd"}
            await engines["d"].append(Batch.of([b"1"]))
            await made.stop("c")
            made.move("abd")
            await made.settled()
            await engines["d"].append(Batch.of([b"2"]))
            await made.stop("a")
            await engines["d"].append(Batch.of([b"3"]))
            assert await take(engines["b"], 3) == [b"1", b"2", b"3"]

    asyncio.run(asyncio.wait_for(story(), 30))


def test_a_move_to_one_that_is_away_waits_and_gives_way_to_another(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path, "abcd") as made:
            engines = {name: await made.open(name) for name in "abcd"}
            made.move("abx")
            await engines["d"].append(Batch.of([b"1"]))
            await asyncio.sleep(0.2)
            members = await engines["a"].members()
            assert (members.voters, members.learners) == (("a", "b", "c"), ())
            made.move("abd")
            await made.settled()
            assert (await engines["c"].members()).voters == ("a", "b", "d")
            assert (await engines["c"].members()).learners == ()

    asyncio.run(asyncio.wait_for(story(), 30))


def test_who_is_still_to_give_a_replica_up_does_not_join_with_that(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path, "abcd") as made:
            engines = {name: await made.open(name) for name in "abcd"}
            await engines["d"].append(Batch.of([b"1"]))
            made.uninformed = {"c"}
            made.move("abd")
            await made.settled()
            moved = made.placements["orders", 17]
            made.move("abc")
            await engines["d"].append(Batch.of([b"2"]))
            await asyncio.sleep(0.5)
            assert "c" not in member_of(made, leader_of(made)).group.membership.everyone
            made.nodes["c"].service.place("orders", 17, moved)
            await gone_but_at(made, "abd")
            made.uninformed = set()
            made.nodes["c"].service.place("orders", 17, made.placements["orders", 17])
            await made.settled()
            await gone_but_at(made, "abc")
            await made.stop("b")
            await engines["a"].append(Batch.of([b"3"]))
            assert await take(engines["c"], 3) == [b"1", b"2", b"3"]

    asyncio.run(asyncio.wait_for(story(), 30))


def lead(made: Trio, name: str) -> None:
    """Have a container lead."""
    if leader := leader_of(made):
        service = made.nodes[leader].service
        service._host.transfer(17, name, service.now_s())


async def leads(made: Trio, name: str) -> None:
    while not leader_of(made):
        await asyncio.sleep(0.01)
    while leader_of(made) != name:
        lead(made, name)
        await asyncio.sleep(0.2)


def test_a_leader_that_has_not_heard_of_a_move_does_not_undo_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path, "abcd") as made:
            engines = {name: await made.open(name) for name in "abcd"}
            await engines["c"].append(Batch.of([b"1"]))
            made.move("abd")
            made.uninformed = {"b"}
            await made.settled()
            made.move("abcd")
            await made.settled()
            await leads(made, "b")
            await asyncio.sleep(0.7)
            assert member_of(made, "b").group.membership.voters == tuple("abcd")
            made.uninformed = set()
            made.nodes["b"].service.place("orders", 17, made.placements["orders", 17])
            await engines["c"].append(Batch.of([b"2"]))
            assert (await engines["b"].members()).voters == tuple("abcd")
            assert await take(engines["c"], 2) == [b"1", b"2"]

    asyncio.run(asyncio.wait_for(story(), 30))


def test_a_move_is_not_done_that_its_leader_alone_has_heard_of(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path, "abcd") as made:
            for name in "abcd":
                await made.open(name)
            await leads(made, "c")
            made.passes = lambda origin, to: "d" not in (origin, to)
            made.move("abd")
            made.uninformed = {"a", "b", "d"}
            made.move("abc")
            await asyncio.sleep(0.7)
            assert not made.placements["orders", 17].is_settled
            made.uninformed = set()
            for name in "abd":
                made.nodes[name].service.place("orders", 17, made.placements["orders", 17])
            await made.settled()
            await gone_but_at(made, "abc")

    asyncio.run(asyncio.wait_for(story(), 30))


def test_who_comes_back_joins_as_one_that_knows_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path, "abcd") as made:
            engines = {name: await made.open(name) for name in "abcd"}
            sent = []
            for voters in ("abd", "acd", "bcd", "abc"):
                sent.append(voters.encode())
                await engines["a"].append(Batch.of([sent[-1]]))
                made.move(voters)
                await made.settled()
                await gone_but_at(made, voters)
            for name in "abcd":
                await made.stop(name)
            for name in "abcd":
                made.start(name)
            engines = {name: await made.open(name) for name in "abcd"}
            assert await take(engines["d"], 4) == sent
            assert not made.reports

    asyncio.run(asyncio.wait_for(story(), 60))


def test_the_leader_stops_in_the_middle_and_another_one_goes_on(tmp_path: Path) -> None:
    async def story() -> None:
        async with trio(tmp_path, "abcdef") as made:
            engines = {name: await made.open(name) for name in "abcdef"}
            await engines["f"].append(Batch.of([b"1"]))
            for voters in ("ade", "bcf", "abe", "def"):
                made.move(voters)
                while (leader := leader_of(made)) == "":
                    await asyncio.sleep(0.001)
                await asyncio.sleep(0.01 * len(made.reports))
                await made.stop(leader)
                await asyncio.sleep(0.05)
                made.start(leader)
                engines[leader] = await made.open(leader)
                await made.settled()
                await engines["a"].append(Batch.of([voters.encode()]))
            expected = [b"1", b"ade", b"bcf", b"abe", b"def"]
            for engine in engines.values():
                assert await take(engine, 5) == expected
            await gone_but_at(made, "def")

    asyncio.run(asyncio.wait_for(story(), 60))
