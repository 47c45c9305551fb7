"""Consumers that are killed, or hang, inside a handler that blocks: what they had is known.

Whatever the shape in which an application takes its items, the queue has heard that it has one
before it works on it. What was on the way to it, or waited in its client, is free at once.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cogwork

from .served import Served, served
from .stories import eventually, filled, story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

CLIENT = Path(__file__).parent / "clients" / "handling_client.py"

AHEAD_MAX = 256
"""What may be marked in one go, as the documentation says."""

CONFIGURATION = """
[[address]]
prefix = "work/"
in_doubt = "park"
in_doubt_timeout_s = 0.2
dead_letter = "queue/parked"

[[address]]
prefix = "work/kept/"
in_doubt = "park"
in_doubt_timeout_s = 3600

[[address]]
prefix = "queue/"
in_doubt = "redeliver"
in_doubt_timeout_s = 0.2

[[address]]
prefix = "queue/often/"
in_doubt = "redeliver"
in_doubt_timeout_s = 0.1
maximum_delivery_count = 3
dead_letter = "queue/worn-out"
"""

SHAPES = {
    "iterate": 1,
    "anext": 1,
    "batches": 2,
    "take": 2,
    "drain": 4,
    "awaits": 1,
    "sync": 1,
    "sync-receive": 1,
    "sync-drain": 4,
}
"""How many of four items an application is given at first."""


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One container for all of them."""
    with served(tmp_path_factory.mktemp("handlers"), CONFIGURATION) as running:
        yield running


class Handling:
    """A process that handles items, and what it has said."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.lines = list[str]()

    def said(self, what: str) -> list[str]:
        """Return what it said of items."""
        return [line.split()[1] for line in self.lines if line.startswith(what + " ")]

    async def listen(self) -> None:
        """Take in what it says."""
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            self.lines.append(line.decode().strip())

    async def given(self, count: int) -> None:
        """Wait until its application was given so many items."""
        await eventually(lambda: len(self.said("given")) >= count, f"{count} are given")

    async def kill(self) -> None:
        """End it by SIGKILL, where it has not ended itself."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def handling(
    url: str, address: str, shape: str, *, quick: int = 0, blocks_s: float = 120, credit: int = 100
) -> AsyncIterator[Handling]:
    """Start such a process."""
    arguments = [url, address, shape, str(quick), str(blocks_s), str(credit)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(CLIENT), *arguments, stdout=subprocess.PIPE
    )
    found = Handling(process)
    listening = asyncio.create_task(found.listen())
    try:
        yield found
    finally:
        await found.kill()
        await listening


async def counts(mesh: cogwork.Client, address: str) -> dict[str, int]:
    """Ask the container how the items of a queue stand."""
    reply = await mesh.manage("READ", {"type": "queue", "name": address})
    assert isinstance(reply.body, dict)
    return reply.body


async def has(mesh: cogwork.Client, address: str, name: str, count: int) -> None:
    """Wait until so many items of a queue stand there."""
    async with asyncio.timeout(30):
        while (await counts(mesh, address))[name] != count:
            await asyncio.sleep(0.02)


async def worked_off(mesh: cogwork.Client, address: str, count: int) -> list[cogwork.client.Item]:
    """Take and accept so many items."""
    taken = list[cogwork.client.Item]()
    async with mesh.consume(address, credit=10) as items, asyncio.timeout(30):
        while len(taken) < count:
            item = await anext(items)
            await item.accept()
            taken.append(item)
    return taken


@pytest.mark.parametrize("shape", SHAPES)
@story
async def test_killed_in_its_handler_it_leaves_in_doubt_what_it_was_given(
    container: Served, shape: str
) -> None:
    address = f"work/kept/{shape}"
    async with cogwork.connect(container.url) as mesh:
        await filled(mesh, address, 4)
        async with handling(container.url, address, shape) as client:
            await client.given(1)
            await client.kill()
        left = 4 - SHAPES[shape]
        rest = await worked_off(mesh, address, left)
        await has(mesh, address, "in-doubt", 4 - left)
        assert [item.body for item in rest] == list(range(SHAPES[shape], 4))
        assert [item.delivery_count for item in rest] == [0] * left


@pytest.mark.parametrize("shape", ["iterate", "batches", "drain", "sync"])
@story
async def test_below_work_it_is_parked(container: Served, shape: str) -> None:
    address, count = f"work/{shape}", SHAPES[shape]
    async with cogwork.connect(container.url) as mesh:
        await filled(mesh, address, 4)
        async with handling(container.url, address, shape) as client:
            await client.given(1)
            await client.kill()
        parked = await worked_off(mesh, "queue/parked", count)
        assert sorted(str(item.body) for item in parked) == [str(each) for each in range(count)]
        assert len(await worked_off(mesh, address, 4 - count)) == 4 - count


