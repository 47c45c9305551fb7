"""Calls of all sorts side by side, cut and cancelled at random: each ends, and nothing is left."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from call_ends import caller_of, server_of

import cogwork
from cogwork.testing import container

from .proxy import FaultyProxy
from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

ROUNDS = 8
CALLS_A_ROUND = 40


class Stage:
    """A service and a caller, each behind a proxy that cuts their connections."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.ends: Counter[str] = Counter()

    def equip(self, service: cogwork.rpc.Service) -> None:
        chance = self.chance

        @service.method
        def at_once(n: int) -> int:
            return n

        @service.method
        async def later(n: int) -> int:
            await asyncio.sleep(chance.random() * 0.05)
            return n

        @service.method
        async def fail(n: int) -> int:
            raise ValueError(n)

        @service.method
        async def count(n: int) -> AsyncIterator[int]:
            for part in range(n):
                yield part

    async def ask(self, caller: cogwork.Client, n: int) -> None:
        """Make one call, and note how it ended."""
        chance = self.chance
        name = chance.choice(["at_once", "later", "later", "fail", "none"])
        server = chance.choice([None, "one"])
        choices: list[dict[str, Any]] = [{}, {"heartbeat_s": 0.3}, {"idempotency_key": f"k{n}"}]
        options = chance.choice(choices)
        work = caller.call("wild", name, server=server, timeout_s=0.8, n=n, **options)
        task = asyncio.create_task(work)
        if chance.random() < 0.2:
            await asyncio.sleep(chance.random() * 0.05)
            task.cancel()
        try:
            assert await task == n
        except (cogwork.CogworkError, asyncio.CancelledError) as error:
            self.ends[type(error).__name__] += 1
        else:
            self.ends["answered"] += 1

    async def read(self, caller: cogwork.Client, n: int) -> None:
        """Read a stream, all of it or some."""
        stop = self.chance.randrange(1, 300)
        came: list[int] = []
        try:
            async for part in caller.call_stream("wild", "count", window=16, timeout_s=0.8, n=n):
                came.append(part)  # what came before an error counts
                if len(came) == stop:
                    break
        except cogwork.CogworkError as error:
            self.ends[f"stream {type(error).__name__}"] += 1
        else:
            assert len(came) == min(stop, n)
            self.ends["stream"] += 1
        assert came == list(range(len(came)))


@pytest.mark.parametrize("is_direct", [False, True], ids=["routed", "direct"])
def test_every_call_ends_and_nothing_is_left(is_direct: bool) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201  # shown where the test fails
    with container() as url:
        _play(url, seed, is_direct)


@story
async def _play(url: str, seed: int, is_direct: bool) -> None:
    stage = Stage(seed)
    async with (
        FaultyProxy(url) as near,
        FaultyProxy(url) as far,
        cogwork.connect(far.url, direct=is_direct) as client,
        cogwork.connect(near.url, direct=is_direct) as caller,
    ):
        service = server_of(client.service("wild", server="one", concurrency=8, grace_s=0.1))
        stage.equip(service)
        async with service:
            for _ in range(ROUNDS):
                calls = [stage.ask(caller, n) for n in range(CALLS_A_ROUND)]
                reads = [stage.read(caller, stage.chance.randrange(400)) for _ in range(4)]
                played = asyncio.gather(*calls, *reads)
                await asyncio.sleep(stage.chance.random() * 0.05)
                faults: list[Callable[[], object]] = [near.cut, far.cut, list]
                stage.chance.choice(faults)()
                await asyncio.wait_for(played, 10)
            await eventually(lambda: service.running == service.waiting == 0, "no work is left")
            assert service.request_queue._known == {}
            assert [receiver.inbox.held for receiver in service._receivers] == [0, 0, 0]
            replies = caller_of(caller).routed.replies
            assert replies is not None
            await eventually(lambda: len(replies.calls) <= is_direct, "no call is left")
            await eventually(lambda: caller.is_connected and client.is_connected, "both are back")
            assert await caller.call("wild", "at_once", timeout_s=10, n=1) == 1
    assert stage.ends["answered"] > ROUNDS
    print(stage.ends)  # noqa: T201  # shown where the test fails
