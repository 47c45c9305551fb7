"""Servers that die, and servers that stop: what becomes of what they had, and had not begun."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from typing import Any

import pytest

import cogwork

from .linked import linked
from .stories import eventually, story

SERVER = """
import asyncio, sys
import cogwork

async def main(url, topic, name, concurrency, direct):
    async with cogwork.connect(url, direct=direct) as mesh:
        service = mesh.service(topic, server=name, concurrency=concurrency)

        @service.method
        async def sleep(seconds: float) -> str:
            print("begun", flush=True)
            await asyncio.sleep(seconds)
            return name

        async with service:
            print("ready", flush=True)
            await asyncio.sleep(600)

url, topic, name, concurrency, direct = sys.argv[1:]
asyncio.run(main(url, topic, name, int(concurrency), direct == "direct"))
"""


class Server:
    """A server in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def said(self, word: str) -> None:
        assert self._process.stdout is not None
        async with asyncio.timeout(50):
            line = await self._process.stdout.readline()
        assert line.decode().strip() == word

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)
        await self._process.wait()


async def started(url: str, name: str, *, is_direct: bool = False, is_idle: bool = True) -> Server:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        SERVER,
        url,
        "mortal",
        name,
        "1",
        "direct" if is_direct else "meshed",
        stdout=asyncio.subprocess.PIPE,
    )
    server = Server(process)
    if is_idle:
        try:
            await server.said("ready")
        except BaseException:
            await server.kill()
            raise
    return server


@pytest.mark.parametrize("is_direct", [False, True])
@pytest.mark.parametrize("name", [None, "one"])
@story
async def test_a_server_that_dies_is_told_at_once(
    url: str, name: str | None, is_direct: bool
) -> None:
    async with cogwork.connect(url, direct=is_direct) as caller:
        server = await started(url, "one", is_direct=is_direct)
        try:
            call = asyncio.create_task(
                caller.call("mortal", "sleep", server=name, seconds=500, timeout_s=500)
            )
            await server.said("begun")
            await server.kill()
            async with asyncio.timeout(30):  # of 500
                with pytest.raises(cogwork.InDoubt):
                    await call
        finally:
            await server.kill()


@story
async def test_a_server_elsewhere_that_dies_is_told_at_once() -> None:
    async with linked("a-b") as mesh:
        caller = await mesh.client("a")
        server = await started(mesh.containers["b"].endpoints[0], "one")
        try:
            await mesh.settle()
            call = asyncio.create_task(caller.call("mortal", "sleep", seconds=500, timeout_s=500))
            await server.said("begun")
            await server.kill()
            async with asyncio.timeout(30):
                with pytest.raises(cogwork.InDoubt):
                    await call
        finally:
            await server.kill()


@story
async def test_a_container_that_is_cut_off_with_a_server_is_told_at_once() -> None:
    async with linked("a-b") as mesh:
        begun = asyncio.Event()
        service = (await mesh.client("b")).service("far", server="one", grace_s=0)

        @service.method
        async def sleep() -> None:
            begun.set()
            await asyncio.sleep(500)

        await mesh.enter(service)
        await mesh.settle()
        caller = await mesh.client("a")
        call = asyncio.create_task(caller.call("far", "sleep", timeout_s=500))
        await begun.wait()
        mesh.cut_off("b")
        with pytest.raises(cogwork.InDoubt):
            await call


@story
async def test_a_key_has_a_call_that_its_server_dies_with_made_again(url: str) -> None:
    async with cogwork.connect(url) as caller:
        server = await started(url, "one")
        try:
            call = asyncio.create_task(
                caller.call(
                    "mortal",
                    "sleep",
                    server="one",
                    seconds=1,
                    timeout_s=50,
                    idempotency_key="once",
                )
            )
            await server.said("begun")
            await server.kill()
            server = await started(url, "one", is_idle=False)
            assert await call == "one"
        finally:
            await server.kill()


@pytest.mark.parametrize("is_direct", [False, True])
@story
async def test_what_a_dead_server_had_not_begun_goes_to_another_one(
    url: str, is_direct: bool
) -> None:
    async with cogwork.connect(url, direct=is_direct) as caller:
        server = await started(url, "one", is_direct=is_direct)
        other: Server | None = None
        try:
            calls = [
                asyncio.create_task(caller.call("mortal", "sleep", seconds=0.2, timeout_s=50))
                for _ in range(12)
            ]
            await server.said("begun")
            await server.kill()
            other = await started(url, "two", is_direct=is_direct, is_idle=False)
            found = await asyncio.gather(*calls, return_exceptions=True)
        finally:
            await server.kill()
            if other is not None:
                await other.kill()
    doubtful = [each for each in found if isinstance(each, cogwork.InDoubt)]
    assert len(doubtful) == 1, "the one that had begun"
    assert [each for each in found if each != "two"] == doubtful


