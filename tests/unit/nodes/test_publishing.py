"""Appends that an engine refuses at once, and takes later."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from cogwork.dataplane.message.messages import Message
from cogwork.nodes.stream.publishing import ACCEPTED, REJECTED, RELEASED, Publishing
from cogwork.plugin.engine.contract import Appended
from cogwork.plugin.engine.errors import Busy

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.plugin.engine.batch import Batch

RECORDS = 4


class Crowded:
    """An engine that is full for a while, says so at once, and answers others late."""

    def __init__(self) -> None:
        self.is_full = True
        self.refused = 0
        self.records: list[bytes] = []

    def append_then(self, batch: Batch, told: Callable[[Appended | Busy], object]) -> None:
        if self.is_full:
            self.refused += 1
            told(Busy("as much waits as may"))
            return
        self.records.append(batch.payload)
        answer = Appended(0, len(self.records) - 1)
        asyncio.get_running_loop().call_later(0.2, told, answer)

    def __getattr__(self, name: str) -> object:
        return lambda *_arguments: None


class Answering:
    """An engine that answers when a test says so."""

    def __init__(self) -> None:
        self.told: list[Callable[[Appended | Busy], object]] = []

    def append_then(self, _batch: Batch, told: Callable[[Appended | Busy], object]) -> None:
        self.told.append(told)

    def __getattr__(self, name: str) -> object:
        return lambda *_arguments: None


class Sent:
    """A message of one link."""

    source_index = source_generation = count = 1
    is_snapshot = False
    producer = b""
    sequence = 0

    def __init__(self, number: int) -> None:
        self.payload = b"record %d" % number
        self.outcomes: list[int] = []

    def settle(self, outcome: int, *_state: Any) -> None:
        self.outcomes.append(outcome)


def begin(publishing: Publishing, engine: Any) -> None:
    """Give it an engine, of which it asks no more than a fake has."""
    publishing.open(engine)


def take(publishing: Publishing, *sent: Any) -> None:
    """Give it messages, of which it asks no more than `Sent` has."""
    publishing.take(list(sent))


def test_what_is_refused_at_once_is_appended_once_and_in_order() -> None:
    async def story() -> None:
        engine, publishing = Crowded(), Publishing(lambda: None)
        begin(publishing, engine)
        sent = [Sent(number) for number in range(RECORDS)]
        take(publishing, *sent)
        while engine.refused < RECORDS:
            await asyncio.sleep(0.01)
        engine.is_full = False
        while not all(each.outcomes for each in sent):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        assert engine.records == [each.payload for each in sent]
        assert [len(each.outcomes) for each in sent] == [1] * RECORDS

    asyncio.run(asyncio.wait_for(story(), 20))


@pytest.mark.parametrize("payload", [Message("text").encode(), b"\x00\x53\x77\xa1\x01\xff"])
def test_what_is_no_snapshot_is_rejected_and_leaves_nothing(payload: bytes) -> None:
    async def story() -> None:
        engine, publishing = Crowded(), Publishing(lambda: None)
        begin(publishing, engine)
        engine.is_full = False
        odd, other = Sent(0), Sent(1)
        odd.payload, odd.is_snapshot = payload, True
        other.source_index = 2
        take(publishing, odd, other)
        while not other.outcomes:
            await asyncio.sleep(0.01)
        assert (odd.outcomes, other.outcomes) == ([REJECTED], [ACCEPTED])
        assert publishing._lines == {}

    asyncio.run(asyncio.wait_for(story(), 20))


def test_what_waits_is_given_back_and_what_the_engine_has_is_told_what_became_of_it() -> None:
    async def story() -> None:
        engine, publishing = Crowded(), Publishing(lambda: None)
        begin(publishing, engine)
        engine.is_full = False
        had, waits, late = (Sent(number) for number in range(3))
        take(publishing, had)
        engine.is_full = True
        take(publishing, waits)
        publishing.give_back()
        take(publishing, late)
        assert [each.outcomes for each in (had, waits, late)] == [[], [RELEASED], [RELEASED]]
        engine.is_full = False
        while not had.outcomes:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert had.outcomes == [ACCEPTED]
        assert engine.records == [had.payload]
        assert publishing.stopped == 0

    asyncio.run(asyncio.wait_for(story(), 20))


def test_what_the_engine_refuses_while_everything_is_given_back_is_given_back_too() -> None:
    async def story() -> None:
        engine, publishing = Answering(), Publishing(lambda: None)
        begin(publishing, engine)
        sent = Sent(0)
        take(publishing, sent)
        publishing.give_back()
        assert sent.outcomes == []
        engine.told[0](Busy("not now"))
        assert (sent.outcomes, publishing.stopped, publishing.returned) == ([RELEASED], 0, 1)

    asyncio.run(asyncio.wait_for(story(), 20))
