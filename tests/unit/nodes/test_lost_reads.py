"""Receivers of a stream while what keeps it loses records: who is told, and what is read again."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from cogwork.amqp.extensions import RECORDS_LOST
from cogwork.dataplane.core import Core
from cogwork.nodes.stream import readers as readers_module
from cogwork.nodes.stream.reader import Reader
from cogwork.nodes.stream.readers import Readers
from cogwork.nodes.stream.start import Wish
from cogwork.nodes.stream.tail import Tail
from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.errors import RecordsLost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

END = 3


class Engine:
    """A stream that answers a read when a test says so."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.answers: list[asyncio.Future[Sequence[Chunk]]] = []

    async def read(self, offset: int, _max_bytes: int) -> Sequence[Chunk]:
        self.asked.append(offset)
        self.answers.append(asyncio.get_running_loop().create_future())
        return await self.answers[-1]


class Link:
    """It takes ten records."""

    credit = 10

    def exhaust(self) -> None:
        self.credit = 0


class World:
    """The receivers of that stream: one, that has been given all below an offset, or has none."""

    def __init__(self, following: int | None) -> None:
        self.engine, self.ended, self.link = Engine(), list[Any](), Link()
        self._tasks: set[asyncio.Task[None]] = set()
        tail = Tail()
        tail.restart(9)
        make: Any = Readers  # most of what they have to do with are stand-ins
        self.readers = make(Core(), tail, run=self._run, emit=self.ended.extend, flush=lambda: None)
        self.readers.engine = self.engine
        self.readers.feed = SimpleNamespace(takes=lambda link: link.credit > 0)
        subscription: Any = SimpleNamespace(link=self.link)
        self.reader = Reader(
            self.readers, subscription, Wish(), is_told=False, next=following, target=9
        )
        self.readers._readers[self.link] = self.reader

    def _run(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def asked(self, count: int) -> None:
        """Wait until the engine has been asked so often."""
        async with asyncio.timeout(30):
            while len(self.engine.asked) < count:
                await asyncio.sleep(0.001)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(story(), 20)

    asyncio.run(bounded())


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers_module, "PAUSE_S", 0.001)


def test_what_is_being_read_when_records_are_lost_is_read_again() -> None:
    async def story() -> None:
        world = World(1)
        world.reader.pump()
        await world.asked(1)
        world.readers.take_back(RecordsLost(END))
        lost = Chunk(1, 1, 0, Batch.of([b"%d" % number for number in range(1, 6)]))
        world.engine.answers[0].set_result([lost])
        await world.asked(2)
        assert world.engine.asked == [1, 1]
        assert (world.reader.next, world.ended, world.readers.held_bytes) == (1, [], 0)
        world.close()

    run(story)


@pytest.mark.parametrize("following", [END - 2, END])
def test_who_has_had_nothing_of_what_a_read_finds_lost_reads_again(following: int) -> None:
    async def story() -> None:
        world = World(following)
        world.reader.pump()
        await world.asked(1)
        world.engine.answers[0].set_exception(RecordsLost(END))
        await world.asked(2)
        assert (world.engine.asked, world.ended) == ([following] * 2, [])
        world.close()

    run(story)


def test_who_has_not_begun_where_a_loss_is_found_is_told() -> None:
    async def story() -> None:
        world = World(None)

        async def bounds() -> None:
            raise RecordsLost(END)

        world.engine.bounds = bounds  # type: ignore[attr-defined]  # for this one
        world.reader.start()
        await asyncio.sleep(0.05)
        assert [end.condition for end in world.ended] == [RECORDS_LOST]
        world.close()

    run(story)


def test_who_has_had_some_of_what_a_read_finds_lost_is_told() -> None:
    async def story() -> None:
        world = World(END + 1)
        world.reader.pump()
        await world.asked(1)
        world.engine.answers[0].set_exception(RecordsLost(END))
        await asyncio.sleep(0.05)
        (end,) = world.ended
        assert (end.link, end.condition, end.info) == (world.link, RECORDS_LOST, {"end": END})
        assert len(world.engine.asked) == 1
        world.close()

    run(story)
