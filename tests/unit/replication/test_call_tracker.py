"""Who is given which answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from cogwork.plugin.engine.errors import Malformed, Unavailable
from cogwork.replication import calls
from cogwork.replication.call_tracker import CallTracker

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.replication.calls import Answer, Call

ORDERS = calls.StreamKey("orders", 17)


class Wire:
    """A way to other containers."""

    def send(self, _to: str, *_parts: bytes) -> bool:
        return True

    def flush(self) -> None: ...


class Nowhere(Wire):
    """A way that leads to nobody."""

    def send(self, _to: str, *_parts: bytes) -> bool:
        return False


def never(call: Call, _answer: object) -> None:
    """Carry out no calls: here nobody makes any."""
    raise AssertionError(call)


def asked(board: CallTracker, to: str) -> tuple[int, list[Answer]]:
    """Ask a container; return the number of the call, and where its answer will be."""
    answers: list[Answer] = []
    call = calls.GetBounds(board.next_number(), ORDERS)
    assert board.expect(to, call, calls.Bounded, answers.append, 0.0)
    return call.number, answers


def test_an_answer_to_a_former_life_is_none_to_this_one() -> None:
    former, present = CallTracker("a", Wire(), never), CallTracker("a", Wire(), never)
    number, _ = asked(former, "b")
    _, answers = asked(present, "b")
    present.take("b", calls.Bounded(number, 1, 2, 3))
    assert answers == []


def test_only_who_was_asked_answers() -> None:
    board = CallTracker("a", Wire(), never)
    number, answers = asked(board, "b")
    board.take("c", calls.Bounded(number, 1, 2, 3))
    assert answers == []
    answer = calls.Bounded(number, 4, 5, 6)
    board.take("b", answer)
    board.take("b", answer)
    assert answers == [answer]


def test_an_answer_to_something_else_is_none() -> None:
    board = CallTracker("a", Wire(), never)
    number, answers = asked(board, "b")
    with pytest.raises(Malformed, match="not an answer to GetBounds: it is TimeIs"):
        board.take("b", calls.TimeIs(number, 7))
    assert answers == []

    async def story() -> None:
        call = calls.GetBounds(board.next_number(), ORDERS)
        asking = asyncio.ensure_future(board.ask("b", call, calls.Bounded, 60))
        await asyncio.sleep(0)
        with pytest.raises(Malformed):
            board.take("b", calls.TimeIs(call.number, 7))
        with pytest.raises(Unavailable, match="container b: this is not an answer to GetBounds"):
            await asking

    asyncio.run(story())


def test_what_a_container_asks_itself_is_carried_out_here() -> None:
    def carry_out(call: Call, answer: Callable[[Answer], object]) -> None:
        answer(calls.Bounded(call.number, 4, 5, 6))

    async def story() -> None:
        board = CallTracker("a", Nowhere(), carry_out)
        call = calls.GetBounds(board.next_number(), ORDERS)
        assert await board.ask("a", call, calls.Bounded, 1) == calls.Bounded(call.number, 4, 5, 6)
        answers: list[Answer] = []
        assert board.expect("a", call, calls.Bounded, answers.append, 0.0)
        assert len(answers) == 1
        with pytest.raises(Unavailable, match="no way to container b"):
            await board.ask("b", call, calls.Bounded, 1)

    asyncio.run(story())


def test_whoever_does_not_answer_in_time_is_named() -> None:
    async def story() -> None:
        board = CallTracker("a", Wire(), lambda _call, _answer: None)
        for to, why in {"a": "the replica here has not come so far", "b": "container b"}.items():
            call = calls.GetBounds(board.next_number(), ORDERS)
            with pytest.raises(Unavailable, match=why):
                await board.ask(to, call, calls.Bounded, 0.01)

    asyncio.run(story())


def test_nobody_waits_for_a_container_to_which_the_connection_has_broken() -> None:
    async def story() -> None:
        board = CallTracker("a", Wire(), never)
        asking = {}
        for to in ("b", "c"):
            call = calls.Read(board.next_number(), ORDERS, 0, 1, 2_000)
            asking[to] = asyncio.ensure_future(board.ask(to, call, calls.Records, 60))
        await asyncio.sleep(0)
        board.lost("b")
        board.lost("b")
        with pytest.raises(Unavailable, match="the connection to container b has broken"):
            await asking["b"]
        assert not asking["c"].done()
        asking["c"].cancel()

    asyncio.run(story())
