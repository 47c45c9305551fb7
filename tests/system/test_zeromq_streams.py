"""Replies in parts across protocols: ZeroMQ programs and Cogwork's RPC."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

import cogwork
from cogwork.rpc import BadReply, RemoteError, ServerLost

from .stories import eventually, story
from .zeromq_mesh import Client, Gateway, gateway

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

T = TypeVar("T")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One container for all tests."""
    with gateway(tmp_path_factory.mktemp("zeromq-streams") / "container") as found:
        yield found


def threaded(work: Callable[[], T]) -> Awaitable[T]:
    """Do something that blocks, while the event loop goes on."""
    return asyncio.get_running_loop().run_in_executor(None, work)


async def becomes(running: Gateway, **figures: int) -> None:
    """Wait until figures of the gateway are as given."""
    await threaded(lambda: running.becomes(**figures))


async def said(client: Client, verb: str) -> Any:  # frames
    """Return the next message, which is of this verb; sign of life are passed over."""
    while (frames := await threaded(client.receive)).verb == "BEAT" != verb:
        pass
    assert frames.verb == verb, frames
    return frames


class Numbers:
    """A service that yields numbers, and notes how far it got."""

    def __init__(self, mesh: cogwork.Client, topic: str) -> None:
        self.service = mesh.service(topic, grace_s=0.1)
        self.given = 0
        self.is_over = False

        @self.service.method
        async def count(to: int) -> AsyncIterator[int]:
            try:
                for n in range(to):
                    self.given += 1
                    yield n
            finally:
                self.is_over = True

        @self.service.method
        async def fail() -> AsyncIterator[int]:
            yield 0
            raise KeyError("no more")

        @self.service.method
        async def pause() -> AsyncIterator[int]:
            yield 0
            await asyncio.sleep(1.5)
            yield 1

        @self.service.method
        async def whole() -> int:
            return 7


def stream(client: Client, name: int | str, topic: str, subject: str, **header: object) -> None:
    """Ask for a reply in parts."""
    body = header.pop("body", {})
    sent = {"id": name, "to": f"rpc/{topic}", "subject": subject, "timeout_s": 5, **header}
    client.send("STREAM", sent, body)


@story
async def test_a_zeromq_program_takes_parts_as_it_has_room(running: Gateway) -> None:
    caller = running.client()
    async with cogwork.connect(running.url) as mesh:
        numbers = Numbers(mesh, "parts")
        async with numbers.service:
            stream(caller, "s", "parts", "count", body={"to": 5}, credit=2)
            parts = [await said(caller, "PART") for _ in range(2)]
            assert [(each.header["seq"], each.body) for each in parts] == [(0, 0), (1, 1)]
            await asyncio.sleep(0.3)
            assert numbers.given <= 3  # one waits for room
            caller.send("MORE", {"id": "s", "credit": 9})
            rest = [await said(caller, "PART") for _ in range(3)]
            assert [each.body for each in rest] == [2, 3, 4]
            assert (await said(caller, "END")).header == {"id": "s", "count": 5}
    await becomes(running, streams=0, under_way=0)


@story
async def test_the_examples_take_parts(running: Gateway) -> None:
    caller = running.client()
    async with cogwork.connect(running.url) as mesh:
        numbers = Numbers(mesh, "example")
        async with numbers.service:
            asked = {"subject": "count", "credit": 4}
            found = await threaded(lambda: [*caller.stream("rpc/example", {"to": 300}, **asked)])
            assert found == [*range(300)]
            parts = caller.stream("rpc/example", {"to": 300}, **asked)
            assert await threaded(lambda: next(parts)) == 0
            numbers.is_over = False
            parts.close()
            await eventually(lambda: numbers.is_over, "the work is cancelled")


@story
async def test_a_zeromq_program_leaves_a_stream(running: Gateway) -> None:
    caller = running.client()
    async with cogwork.connect(running.url) as mesh:
        numbers = Numbers(mesh, "left")
        async with numbers.service:
            stream(caller, 1, "left", "count", body={"to": 10**6}, credit=3)
            await said(caller, "PART")
            caller.send("CANCEL", {"id": 1})
            await eventually(lambda: numbers.is_over, "the work is cancelled")
            gone = running.client()
            numbers.is_over = False
            stream(gone, 1, "left", "count", body={"to": 10**6}, credit=3, timeout_s=1)
            await said(gone, "PART")
            gone.send("BYE", {})
            await eventually(lambda: numbers.is_over, "the work ends with the session")
    await becomes(running, streams=0, under_way=0)


