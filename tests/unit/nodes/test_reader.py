"""When a receiver of a stream has had what it asked for."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from cogwork.engines.orb import OrbHost
from cogwork.nodes.stream.reader import Reader
from cogwork.nodes.stream.start import Wish
from cogwork.nodes.stream.tail import Tail
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import FromOffset, FromTime, Origin, Snapshot
from cogwork.plugin.engine.errors import BeyondEnd

if TYPE_CHECKING:
    from cogwork.plugin.engine.contract import Bounds, Start

BLOCK_RECORDS = 10
LAST = 100


@dataclass
class Link:
    credit: int
    ended_drains: int = 0
    presettles: bool = True

    def exhaust(self) -> None:
        self.ended_drains += 1

    def send(self, *_: object) -> bool:
        return self.credit > 0


@dataclass
class Block:
    """Ten records that were read from the engine."""

    offset: int = 0
    next_offset: int = BLOCK_RECORDS
    size_bytes: int = 1_000

    def send(self, link: Link, _feed: object, offset: int, _is_alone: bool) -> int:
        count = min(link.credit, self.next_offset - offset)
        link.credit -= count
        return offset + count


class Source:
    def __init__(self) -> None:
        self.engine = object()
        self.tail = Tail()
        self.tail.restart(LAST)
        self.feed = SimpleNamespace(takes=lambda link: link.credit > 0)
        self.is_alone = True
        self.has_room = True
        self.reads = 0

    def spawn(self, _reader: object, _work: object) -> None:
        self.reads += 1

    def note_held(self, _size_bytes: int) -> None:
        """Nobody counts."""


@pytest.mark.parametrize(
    ("credit", "sent", "reads", "ended_drains"),
    [(4, 4, 0, 1), (10, 10, 0, 1), (11, 10, 1, 0)],
    ids=["within a block", "where a block ends", "beyond it"],
)
def test_a_drain_is_over_when_the_credit_is(
    credit: int, sent: int, reads: int, ended_drains: int
) -> None:
    source, link = Source(), Link(credit)
    reader = Reader(
        source,  # type: ignore[arg-type]  # all that is asked of it
        SimpleNamespace(link=link),  # type: ignore[arg-type]  # the same
        Wish.__new__(Wish),
        is_told=False,
        next=0,
        target=LAST,
        _block=Block(),  # type: ignore[arg-type]  # the same
    )
    reader.pump()
    assert (reader.next, source.reads, link.ended_drains) == (sent, reads, ended_drains)


@pytest.mark.parametrize("start", [FromTime(1 << 60), Origin.SNAPSHOT])
def test_what_comes_while_a_start_is_looked_for_is_not_beyond_the_end(start: Start) -> None:
    """The end is asked for first, and may be another one when the place is known."""

    async def story() -> None:
        engine = await OrbHost().open("s", {})
        await engine.append(Batch.of([b"before"]))

        class Busy:
            async def bounds(self) -> Bounds:
                found = await engine.bounds()
                await engine.append(Batch.of([b"meanwhile"]))
                await engine.save_snapshot(Snapshot(found.next + 1, b"state"))
                return found

            def __getattr__(self, name: str) -> Any:
                return getattr(engine, name)

        source: Any = Source()
        source.engine = Busy()
        subscription: Any = SimpleNamespace(link=Link(0), answer=lambda: None)
        reader = Reader(source, subscription, Wish(start), is_told=False)
        await reader._locate()
        assert reader.next == 2

    asyncio.run(story())


@pytest.mark.parametrize(("waits", "following"), [(True, 9), (False, None)])
def test_an_offset_above_the_end_is_waited_for_where_that_is_asked_for(
    waits: bool, following: int | None
) -> None:
    async def story() -> None:
        source: Any = Source()
        source.engine = await OrbHost().open("s", {})
        subscription: Any = SimpleNamespace(link=Link(0), answer=lambda: None)
        reader = Reader(source, subscription, Wish(FromOffset(9), waits=waits), is_told=False)
        with nullcontext() if waits else pytest.raises(BeyondEnd):
            await reader._locate()
        assert reader.next == following

    asyncio.run(story())