@pytest.mark.parametrize("shape", ["iterate", "anext", "take", "sync-receive"])
@story
async def test_below_queue_it_is_delivered_again_and_counted(container: Served, shape: str) -> None:
    address = f"queue/{shape}"
    async with cogwork.connect(container.url) as mesh:
        await filled(mesh, address, 1)
        async with handling(container.url, address, shape) as client:
            await client.given(1)
            await client.kill()
        (item,) = await worked_off(mesh, address, 1)
        assert item.delivery_count == 1
        assert not item.first_acquirer


@pytest.mark.parametrize("shape", ["iterate", "awaits", "batches", "sync"])
@story
async def test_an_item_that_kills_its_worker_is_a_dead_letter_in_the_end(
    container: Served, shape: str
) -> None:
    address = f"queue/often/{shape}"
    async with cogwork.connect(container.url) as mesh:
        await filled(mesh, address, 1)
        for attempt in range(3):
            async with handling(container.url, address, shape, blocks_s=-1, credit=1) as client:
                await client.given(1)
                assert client.lines[-1] == f"given 0 {attempt}"
        (dead,) = await worked_off(mesh, "queue/worn-out", 1)
        assert dead.annotations["x-opt-dead-letter-reason"] == "delivery-count-exceeded"
        await has(mesh, address, "depth", 0)


@pytest.mark.parametrize(
    ("shape", "surplus_max"),
    [("iterate/0/256", AHEAD_MAX - 1), ("iterate/0/1", 0), ("iterate/0.001/256", 0)],
)
@story
async def test_no_more_is_marked_than_is_said(
    container: Served, shape: str, surplus_max: int
) -> None:
    """Quick handlers, then one that blocks: what was settled stands, and one is in doubt.

    With those that are marked ahead: for handlers of a millisecond there are none.
    """
    address, quick = f"work/kept/{shape}", 400
    async with cogwork.connect(container.url) as mesh:
        await filled(mesh, address, 2_000)
        async with handling(container.url, address, shape, quick=quick, credit=2_000) as client:
            await client.given(quick + 1)
            # What it had settled before the mark of the next one has gone with that.
            await client.kill()
        async with asyncio.timeout(30):
            while (found := await counts(mesh, address))["unsettled"]:
                await asyncio.sleep(0.02)
    surplus = found["in-doubt"] - 1
    assert found["accepted"] + found["in-doubt"] + found["ready"] == 2_000
    if surplus_max:
        assert found["accepted"] <= quick
        assert surplus <= surplus_max + (quick - found["accepted"])
    else:
        assert found["accepted"] == quick
        assert surplus == 0


SHORT = "[limits]\nidle_timeout_s = 1\n" + CONFIGURATION


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A container that gives up who is silent for a second."""
    with served(tmp_path_factory.mktemp("impatient"), SHORT) as running:
        yield running


@story
async def test_who_comes_back_goes_on_with_what_nobody_else_was_given(impatient: Served) -> None:
    """Also where the item in doubt went back to the queue meanwhile, and was counted."""
    address = "queue/alone"
    async with cogwork.connect(impatient.url) as mesh:
        await filled(mesh, address, 3)
        async with handling(impatient.url, address, "iterate", blocks_s=3, credit=3) as client:
            await client.given(1)
            await has(mesh, address, "doubted", 1)
            await has(mesh, address, "ready", 3)
            await eventually(lambda: len(client.said("done")) == 3, "all are done")
        assert client.said("given") == ["0", "1", "2"]
        await has(mesh, address, "depth", 0)


@pytest.mark.parametrize("shape", ["iterate", "batches"])
@story
async def test_who_comes_back_is_not_given_what_others_have(impatient: Served, shape: str) -> None:
    address, held = f"work/kept/others-{shape}", SHAPES[shape]
    async with cogwork.connect(impatient.url) as mesh:
        await filled(mesh, address, 6)
        async with handling(impatient.url, address, shape, blocks_s=3, credit=4) as client:
            await client.given(1)
            await has(mesh, address, "in-doubt", held)
            others = await worked_off(mesh, address, 6 - held)
            assert [item.delivery_count for item in others] == [0] * (6 - held)
            await eventually(lambda: len(client.said("done")) == held, "it goes on with its own")
            await has(mesh, address, "depth", 0)
        assert client.said("given") == [str(each) for each in range(held)]


@story
async def test_the_synchronous_facade_stays_while_its_handler_blocks(impatient: Served) -> None:
    """Its event loop goes on in a thread of its own."""
    address = "work/kept/sync-blocks"
    async with cogwork.connect(impatient.url) as mesh:
        await filled(mesh, address, 2)
        async with handling(impatient.url, address, "sync", blocks_s=3, credit=2) as client:
            await eventually(lambda: len(client.said("done")) == 2, "both are done")
        assert client.said("given") == ["0", "1"]
        assert (await counts(mesh, address))["doubted"] == 0
