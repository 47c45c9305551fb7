"""When publishers are told that an engine does not take what they have sent, and what."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from cogwork.nodes.stream import publishing
from cogwork.nodes.stream.publishing import (
    ACCEPTED,
    MODIFIED,
    REJECTED,
    RELEASED,
    Publishing,
)
from cogwork.plugin.engine.contract import Appended
from cogwork.plugin.engine.errors import (
    ConsensusError,
    OutOfSequence,
    StreamLost,
    Unavailable,
    Unknown,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cogwork.plugin.engine.batch import Batch

ENGINE_S = 0.5
"""So long the engine tries by itself."""

Fault = ConsensusError | None


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "PATIENCE_S", ENGINE_S * 0.9)
    monkeypatch.setattr(publishing, "DEADLINE_S", ENGINE_S)


class SkippingLoop(asyncio.SelectorEventLoop):
    """Its time passes where it would wait, and at once: no other program takes any of it."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        selector = self._selector  # type: ignore[attr-defined]  # as its base class has it
        select = selector.select

        def skip(timeout_s: float | None = None) -> object:
            self._now_s += timeout_s or 0.0
            return select(None if timeout_s is None else 0)

        selector.select = skip

    def time(self) -> float:
        return self._now_s


class Patient:
    """An engine that answers when its own time is over, with what a test says, in order."""

    def __init__(self, *faults: tuple[float, Fault]) -> None:
        self.asked = 0
        self._faults = list(faults)

    async def append(self, _batch: Batch) -> Appended:
        self.asked += 1
        delay_s, fault = self._faults.pop(0)
        await asyncio.sleep(delay_s)
        if fault is not None:
            raise fault
        return Appended(0, 0)


class Sent:
    """A message of one link."""

    source_index = source_generation = count = 1
    is_snapshot = False
    payload = b"record"

    def __init__(self, producer: bytes = b"", sequence: int = 0) -> None:
        self.producer = producer
        self.sequence = sequence
        self.sent_s = 0.0
        self.told: list[tuple[int, float]] = []
        self.state = b""

    def settle(self, outcome: int, state: bytes = b"") -> None:
        self.state = state
        self.told.append((outcome, asyncio.get_running_loop().time() - self.sent_s))


async def published(engine: Any, *messages: tuple[float, Sent]) -> None:
    """Publish messages, each after a while, and wait until all are told."""
    line = Publishing(lambda: None)
    line.open(engine)
    for after_s, message in messages:
        await asyncio.sleep(after_s)
        message.sent_s = asyncio.get_running_loop().time()
        line.take([message])  # type: ignore[list-item]  # all that is asked of it
    while not all(message.told for _, message in messages):
        await asyncio.sleep(0.01)
    await asyncio.sleep(ENGINE_S)
    assert all(len(message.told) == 1 for _, message in messages)
    assert line.stopped == 0


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(story(), 20)

    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        runner.run(bounded())


def test_an_engine_that_has_tried_for_long_is_not_asked_once_more() -> None:
    engine, message = Patient((ENGINE_S, Unavailable("no server"))), Sent()
    run(lambda: published(engine, (0.0, message)))
    ((outcome, after_s),) = message.told
    assert (outcome, engine.asked) == (RELEASED, 1)
    assert after_s < ENGINE_S * 1.8


def test_what_was_sent_first_is_not_told_only_with_what_came_after_it() -> None:
    engine = Patient(*[(ENGINE_S, Unavailable("no server"))] * 2)
    first, second = Sent(), Sent()
    run(lambda: published(engine, (0.0, first), (ENGINE_S * 0.8, second)))
    assert [first.told[0][0], second.told[0][0]] == [RELEASED] * 2
    assert first.told[0][1] < ENGINE_S * 1.5
    assert second.told[0][1] < ENGINE_S * 1.5


def test_an_engine_that_gives_everything_up_at_once_is_not_asked_once_more() -> None:
    engine = Patient((ENGINE_S, Unknown("lost")), (ENGINE_S / 2, Unavailable("no leader")))
    first, second = Sent(b"p"), Sent(b"p", 1)
    run(lambda: published(engine, (0.0, first), (ENGINE_S / 2, second)))
    assert [first.told[0][0], second.told[0][0]] == [MODIFIED, RELEASED]
    assert engine.asked == 2


def test_what_is_out_of_sequence_behind_what_was_given_back_is_given_back() -> None:
    engine = Patient((ENGINE_S, Unavailable("no server")), (ENGINE_S * 0.7, OutOfSequence(0, 1)))
    first, second = Sent(b"p"), Sent(b"p", 1)
    run(lambda: published(engine, (0.0, first), (ENGINE_S / 2, second)))
    assert [first.told[0][0], second.told[0][0]] == [RELEASED] * 2


def test_what_was_once_in_doubt_is_never_said_not_to_have_happened() -> None:
    engine = Patient((0.0, Unknown("lost")), (ENGINE_S, Unavailable("no server")))
    message = Sent(b"p")
    run(lambda: published(engine, (0.0, message)))
    assert (message.told[0][0], engine.asked) == (MODIFIED, 2)


