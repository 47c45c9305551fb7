"""Tasks go on where their connection was read, and nowhere else."""

from __future__ import annotations

import asyncio
from functools import wraps
from typing import TYPE_CHECKING, Any

import pytest

from cogwork.io.turn import Turn, Waiter

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


def on_a_loop(story: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Make a test of a coroutine function."""

    @wraps(story)
    def played() -> None:
        asyncio.run(story())

    return played


class Story:
    """A turn, and what happened in it."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.turn = Turn(self.loop)
        self.told: list[str] = []

    def waits(self, name: str) -> tuple[Waiter[str], asyncio.Task[str]]:
        """Have a task wait."""
        waiter: Waiter[str] = self.turn.waiter()

        async def wait() -> str:
            value = await waiter
            self.told.append(f"{name} got {value}")
            self.turn.call_soon(lambda: self.told.append(f"flushed for {name}"))
            return value

        return waiter, self.loop.create_task(wait())

    async def read(self, reader: Callable[[], object]) -> None:
        """Have the loop call a reader, as it does where a socket has input."""
        self.loop.call_soon(self.turn.read, reader)
        await asyncio.sleep(0)


@on_a_loop
async def test_tasks_go_on_after_the_reader_and_are_flushed_once_all_have_run() -> None:
    story = Story()
    first, one = story.waits("one")
    second, two = story.waits("two")
    await asyncio.sleep(0)

    def reader() -> None:
        first.set_result("a")
        second.set_result("b")
        story.told.append("read")

    await story.read(reader)
    assert story.told == ["read", "one got a", "two got b", "flushed for one", "flushed for two"]
    assert list(await asyncio.gather(one, two)) == ["a", "b"]


@on_a_loop
async def test_outside_of_a_turn_a_task_goes_on_in_the_next_pass() -> None:
    story = Story()
    waiter, task = story.waits("one")
    await asyncio.sleep(0)
    waiter.set_result("a")
    assert story.told == []
    assert await task == "a"


@on_a_loop
async def test_a_turn_within_a_task_runs_no_other_task() -> None:
    story = Story()
    waiter, task = story.waits("one")
    await asyncio.sleep(0)
    story.turn.read(lambda: waiter.set_result("a"))
    assert story.told == []
    assert await task == "a"


@on_a_loop
async def test_an_exception_is_raised_where_the_task_waits() -> None:
    story = Story()
    waiter, task = story.waits("one")
    await asyncio.sleep(0)
    await story.read(lambda: waiter.set_exception(ValueError("no")))
    with pytest.raises(ValueError, match="no"):
        await task


@on_a_loop
async def test_a_task_that_waits_can_be_cancelled_and_runs_out_of_time() -> None:
    story = Story()
    waiter, task = story.waits("one")
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert waiter.cancelled()
    late: Waiter[str] = story.turn.waiter()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await late
    assert late.done()


@on_a_loop
async def test_what_is_set_before_anybody_waits_is_there_at_once() -> None:
    story = Story()
    waiter, task = story.waits("one")
    waiter.set_result("a")
    await asyncio.sleep(0)
    assert task.done()
    assert story.told[0] == "one got a"
    with pytest.raises(asyncio.InvalidStateError):
        waiter.set_result("b")
    with pytest.raises(asyncio.InvalidStateError):
        story.turn.waiter().result()


@on_a_loop
async def test_several_tasks_may_wait() -> None:
    story = Story()
    waiter, task = story.waits("one")

    async def second() -> str:
        return await waiter

    tasks = [task, *(story.loop.create_task(second()) for _ in range(2))]
    await asyncio.sleep(0)
    await story.read(lambda: waiter.set_result("a"))
    assert story.told[0] == "one got a"
    assert await asyncio.gather(*tasks) == ["a", "a", "a"]


@on_a_loop
async def test_a_reader_that_fails_leaves_nobody_waiting() -> None:
    story = Story()
    waiter, task = story.waits("one")
    await asyncio.sleep(0)

    def reader() -> None:
        waiter.set_result("a")
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        story.turn.read(reader)
    assert await task == "a"


@on_a_loop
async def test_a_resumed_task_wakes_another_one_in_the_same_turn_or_the_next_pass() -> None:
    story = Story()
    first, one = story.waits("one")
    second: Waiter[str] = story.turn.waiter()

    async def chain() -> str:
        value = await first_of_chain
        second.set_result("b")
        return value

    first_of_chain: Waiter[str] = story.turn.waiter()
    task = story.loop.create_task(chain())
    await asyncio.sleep(0)

    async def last() -> str:
        return await second

    other = story.loop.create_task(last())
    await asyncio.sleep(0)

    def reader() -> None:
        first.set_result("a")
        first_of_chain.set_result("c")

    await story.read(reader)
    assert list(await asyncio.gather(one, task, other)) == ["a", "c", "b"]
