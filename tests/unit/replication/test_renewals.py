"""A replica that does nothing any more does not keep the write-ahead log from letting files go."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from logs import Log
from replicas import take, trio

from cogwork.amqp.errors import CogworkError
from cogwork.log.position import number_of
from cogwork.plugin.engine.batch import Batch
from cogwork.raft.entries import Entry, Kind
from cogwork.raft.ready import HardState, Write
from cogwork.replication import journal as journal_module
from cogwork.replication import member
from cogwork.replication.journal import Journal
from cogwork.replication.renewals import Renewals, until_durable
from cogwork.replication.replica import Replica

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from replicas import Trio

    from cogwork.replication.member import Member

FILE_BYTES = 16 << 10
COUNT = 30


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "SEAL_ENTRIES", 20)
    monkeypatch.setattr(member, "SEAL_LATER", 0.0)


def member_of(containers: Trio, name: str) -> Member | None:
    return containers.nodes[name].service.streams["orders"].member


async def fail(containers: Trio) -> Callable[[], Awaitable[None]]:
    """Have the replica in c stop by a fault; return what makes it sound."""
    failing = member_of(containers, "c")
    assert failing is not None
    apply = Replica.apply

    def broken(replica: Replica, index: int, payload: bytes) -> object:
        if replica is failing.replica:
            raise RuntimeError("it cannot")
        return apply(replica, index, payload)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Replica, "apply", broken)
        engine = await containers.open("a")
        await engine.append(Batch.of([b"the last one"]))
        while member_of(containers, "c") is not None:
            await asyncio.sleep(0.01)

    async def restart() -> None:
        await containers.stop("c")
        containers.start("c")

    return restart


async def damage(containers: Trio) -> Callable[[], Awaitable[None]]:
    """Have the replica in c refused, as a file of it is damaged; return what makes it sound."""
    engine = await containers.open("a")
    await engine.append(Batch.of([b"the last one"]))
    found = member_of(containers, "c")
    assert found is not None
    while found.files.state is None or found.replica.is_sealing:
        await asyncio.sleep(0.01)
    await containers.stop("c")
    path = containers.path / "c" / "streams" / "17" / "state"
    content = path.read_bytes()
    path.write_bytes(b"damaged")
    containers.start("c")
    with pytest.raises(CogworkError, match="state"):
        await containers.open("c")

    async def repair() -> None:
        path.write_bytes(content)

    return repair


@pytest.mark.parametrize("break_it", [fail, damage])
def test_what_does_nothing_is_written_once_more_and_found(
    break_it: Callable[[Trio], Awaitable[Callable[[], Awaitable[None]]]], tmp_path: Path
) -> None:
    async def story() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        async with trio(tmp_path, file_bytes=FILE_BYTES) as containers:
            engines = {name: await containers.open(name) for name in "abc"}
            for number in range(COUNT):
                await engines["a"].append(Batch.of([b"%d" % number]))
            mend = await break_it(containers)
            for name in "abc":
                others = await containers.open(name, "others", 18)
            wal = containers.nodes["c"].wal
            newest = number_of(wal.end_lsn)
            while wal.oldest_number <= newest:
                await others.append(Batch.of([b"." * 1000]))
            await mend()
            engine = await containers.open("c")
            expected = [*(b"%d" % number for number in range(COUNT)), b"the last one"]
            assert await take(engine, len(expected)) == expected
            while (found := member_of(containers, "c")) is None:
                await asyncio.sleep(0.01)
            while found.replica.state.next_offset < len(expected):
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(story(), 60))


def test_what_is_more_than_the_log_takes_at_once_is_written_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it never would be, and each attempt would leave as much behind in the log."""
    monkeypatch.setattr(journal_module, "PIECE_BYTES", 2_000)

    async def story(log: Log) -> None:
        wal, journal = log.wal, Journal(log.wal, 17)
        asyncio.get_running_loop().add_reader(log.queue.fileno(), log.queue.dispatch)
        for index in range(1, COUNT + 1):
            entry = Entry(index, 1, Kind.COMMAND, b"." * 1_000)
            journal.write(Write(index, HardState(1, "a", 0), entries=(entry,)))
            await until_durable(wal)
        end_lsn = wal.end_lsn
        renewals = Renewals(wal, lambda _: journal.renew())
        renewals.ask(17)
        while min(journal.lsns) < end_lsn:
            await asyncio.sleep(0.01)
        assert [each.index for each in journal.entries(1, 1 << 20)] == [*range(1, COUNT + 1)]
        await until_durable(wal)
        assert wal.oldest_number == number_of(end_lsn)
        asyncio.get_running_loop().remove_reader(log.queue.fileno())

    log = Log(tmp_path, file_bytes=FILE_BYTES, waiting_bytes_max=4_000)
    try:
        asyncio.run(asyncio.wait_for(story(log), 20))
    finally:
        log.close()