@story
async def test_streams_end_with_an_error_or_as_a_whole(running: Gateway) -> None:
    caller = running.client()
    async with cogwork.connect(running.url) as mesh:
        numbers = Numbers(mesh, "errors")
        async with numbers.service:
            stream(caller, 1, "errors", "fail")
            await said(caller, "PART")
            error = await said(caller, "ERROR")
            assert (error.header["id"], error.header["type"]) == (1, "builtins.KeyError")
            stream(caller, 2, "errors", "whole")
            assert (await said(caller, "PART")).body == 7
            assert (await said(caller, "END")).header["count"] == 1
            stream(caller, 3, "errors", "pause", timeout_s=0.9)  # heartbeats and notes bridge it
            assert [(await said(caller, "PART")).body for _ in range(2)] == [0, 1]
            await said(caller, "END")
            stream(caller, 4, "errors", "count", body={"to": 9}, credit=1)
            stream(caller, 4, "errors", "count", body={"to": 9}, credit=1)
            assert "under way already" in (await said_error(caller)).header["text"]
            stream(caller, 5, "errors", "count", body={"to": 9}, credit=0)
            assert "credit" in (await said_error(caller)).header["text"]
            caller.send("CANCEL", {"id": 4})
            stream(caller, 6, "nobody", "count", body={"to": 9}, timeout_s=0.4)
            assert (await said_error(caller)).header["code"] == "unreachable"


async def said_error(client: Client) -> Any:  # frames
    """Return the next ERROR, whatever comes before."""
    while (frames := await threaded(client.receive)).verb != "ERROR":
        pass
    return frames


@story
async def test_an_amqp_client_takes_parts_of_a_zeromq_program(running: Gateway) -> None:
    service = running.client()
    service.register("rpc/lines")

    def give(count: int) -> list[str]:
        request = service.receive()
        assert request.verb == "REQUEST"
        number, room = request.header["id"], request.header["credit"]
        assert request.header["stream_s"] > 0
        heard = []
        for n in range(count):
            while n >= room:
                told = service.receive()
                heard.append(told.verb)
                room = told.header["credit"]
            service.send("PART", {"id": number}, {"line": n})
        service.send("END", {"id": number})
        return heard

    async with cogwork.connect(running.url) as mesh:
        given = asyncio.ensure_future(threaded(lambda: give(50)))
        found = [
            part["line"]
            async for part in mesh.call_stream("lines", "console", window=4, timeout_s=5)
        ]
        assert found == [*range(50)]
        assert set(await given) == {"MORE"}
    await becomes(running, streams=0, outstanding=0)


@story
async def test_a_zeromq_program_that_gives_parts_hears_that_nobody_waits(running: Gateway) -> None:
    service = running.client()
    service.register("rpc/leave")
    async with cogwork.connect(running.url) as mesh:

        async def take_one() -> None:
            async with mesh.call_stream("leave", "console", timeout_s=5) as parts:
                async for part in parts:
                    assert part == 0
                    return

        taking = asyncio.create_task(take_one())
        number = (await said(service, "REQUEST")).header["id"]
        service.send("PART", {"id": number}, 0)
        await taking
        assert (await said(service, "CANCEL")).header["id"] == number
        service.send("PART", {"id": number}, 1)
        service.send("END", {"id": number})
    await becomes(running, streams=0, outstanding=0)


@story
async def test_what_a_zeromq_program_does_wrong_with_parts(running: Gateway) -> None:
    service = running.client()
    service.register("rpc/wrong")
    async with cogwork.connect(running.url) as mesh:

        async def all_parts(**options: Any) -> list[object]:  # passed on
            return [part async for part in mesh.call_stream("wrong", "console", **options)]

        taking = asyncio.create_task(all_parts(window=1, timeout_s=5))
        number = (await said(service, "REQUEST")).header["id"]
        for n in range(2):
            service.send("PART", {"id": number}, n)
        told = [await threaded(service.receive) for _ in range(2)]
        assert sorted(each.verb for each in told) in (["ERROR", "MORE"], ["MORE", "MORE"])
        service.send("FAIL", {"id": number, "type": "KeyError", "text": "no line"})
        with pytest.raises(RemoteError, match="no line"):
            await taking
        calling = asyncio.create_task(mesh.call("wrong", "start", timeout_s=5))
        number = (await said(service, "REQUEST")).header["id"]
        service.send("PART", {"id": number}, 0)
        assert (await said_error(service)).header["code"] == "not-allowed"
        service.send("REPLY", {"id": number}, 1)
        assert await calling == 1
        taking = asyncio.create_task(all_parts(timeout_s=5))
        number = (await said(service, "REQUEST")).header["id"]
        service.send("REPLY", {"id": number}, 1)
        with pytest.raises(BadReply):
            await taking
        taking = asyncio.create_task(all_parts(timeout_s=0.4))
        number = (await said(service, "REQUEST")).header["id"]
        with pytest.raises(ServerLost):
            await taking
        service.send("FAIL", {"id": number})
    await becomes(running, streams=0, outstanding=0)
