"""Who waits until all that is declared is known."""

from __future__ import annotations

import asyncio
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, cast

from cogwork.container.cluster import catch_up
from cogwork.container.cluster.catch_up import CatchUp
from cogwork.plugin.engine.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    import pytest

Given = ParamSpec("Given")


class Following:
    """A cluster's declarations as far as these tests want them known."""

    def __init__(self) -> None:
        self.current, self.answer = asyncio.Event(), asyncio.Event()
        self.asked = 0
        self.problem: Exception | None = None

    async def when_current(self) -> None:
        await self.current.wait()

    async def know_all(self) -> None:
        self.asked += 1
        if self.problem is not None:
            raise self.problem
        await self.answer.wait()


def in_a_loop(story: Callable[Given, Coroutine[Any, Any, None]]) -> Callable[Given, None]:
    @wraps(story)
    def test(*args: Given.args, **kwargs: Given.kwargs) -> None:
        asyncio.run(asyncio.wait_for(story(*args, **kwargs), 10))

    return test


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@in_a_loop
async def test_who_asks_while_a_question_is_under_way_shares_the_next_one() -> None:
    following, calls = Following(), list[str]()
    made = CatchUp(cast("Any", following))
    following.current.set()
    made.when_known(lambda: calls.append("first"))
    await turns()
    made.when_known(lambda: calls.append("second"))
    made.when_known(lambda: calls.append("third"))
    await turns()
    assert (following.asked, calls) == (1, [])
    following.answer.set()
    await turns()
    assert (following.asked, calls) == (2, ["first", "second", "third"])
    made.when_known(lambda: calls.append("later"))
    await turns()
    assert (following.asked, calls[3:]) == (3, ["later"])
    await made.close()


@in_a_loop
async def test_one_that_knows_nothing_waits_for_as_long_as_that_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catch_up, "TIMEOUT_S", 0.01)
    following, calls = Following(), list[str]()
    made = CatchUp(cast("Any", following))
    made.when_known(lambda: calls.append("here"))
    await asyncio.sleep(0.05)
    assert calls == []
    following.current.set()
    while not calls:
        await asyncio.sleep(0.001)
    assert calls == ["here"], "nobody answers, and it goes by what it knows"
    await made.close()


@in_a_loop
async def test_without_a_majority_it_goes_by_what_it_knows() -> None:
    following, calls = Following(), list[str]()
    following.current.set()
    following.problem = Unavailable("no majority")
    made = CatchUp(cast("Any", following))
    for _ in range(2):
        made.when_known(lambda: calls.append("here"))
        await turns()
    assert calls == ["here", "here"]
    await made.close()


@in_a_loop
async def test_once_closed_it_calls_nobody() -> None:
    following, calls = Following(), list[str]()
    made = CatchUp(cast("Any", following))
    made.when_known(lambda: calls.append("here"))
    await turns()
    await made.close()
    following.current.set()
    following.answer.set()
    await turns()
    assert calls == []
