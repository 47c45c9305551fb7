"""What comes and goes over linked containers, again and again, and leaves nothing behind.

Objects are counted by type: what each cycle leaves is there as often as there were cycles. All
containers and clients are in this process. `COGWORK_CHURN_CYCLES=2000` makes a soak test of it.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import pytest

import cogwork
from cogwork.container.federation import queue_federation
from cogwork.container.mesh import reply_routes
from cogwork.container.vhost import virtual_host

from .linked import Linked, linked
from .stories import eventually

if TYPE_CHECKING:
    from cogwork.client import Client

CYCLES = int(os.environ.get("COGWORK_CHURN_CYCLES", "12"))
WARM_UP = 6
"""Cycles before counting: what is made once is there then."""

ROUNDS = 4
"""So many are counted where the first ones leave something."""

TIMEOUT_S = ROUNDS * (30.0 + CYCLES)

LEAVE_S = 10.0
"""So long what is not used any more may take to go."""

Churn: TypeAlias = Callable[[Linked, int], Awaitable[None]]


@pytest.fixture(autouse=True)
def _nothing_is_kept_for_the_log() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable()
    yield
    logging.disable(before)


@pytest.fixture(autouse=True)
def _what_is_idle_goes_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (virtual_host, reply_routes, queue_federation):
        monkeypatch.setattr(module, "IDLE_S", 0.1)
    monkeypatch.setattr("cogwork.rpc.calling.targets.IDLE_S", 0.1)
    monkeypatch.setattr("cogwork.router.mesh.interests.HISTORY_DELTAS_MAX", 1)
    monkeypatch.setattr("cogwork.container.container.SWEEP_TICKS", 1)


def counted() -> Counter[str]:
    """Count the objects of Cogwork's own types."""
    gc.collect()
    types = map(type, gc.get_objects())
    names = (f"{each.__module__}.{each.__qualname__}" for each in types)
    return Counter(name for name in names if name.startswith("cogwork."))


async def at(mesh: Linked, number: int) -> Client:
    """Return the client whose turn it is."""
    return await mesh.client("abc"[number % 3])


async def clients(mesh: Linked, number: int) -> None:
    url = mesh.containers["abc"[number % 3]].endpoints[0]
    async with cogwork.connect(url) as client, client.subscribe("topic/clients.#") as messages:
        await client.publish("topic/clients.x", number)
        await anext(messages)


async def topics(mesh: Linked, number: int) -> None:
    here, there = await at(mesh, number), await at(mesh, number + 1)
    async with here.subscribe(f"topic/{number}.#") as messages:
        await messages.bind(f"also.{number}.*")
        await mesh.settle()
        await there.publish(f"topic/{number}.x", number)
        await anext(messages)
        async with there.publisher(f"topic/also.{number}.x") as publisher:
            await publisher.send(number)
    await there.publish(f"topic/nobody.{number}", number)


async def anycast(mesh: Linked, number: int) -> None:
    here, there = await at(mesh, number), await at(mesh, number + 1)
    async with here.serve(f"service/{number}", lambda request: request.body):
        await mesh.settle()
        assert (await there.request(f"service/{number}", number, timeout_s=5)).body == number
    with suppress(cogwork.Released, cogwork.InDoubt):
        await there.publish(f"unicast/nobody.{number}", number, timeout_s=0.01)


async def queues(mesh: Linked, number: int) -> None:
    here, there = await at(mesh, number), await at(mesh, number + 1)
    queue = {"type": "queue", "name": f"queue/{number}"}
    await here.manage("CREATE", queue, {})
    await here.publish(f"queue/{number}", number)
    await here.publish(f"queue/{number}", number)
    for client in (here, there):
        async with client.consume(f"queue/{number}", credit=1) as items:
            await (await anext(items)).accept()
    for client in (here, there):
        await client.manage("DELETE", queue)


async def rejected(mesh: Linked, number: int) -> None:
    here = await at(mesh, number)
    await here.publish("work/rejected", number)
    async with here.consume("work/rejected", credit=1) as items:
        await (await anext(items)).modify(failed=True)
        await (await anext(items)).release()
        await (await anext(items)).reject("churn")
    async with here.consume("queue/dead-letters", credit=1) as dead:
        for item in await dead.drain():
            await item.accept()


async def streams(mesh: Linked, number: int) -> None:
    here = await at(mesh, number)
    declared = {"type": "stream", "name": f"stream/{number}"}
    await here.manage("CREATE", declared, {"engine": "orb"})
    async with here.stream(str(number)) as stream:
        await stream.append([number, number])
        async for _ in stream.read("first"):
            break
        async with stream.publisher() as publisher:
            publisher.post(number)
    await here.manage("DELETE", declared)


async def calls(mesh: Linked, number: int) -> None:
    here, there = await at(mesh, number), await at(mesh, number + 1)
    service = here.service(f"calls-{number}", server="only")
    service.method(echo)
    async with service:
        await mesh.settle()
        assert await there.call(f"calls-{number}", "echo", value=number, timeout_s=5) == number
        with suppress(cogwork.CogworkError):
            await there.call(f"nobody-{number}", "echo", value=number, timeout_s=0.01)


def echo(value: int) -> int:
    return value


CHURNS = (clients, topics, anycast, queues, rejected, streams, calls)


@pytest.mark.parametrize("churn", CHURNS)
def test_what_comes_and_goes_leaves_nothing(churn: Churn) -> None:
    asyncio.run(asyncio.wait_for(goes_on(churn), TIMEOUT_S))


async def goes_on(churn: Churn) -> None:
    """Have something come and go, and count what it leaves.

    What is made but once may be many objects of a type (a session's `Begin` holds four numbers),
    and two containers have a session for what they first send each other in any round: what leaks
    is left by each.
    """
    async with linked("a-b", "b-c", "a-c") as mesh:
        for number in range(WARM_UP):
            await churn(mesh, number)
        await asyncio.sleep(0.3)
        rounds: list[dict[str, int]] = []
        suspects: set[str] = set()
        while len(rounds) < ROUNDS:
            rounds.append(await left_by(churn, mesh, WARM_UP + len(rounds) * CYCLES))
            left = rounds[-1].keys()
            suspects = suspects & left if len(rounds) > 1 else set(left)
            if not suspects:
                return
        raise AssertionError(f"each round leaves {suspects}: {rounds}")


async def left_by(churn: Churn, mesh: Linked, first: int) -> dict[str, int]:
    """Count what a round of cycles leaves: types of which each second cycle left one."""
    before = counted()
    for number in range(first, first + CYCLES):
        await churn(mesh, number)

    def left() -> dict[str, int]:
        return {name: n for name, n in (counted() - before).items() if n >= CYCLES / 2}

    with suppress(AssertionError):
        await eventually(lambda: not left(), "all has gone", LEAVE_S)
    return left()
