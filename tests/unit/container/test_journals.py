"""Queues on disk and their log: barriers, no room, a failed disk, declarations."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import peers
import pytest
from journal_box import Box, FakeLog
from kept_queues import KeptQueue

from cogwork.amqp.outcomes import Rejected
from cogwork.container.journals import journals as journals_module
from cogwork.container.journals.journals import QueueJournals
from cogwork.container.journals.records import BEGIN, CHANGES, END, FIRST_GROUP, GONE, PART
from cogwork.log.errors import DiskFull, LogBusy, LogFailed
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from cogwork.amqp.errors import CogworkError


def test_answers_go_out_once_the_log_is_durable(runner: asyncio.Runner) -> None:
    async def story() -> None:
        box = Box()
        await box.turn()
        assert box.log.kinds() == [BEGIN, END]
        box.queue.send("a")
        await box.turn(is_durable=False)
        assert (box.log.kinds()[-1], box.accepted) == (CHANGES, 0)
        await box.turn()
        assert box.accepted == 1

    runner.run(story())


def test_without_room_nothing_is_taken_and_nothing_is_lost(runner: asyncio.Runner) -> None:
    async def story() -> None:
        box = Box()
        await box.turn()
        box.log.problem = DiskFull("data")
        box.queue.send("a")
        await box.turn()
        box.queue.send("b")
        await box.turn()
        assert (box.queue.store.depth, box.accepted) == (1, 0)
        box.log.problem = None
        box.journals.full(is_full=False)
        await box.turn()
        assert (box.queue.store.depth, box.accepted) == (2, 2)

    runner.run(story())


@pytest.mark.parametrize("problem", [DiskFull("data"), LogBusy(1)])
def test_a_log_that_takes_nothing_is_asked_now_and_then_without_being_told_to(
    runner: asyncio.Runner, problem: CogworkError
) -> None:
    async def story() -> None:
        box = Box()
        await box.turn()
        box.log.problem = problem
        box.queue.send("a")
        await box.turn()
        refused = box.log.refused
        for _ in range(500):
            await asyncio.sleep(0)
        assert box.log.refused - refused < 50
        async with asyncio.timeout(30):
            while box.log.refused - refused < 3:
                await asyncio.sleep(0.01)
        box.log.problem = None
        async with asyncio.timeout(30):
            while CHANGES not in box.log.kinds():
                await asyncio.sleep(0.01)
        await box.turn()
        assert box.accepted == 1
        box.journals.close()

    runner.run(story())


def test_a_checkpoint_that_waited_for_room_is_written(runner: asyncio.Runner) -> None:
    async def story() -> None:
        box = Box()
        await box.turn()
        box.log.problem = DiskFull("data")
        box.queue.send("a")
        await box.turn()
        box.journals.press(FIRST_GROUP)
        await box.turn()
        assert box.log.kinds() == [BEGIN, END]
        box.log.problem = None
        box.journals.full(is_full=False)
        await box.turn()
        assert box.log.kinds()[2:] == [CHANGES, BEGIN, PART, END]
        box.journals.close()

    runner.run(story())


@pytest.fixture
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals_module, "PART_BYTES", 100)
    monkeypatch.setattr(journals_module, "PARTS_WAITING_BYTES", 1000)


@pytest.mark.usefixtures("_small_parts")
def test_a_checkpoint_waits_for_the_disk(runner: asyncio.Runner) -> None:
    async def story() -> None:
        box = Box()
        box.queue.send(*map(str, range(100)))
        await box.turn()
        box.journals.press(FIRST_GROUP)
        for _ in range(100):
            await box.turn(is_durable=False)
        assert END not in box.log.kinds()[2:]
        assert 1000 < box.log.waiting_bytes < 2000
        for _ in range(100):
            await box.turn()
        assert box.log.kinds()[-1] == END
        box.journals.close()

    runner.run(story())


@pytest.mark.usefixtures("_small_parts")
def test_a_checkpoint_that_is_not_done_ends_with_the_container(runner: asyncio.Runner) -> None:
    async def story() -> None:
        box = Box()
        box.queue.send(*map(str, range(100)))
        await box.turn()
        box.journals.press(FIRST_GROUP)
        await asyncio.sleep(0)
        box.journals.close()
        written = len(box.log.records)
        await box.turn()
        assert len(box.log.records) == written
        assert END not in box.log.kinds()[2:]

    runner.run(story())


@pytest.mark.parametrize("policy", ["block", "reject"])
def test_while_the_last_file_fills_up_items_go_out_and_none_come_in(
    runner: asyncio.Runner, policy: str
) -> None:
    async def story() -> None:
        box = Box()
        box.queue.store.policy = policy
        box.queue.send("a")
        await box.turn()
        low: Any = box.log
        box.log.room_bytes = 100
        box.journals.low_space.take(low, box.journals.press, is_low=True)
        box.queue.publisher.dispositions.clear()
        box.queue.send("b")
        await box.turn()
        said = [disposition.state for disposition in box.queue.publisher.dispositions]
        if policy == "reject":
            (state,) = said
            assert isinstance(state, Rejected)
            assert state.error is not None
            assert state.error.description == "the queue's disk is full"
        else:
            assert said == []
        consumer = box.queue.peer()
        consumer.consumer(box.queue.store, 10)
        await box.turn()
        consumer.hear()
        consumer.settle(consumer.take()[0])
        assert box.queue.store.depth == 0
        box.journals.low_space.take(low, box.journals.press, is_low=False)
        await box.turn()
        assert box.queue.store.depth == (0 if policy == "reject" else 1)

    runner.run(story())


def test_who_holds_the_oldest_file_writes_anew_what_is_little(runner: asyncio.Runner) -> None:
    async def story() -> None:
        box = Box()
        box.queue.send("a", "b")
        await box.turn()
        low: Any = box.log
        box.log.low.clear()
        box.log.room_bytes = 1000
        box.journals.low_space.take(low, box.journals.press, is_low=True)
        await box.turn()
        assert box.log.kinds().count(END) == 1, "there is no room for that"
        box.log.room_bytes = 64 << 20
        box.journals.low_space.take(low, box.journals.press, is_low=True)
        await box.turn()
        assert box.log.kinds()[-3:] == [BEGIN, PART, END]
        box.journals.low_space.take(low, box.journals.press, is_low=True)
        await box.turn()
        assert box.log.kinds().count(END) == 2, "once is enough"

    runner.run(story())


def test_connections_held_too_long_for_room_are_told_why(
    runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals_module, "PATIENCE_S", 0.01)

    async def story() -> None:
        box = Box()
        await box.turn()
        told: list[str] = []
        monkeypatch.setattr(
            type(box.queue.publisher),
            "on_violation",
            lambda _self, condition, _description: told.append(condition),
            raising=False,
        )
        box.log.problem = DiskFull("data")
        box.queue.send("a")
        async with asyncio.timeout(30):
            while not told:
                await asyncio.sleep(0.01)
        assert told == ["amqp:resource-limit-exceeded"]
        assert box.queue.store.depth == 1
        box.journals.close()

    runner.run(story())


def test_a_failed_disk_closes_who_would_be_told_what_is_not_true(
    runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        box = Box()
        await box.turn()
        told: list[str] = []
        monkeypatch.setattr(
            type(box.queue.publisher),
            "on_violation",
            lambda _self, condition, _description: told.append(condition),
            raising=False,
        )
        box.queue.send("a")
        await box.turn(is_durable=False)
        box.journals.failed(LogFailed("file", 5))
        await box.turn(is_durable=False)
        assert (told, box.accepted) == (["cogwork:disk-failed"], 0)
        with pytest.raises(Refused):
            box.journals.open("", "queue/b", {}, box.queue.store)

    runner.run(story())


def test_a_deleted_queue_leaves_nothing(runner: asyncio.Runner) -> None:
    async def story() -> None:
        box = Box()
        box.queue.send("a")
        await box.turn()
        box.handle.delete()
        await box.turn()
        assert box.log.kinds()[-1] == GONE
        assert box.log.low[FIRST_GROUP] == box.log.end_lsn
        again = QueueJournals(box.queue.core, "box", has_disk=True)
        for record in box.log.records:
            again.replay(record)
        log: Any = FakeLog()
        again.start(log, {})
        assert log.low == {FIRST_GROUP: 0}

    runner.run(story())


def test_there_is_no_queue_on_disk_without_a_disk() -> None:
    queue = KeptQueue()
    with pytest.raises(Refused, match="data directory"):
        QueueJournals(queue.core, "box", has_disk=False).open("", "queue/a", {}, queue.store)


def test_who_waits_for_a_turn_is_called_once_it_is_durable(runner: asyncio.Runner) -> None:
    async def story() -> None:
        box = Box()
        await box.turn()
        calls: list[str] = []
        box.queue.send("a")
        box.handle.when_durable(lambda is_durable: calls.append(f"first {is_durable}"))
        await box.turn(is_durable=False)
        box.handle.when_durable(lambda is_durable: calls.append(f"second {is_durable}"))
        assert calls == []
        await box.turn()
        assert calls == ["first True", "second True"]
        box.queue.send("b")
        box.handle.when_durable(lambda _: calls.append("never"))
        await box.turn(is_durable=False)
        box.journals.failed(LogFailed("file", 5))
        await box.turn()
        assert calls == ["first True", "second True"]

    runner.run(story())


def test_who_fails_when_a_turn_is_durable_keeps_no_other_waiting(
    runner: asyncio.Runner, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        box = Box()
        await box.turn()
        calls: list[bool] = []

        def broken(_: bool) -> None:
            raise RuntimeError("broken")

        box.queue.send("a")
        box.handle.when_durable(broken)
        box.handle.when_durable(calls.append)
        await box.turn(is_durable=False)
        box.log.durable_lsn = box.log.end_lsn
        box.journals.durable(box.log.end_lsn)
        assert calls == [True]
        assert "broken" in caplog.text

    runner.run(story())


def test_a_queue_that_cannot_be_written_stops_and_the_others_go_on(
    runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(
        peers.Peer, "on_violation", lambda _, *said: told.append(said), raising=False
    )

    def fail(_kind: int, _payload: bytes) -> None:
        raise RuntimeError("it cannot")

    async def story() -> None:
        box = Box()
        other = KeptQueue(core=box.queue.core)
        other.store.journal = None
        box.journals.open("", "queue/b", {}, other.store)
        box.queue.send("kept")
        await box.turn()
        assert box.accepted == 1
        monkeypatch.setattr(box.handle, "write", fail)
        box.queue.send("lost")
        other.send("a")
        await box.turn()
        assert box.log.records[-1].group == FIRST_GROUP + 1
        assert box.log.records[-1].kind == CHANGES
        assert box.accepted == 1, "what is not written is not confirmed"
        expected = ("amqp:internal-error", "queue/a: what was not confirmed by now is in doubt")
        assert [(condition, said.partition(",")[0]) for condition, said in told][:1] == [expected]
        assert box.handle.problem == (
            "stopped by a fault, start the container anew: RuntimeError('it cannot')"
        )
        assert "'queue/a' stops: cannot write its changes to the log" in caplog.text
        monkeypatch.undo()
        late, written = box.queue.peer(), len(box.log.records)
        late.send(late.publisher(box.queue.entry), box.queue.message("refused"))
        good = other.peer()
        good.send(good.publisher(other.entry), other.message("b"))
        await box.turn()
        late.hear()
        good.hear()
        (refused,) = late.dispositions
        assert isinstance(refused.state, Rejected)
        assert refused.state.error is not None
        assert refused.state.error.condition == "amqp:internal-error"
        assert refused.state.error.description == f"the queue has {box.handle.problem}"
        assert len(good.dispositions) == 1
        assert [record.group for record in box.log.records[written:]] == [FIRST_GROUP + 1]
        box.journals.close()
        again = KeptQueue()
        again.store.journal = None
        restarted = QueueJournals(again.core, "box", has_disk=True)
        for record in box.log.records:
            restarted.replay(record)
        restarted.open("", "queue/a", {"priorities": 3}, again.store)
        restarted.start(FakeLog(), {})  # type: ignore[arg-type]  # as much of a log as is needed
        assert again.texts() == ["kept"]

    runner.run(story())


def test_a_checkpoint_that_cannot_be_made_is_given_up_and_the_others_go_on(
    runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_checkpoint: object = None) -> bytes:
        raise MemoryError

    async def story() -> None:
        box = Box()
        box.queue.send("a")
        await box.turn()
        monkeypatch.setattr(box.handle, "begin", fail)
        box.journals.press(FIRST_GROUP)
        box.queue.send("b")
        await box.turn()
        assert "'queue/a': cannot write a checkpoint of its items" in caplog.text
        assert (box.accepted, box.handle.checkpoint, box.handle.problem) == (2, None, None)
        monkeypatch.undo()
        box.journals.press(FIRST_GROUP)
        await box.turn()
        assert box.log.kinds()[-3:] == [BEGIN, PART, END]

    runner.run(story())
