"""Records that a slow line takes long for: they are waited for, and asked for once."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING

import pytest

from cogwork.plugin.engine.errors import Unavailable
from cogwork.plugin.engine.placement import Placement
from cogwork.replication import stream as module
from cogwork.replication.calls import Bounded, GetBounds, Records
from cogwork.replication.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.replication.calls import Answer, Call


class Line:
    """The way to others: records take long, all else does not; time passes while it is waited."""

    own = "d"

    def __init__(self, takes_s: float) -> None:
        self.takes_s = takes_s
        self.round_trip_s = 0.01
        self.time_s = 0.0
        self.asked: list[tuple[str, float]] = []

    def now_s(self) -> float:
        return self.time_s

    async def ask(
        self,
        to: str,
        make: Callable[[int, str], Call],
        _kind: type[Answer],
        name: str,
        timeout_s: float,
    ) -> Answer:
        call = make(1, name)
        is_small = isinstance(call, GetBounds)
        takes_s = self.round_trip_s if is_small else self.takes_s
        self.asked.append((to, timeout_s))
        self.time_s += min(takes_s, timeout_s)
        if takes_s > timeout_s:
            raise Unavailable("it does not answer")
        return Bounded(1, 0, 0, 0) if is_small else Records(1, [], 0)


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Line:
    monkeypatch.setattr(module, "PAUSE_S", 0.0)
    return Line(6.0)


def stream_on(line: Line) -> Stream:
    numbers = count()
    placement = Placement([*"abc"], founders=[*"abc"])
    return Stream(line, "orders", 17, placement, lambda: next(numbers))  # type: ignore[arg-type]  # all that is asked of a service


def test_records_are_waited_for_as_long_as_they_take(line: Line) -> None:
    async def story() -> None:
        stream = stream_on(line)
        assert await stream.read_any(0, 1 << 20, 0.0) == []
        assert [timeout_s for _, timeout_s in line.asked] == [0.5, 1, 2, 4, 8]
        for _ in range(3):
            line.asked.clear()
            await stream.ask_any(GetBounds, Bounded)
            await stream.read_any(0, 1 << 20, 1.0)
            ((_, small_s), (_, large_s)) = line.asked
            assert small_s == 0.5, "what is small takes no longer"
            assert 6.0 < large_s <= 11.0

    asyncio.run(story())


def test_an_answer_from_far_away_is_waited_for(line: Line) -> None:
    async def story() -> None:
        line.round_trip_s = 0.7
        stream = stream_on(line)
        await stream.ask_any(GetBounds, Bounded)
        line.asked.clear()
        await stream.ask_any(GetBounds, Bounded)
        assert len(line.asked) == 1

    asyncio.run(story())


def test_where_nothing_ever_comes_it_is_said_in_time(line: Line) -> None:
    async def story() -> None:
        line.takes_s = 1e9
        stream = stream_on(line)
        for _ in range(3):
            since_s = line.time_s
            with pytest.raises(Unavailable, match="no replica answers"):
                await stream.read_any(0, 1 << 20, 0.0)
            assert line.time_s - since_s <= module.GIVE_UP_S + module.RECORDS_TIMEOUT_MAX_S

    asyncio.run(story())
