"""Direct calls to a topic: a busy server holds none of them while an idle one waits."""

from __future__ import annotations

import asyncio

from call_ends import caller_of, server_of

import cogwork

from .stories import eventually, story

CALLS = 12
TIMEOUT_S = 20.0


class Workers:
    """Two servers of a topic, one of which is kept at work; each does one call at a time."""

    def __init__(self, url: str) -> None:
        self.gate = asyncio.Event()
        self.done: list[str] = []
        self._url = url

    def serve(self, client: cogwork.Client, name: str) -> cogwork.rpc.Service:
        service = server_of(client.service("rooms", server=name, concurrency=1, direct=True))

        @service.method
        async def block() -> None:
            await self.gate.wait()

        @service.method
        async def work() -> str:
            self.done.append(name)
            return name

        return service


@story
async def test_a_busy_server_holds_no_call_while_an_idle_one_waits(url: str) -> None:
    workers = Workers(url)
    async with (
        cogwork.connect(url) as client,
        cogwork.connect(url, direct=True) as caller,
        workers.serve(client, "a") as busy,
        workers.serve(client, "b"),
    ):
        directory = caller_of(caller).directory
        assert directory is not None
        await eventually(lambda: len(directory) == 2, "both are known")
        for name in ("a", "b"):  # the ways to both stand
            assert await caller.call("rooms", "work", server=name) == name
        blocked = asyncio.create_task(caller.call("rooms", "block", server="a", timeout_s=60))
        await eventually(lambda: busy.running == 1, "one server is at work")
        calls = [caller.call("rooms", "work", timeout_s=TIMEOUT_S) for _ in range(CALLS)]
        assert set(await asyncio.gather(*calls)) == {"b"}
        for _ in range(CALLS):
            assert await caller.call("rooms", "work", timeout_s=TIMEOUT_S) == "b"
        workers.gate.set()
        await blocked


@story
async def test_what_finds_all_busy_goes_to_the_first_that_has_room(url: str) -> None:
    workers = Workers(url)
    async with (
        cogwork.connect(url) as client,
        cogwork.connect(url, direct=True) as caller,
        workers.serve(client, "a") as one,
        workers.serve(client, "b") as other,
    ):
        directory = caller_of(caller).directory
        assert directory is not None
        await eventually(lambda: len(directory) == 2, "both are known")
        for name in ("a", "b"):
            assert await caller.call("rooms", "work", server=name) == name
        blocked = [
            asyncio.create_task(caller.call("rooms", "block", server=name, timeout_s=60))
            for name in ("a", "b")
        ]
        await eventually(lambda: one.running == other.running == 1, "both are at work")
        calls = [
            asyncio.create_task(caller.call("rooms", "work", timeout_s=TIMEOUT_S))
            for _ in range(CALLS)
        ]
        await asyncio.sleep(0.2)
        blocked[0].cancel()  # one of them gets through with its work
        assert set(await asyncio.gather(*calls)) == {"a"}
        workers.gate.set()
        await blocked[1]