@story
async def test_a_busy_server_holds_no_calls_of_an_idle_one(url: str) -> None:
    """Whichever of its links the calls come by that keep it busy."""
    gate = asyncio.Event()
    at: list[str] = []
    async with (
        cogwork.connect(url) as first,
        cogwork.connect(url) as second,
        cogwork.connect(url) as caller,
    ):
        services = [
            mesh.service("shared", server=name, concurrency=2)
            for mesh, name in ((first, "one"), (second, "two"))
        ]
        for service in services:

            @service.method
            async def hold() -> None:
                await gate.wait()

            @service.method
            async def name(service: str = service.server) -> str:
                at.append(service)
                return service

        async with services[0], services[1]:
            holding = [
                asyncio.create_task(caller.call("shared", "hold", server="one", timeout_s=50))
                for _ in range(2)
            ]
            await eventually(lambda: services[0].running == 2, "one server is busy")
            await asyncio.gather(*(caller.call("shared", "name", timeout_s=50) for _ in range(40)))
            assert set(at) == {"two"}
            assert services[0].waiting == 0
            gate.set()
            await asyncio.gather(*holding)
            while set(at) != {"one", "two"}:  # and it is asked again
                await caller.call("shared", "name", timeout_s=50)


@story
async def test_a_server_that_stops_works_off_what_it_has(url: str) -> None:
    async with cogwork.connect(url) as mesh, cogwork.connect(url) as caller:
        service = mesh.service("leaving", server="one", concurrency=1, grace_s=50)
        gate = asyncio.Event()

        @service.method
        async def work(number: int) -> int:
            await gate.wait()
            return number

        async with service:
            calls = [
                asyncio.create_task(caller.call("leaving", "work", server="one", number=number))
                for number in range(5)
            ]
            await eventually(lambda: service.running + service.waiting == 5, "all are there")
            asyncio.get_running_loop().call_later(0.2, gate.set)
        assert await asyncio.gather(*calls) == list(range(5))


@pytest.mark.parametrize("settled", [False, True])
@story
async def test_a_server_that_stops_hands_back_what_it_has_not_begun(
    url: str, settled: bool
) -> None:
    """Only the call that had begun is cancelled, and casts are done elsewhere as well."""
    done: list[int] = []
    async with (
        cogwork.connect(url) as first,
        cogwork.connect(url) as second,
        cogwork.connect(url) as caller,
    ):
        leaving = first.service("moving", server="one", concurrency=1, grace_s=0.1)
        staying = second.service("moving", server="one", concurrency=1)

        @leaving.method(name="work")
        async def never(number: int) -> None:
            await asyncio.sleep(500)

        @staying.method
        async def work(number: int) -> int:
            done.append(number)
            return number

        async with AsyncExitStack() as stack:
            async with leaving:
                options: Any = {"server": "one", "settled": settled, "timeout_s": 50}
                begun = asyncio.create_task(caller.call("moving", "work", number=0, **options))
                await eventually(lambda: leaving.running == 1, "one has begun")
                waiting = [
                    asyncio.create_task(caller.call("moving", "work", number=number, **options))
                    for number in range(1, 4)
                ]
                await caller.cast("moving", "work", number=4, server="one")
                await eventually(lambda: leaving.waiting == 4, "the others wait there")
            await stack.enter_async_context(staying)
            with pytest.raises(cogwork.CallCancelled, match="begun"):
                await begun
            assert await asyncio.gather(*waiting) == [1, 2, 3]
    assert set(done) >= {1, 2, 3}


@story
async def test_what_nobody_takes_up_is_told_as_not_begun(url: str) -> None:
    async with cogwork.connect(url) as mesh, cogwork.connect(url) as caller:
        service = mesh.service("last", server="one", concurrency=1, grace_s=0)

        @service.method
        async def sleep() -> None:
            await asyncio.sleep(500)

        async with service:
            calls = [
                asyncio.create_task(caller.call("last", "sleep", server="one", timeout_s=3))
                for _ in range(2)
            ]
            await eventually(lambda: service.running + service.waiting == 2, "both are there")
        with pytest.raises(cogwork.CallCancelled):
            await calls[0]
        with pytest.raises(cogwork.Released):
            await calls[1]
