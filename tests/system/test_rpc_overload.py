"""More calls than a service can do: what it answers is in time, and nothing begins too late."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from call_ends import server_of

import cogwork
from cogwork.rpc import current_call

from .stories import eventually, story

if TYPE_CHECKING:
    from cogwork.rpc.serving.service import Service

DEADLINE_S = 0.5
OVERLOAD = 2.5


@dataclass
class Tally:
    """What was begun, answered and refused; times are the process's own, which both ends share."""

    slots: int
    begun: int = 0
    late: list[float] = field(default_factory=list)
    busy_s: float = 0.0
    answered: int = 0
    answered_late: int = 0
    failed: dict[str, int] = field(default_factory=dict)

    def begin(self, until_s: float) -> float:
        now_s = time.monotonic()
        self.begun += 1
        if now_s > until_s:
            self.late.append(now_s - until_s)
        return now_s

    async def call(self, client: cogwork.Client) -> None:
        began_s = time.monotonic()
        until_s = began_s + DEADLINE_S
        try:
            await client.call("busy", "work", until_s=until_s, timeout_s=DEADLINE_S)
        except cogwork.CogworkError as error:
            name = type(error).__name__
            self.failed[name] = self.failed.get(name, 0) + 1
        else:
            self.answered += 1


def serve(client: cogwork.Client, kind: str, work_s: float, tally: Tally) -> Service:
    """Make a service that is at work for so long with each call."""
    make = client.threaded_service if kind == "threads" else client.service
    service = server_of(make("busy", server=client.name, concurrency=tally.slots))

    if kind == "tasks":

        @service.method
        async def work(until_s: float) -> None:
            began_s = tally.begin(until_s)
            try:
                await asyncio.sleep(work_s)
            finally:
                tally.busy_s += time.monotonic() - began_s
    else:

        @service.method(name="work")
        def work_on(until_s: float) -> None:
            began_s = tally.begin(until_s)
            time.sleep(work_s)
            tally.busy_s += time.monotonic() - began_s

    return service


async def flood(meshes: list[cogwork.Client], tally: Tally, rate: float, calls: int) -> None:
    """Call at a rate, whatever becomes of the calls before."""
    tasks: list[asyncio.Task[None]] = []
    began_s = time.monotonic()
    while len(tasks) < calls:
        due = min(calls, int((time.monotonic() - began_s) * rate) + 1)
        tasks += [
            asyncio.create_task(tally.call(meshes[number % len(meshes)]))
            for number in range(len(tasks), due)
        ]
        await asyncio.sleep(0.005)
    await asyncio.gather(*tasks)


@pytest.mark.parametrize(
    ("kind", "slots", "work_s", "callers"),
    [("tasks", 4, 0.05, 1), ("tasks", 8, 0.1, 5), ("threads", 4, 0.05, 2), ("plain", 1, 0.02, 3)],
)
@story
async def test_a_flood_does_not_keep_a_service_from_its_work(
    url: str, kind: str, slots: int, work_s: float, callers: int
) -> None:
    """Four fifths of what is begun is answered, and what can be done is done.

    What is compared is counted in the same run: a slow machine has less to count.
    """
    tally = Tally(slots)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(cogwork.connect(url))
        await stack.enter_async_context(serve(client, kind, work_s, tally))
        meshes = [await stack.enter_async_context(cogwork.connect(url)) for _ in range(callers)]
        rate = OVERLOAD * slots / work_s
        began_s = time.monotonic()
        await flood(meshes, tally, rate, calls=round(rate * 3))
        took_s = time.monotonic() - began_s
    # A message in a socket gets older, and nobody counts that: on a loaded machine it shows.
    assert len(tally.late) <= 0.05 * tally.begun, tally
    mean_s = tally.busy_s / tally.begun
    capacity = slots * took_s / mean_s
    assert tally.answered >= 0.8 * tally.begun, (tally, capacity)
    assert tally.begun >= 0.5 * capacity, (tally, capacity)


@story
async def test_a_call_knows_how_long_its_caller_still_waits(url: str) -> None:
    """Also when it has waited with its caller, and in the container."""
    gate = asyncio.Event()
    found: list[tuple[float, float]] = []
    async with cogwork.connect(url) as client, cogwork.connect(url) as caller:
        service = server_of(client.service("clocks", concurrency=1))

        @service.method
        async def hold() -> None:
            await gate.wait()

        @service.method
        async def remaining(until_s: float) -> None:
            found.append((current_call().remaining_s or 0.0, until_s - time.monotonic()))

        async with service:
            holding = asyncio.create_task(caller.call("clocks", "hold", timeout_s=30))
            await eventually(lambda: service.running == 1, "the server is busy")
            until_s = time.monotonic() + 40
            calls = [
                asyncio.create_task(
                    caller.call("clocks", "remaining", until_s=until_s, timeout_s=40)
                )
                for _ in range(100)
            ]
            await asyncio.sleep(0.5)
            assert not found
            gate.set()
            await asyncio.gather(holding, *calls)
    assert len(found) == 100
    for said_s, is_s in found:
        assert said_s <= is_s + 0.25, "the half second that it has waited is gone"
        assert said_s >= is_s - 5.0


@story
async def test_a_call_that_timed_out_is_cancelled_at_the_server(url: str) -> None:
    ended = asyncio.Event()
    async with cogwork.connect(url) as client, cogwork.connect(url) as caller:
        service = server_of(client.service("slow"))

        @service.method
        async def sleep() -> None:
            current_call()._deadline_s = None  # the server does not look at the clock
            try:
                await asyncio.sleep(50)
            finally:
                ended.set()

        async with service:
            request_queue = service.request_queue

            def nothing_is_due(*_: object) -> int:
                return 0

            service.wheel.add = nothing_is_due  # type: ignore[method-assign,assignment]  # for this test
            with pytest.raises(cogwork.CallTimeout):
                await caller.call("slow", "sleep", timeout_s=0.3)
            async with asyncio.timeout(30):
                await ended.wait()
            assert request_queue.running == 0