def test_what_fails_for_a_moment_is_tried_again() -> None:
    engine = Patient((0.0, Unavailable("no leader")), (0.0, Unavailable("no leader")), (0.0, None))
    message = Sent()
    run(lambda: published(engine, (0.0, message)))
    assert (message.told[0][0], engine.asked) == (ACCEPTED, 3)


def test_who_sends_to_a_stream_that_is_lost_is_told_at_once_and_why() -> None:
    engine = Patient((0.0, Unavailable("no server")), *[(0.0, StreamLost("it was deleted"))] * 2)
    first, second = Sent(b"p"), Sent(b"p", 1)
    run(lambda: published(engine, (0.0, first), (0.0, second)))
    for message in (first, second):
        ((outcome, after_s),) = message.told
        assert outcome == REJECTED
        assert after_s < ENGINE_S * 0.5
        assert b"amqp:resource-deleted" in message.state
        assert message.state.endswith(b"it was deleted"), "and not: try again later"


def test_an_engine_that_refuses_and_then_falls_silent_has_one_time_for_both() -> None:
    refused = [(0.0, Unavailable("no leader"))] * 4
    engine, message = Patient(*refused, (ENGINE_S, Unavailable("no answer"))), Sent()
    run(lambda: published(engine, (0.0, message)))
    ((outcome, after_s),) = message.told
    assert (outcome, engine.asked) == (MODIFIED, 5), "the engine may have appended it"
    assert ENGINE_S * 0.9 < after_s < ENGINE_S * 1.2


def test_what_waits_behind_another_one_has_no_more_time_than_that() -> None:
    refused = [(0.0, Unavailable("no leader"))] * 7
    engine = Patient(*refused, (0.0, None), (ENGINE_S, Unavailable("no answer")))
    first, second = Sent(), Sent()
    run(lambda: published(engine, (0.0, first), (0.01, second)))
    assert [first.told[0][0], second.told[0][0]] == [ACCEPTED, MODIFIED]
    assert second.told[0][1] < ENGINE_S * 1.2


def test_what_comes_behind_what_was_given_back_goes_on() -> None:
    refused = [(0.0, Unavailable("no leader"))] * 2
    engine = Patient(*refused, (ENGINE_S, None), (0.0, None))
    first, second = Sent(), Sent()
    run(lambda: published(engine, (0.0, first), (ENGINE_S * 0.9, second)))
    assert [first.told[0][0], second.told[0][0]] == [MODIFIED, ACCEPTED]
    assert second.told[0][1] < ENGINE_S * 0.5


def test_what_an_engine_fails_at_by_itself_is_rejected_and_what_comes_later_is_not() -> None:
    class Broken(Patient):
        def append(self, batch: Batch) -> Awaitable[Appended]:  # type: ignore[override]  # as most
            if not self.asked:
                self.asked += 1
                raise RuntimeError("it cannot")
            return super().append(batch)

    first, second = Sent(), Sent()
    run(lambda: published(Broken((0.0, None)), (0.0, first), (0.0, second)))
    assert [first.told[0][0], second.told[0][0]] == [REJECTED, ACCEPTED]
    assert b"it cannot" in first.state


class Waiting(Patient):
    """An engine that has sent the first append, and nothing else; it has what engines have."""

    fence = read = subscribe = bounds = offset_at = trim = Patient.append
    save_snapshot = load_snapshot = members = change_members = close = Patient.append
    capabilities = None

    def __init__(self, fault: Exception | None = None) -> None:
        super().__init__()
        self._fault = fault
        self._waiting: list[asyncio.Future[Appended]] = []

    def append(self, _batch: Batch) -> asyncio.Future[Appended]:  # type: ignore[override]  # as most
        self._waiting.append(asyncio.get_running_loop().create_future())
        return self._waiting[-1]

    def release_unsent(self, reason: str) -> None:
        if self._fault is not None:
            raise self._fault
        for each in self._waiting[1:]:
            each.set_exception(Unavailable(reason))


@pytest.mark.parametrize("fault", [None, RuntimeError("it cannot")])
def test_what_an_engine_never_sent_is_given_back_when_the_container_stops(
    fault: Exception | None,
) -> None:
    async def story() -> None:
        faults: list[object] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: faults.append(context["exception"])
        )
        line = Publishing(lambda: None)
        line.open(Waiting(fault))  # type: ignore[arg-type]  # all that is asked of it
        messages = [Sent(b"p", number) for number in range(3)]
        line.take(messages)  # type: ignore[arg-type]  # all that is asked of them
        line.give_back()
        await asyncio.sleep(0)
        told = [[outcome for outcome, _ in message.told] for message in messages]
        assert told == ([[]] * 3 if fault else [[], [RELEASED], [RELEASED]])
        assert faults == ([fault] if fault else [])
        line.close()
        assert messages[0].told[0][0] == MODIFIED

    run(story)
