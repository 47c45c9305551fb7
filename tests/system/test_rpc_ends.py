"""How calls end that could be left, told, or begun a second time."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from call_ends import caller_of, server_of

import cogwork
from cogwork.dataplane.message.messages import Message
from cogwork.rpc.errors import ReplyTooLarge
from cogwork.testing import container

from .stories import eventually, story

if TYPE_CHECKING:
    from cogwork.rpc.serving.service import Service

NO_UTF8 = "\udcff: no such report"


class Evasive(Exception):
    """One that does not say what it is."""

    @property
    def condition(self) -> str:
        raise RuntimeError("not now")


def reporting(client: cogwork.Client) -> Service:
    """Make a service whose methods fail with what cannot be sent as it is."""
    service = server_of(client.service("reports", server="one", concurrency=2))

    @service.method
    def plain() -> None:
        raise ValueError(NO_UTF8)

    @service.method
    async def slow() -> None:
        raise ValueError(NO_UTF8)

    @service.method
    async def evasive() -> None:
        raise Evasive

    @service.method
    async def parts() -> object:
        yield 1
        raise ValueError(NO_UTF8)

    return service


@story
async def test_an_error_that_is_no_utf8_is_told_and_nobody_else_waits(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        cogwork.connect(url) as caller,
        reporting(client) as service,
    ):
        for method in ("plain", "slow", "evasive", "plain", "slow"):
            with pytest.raises(cogwork.RemoteError):
                await caller.call("reports", method, timeout_s=10)
        for key in ("a", "b", "c"):
            await caller.cast("reports", "slow", idempotency_key=key)
        parts = aiter(caller.call_stream("reports", "parts", timeout_s=10))
        assert await anext(parts) == 1
        with pytest.raises(cogwork.RemoteError, match="udcff: no such report"):
            await anext(parts)
        await eventually(lambda: service.running == 0, "all have ended")


@story
async def test_a_call_that_was_left_before_it_came_is_not_begun(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    heard: list[str] = []
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(cogwork.connect(url))
        callers = [await stack.enter_async_context(cogwork.connect(url)) for _ in range(5)]
        service = server_of(client.service("crowded", server="one", concurrency=1))
        release = asyncio.Event()

        @service.method
        async def work(number: int) -> None:
            begun.append(number)
            await release.wait()

        note = service._note

        def noted(name: str, *told: Any) -> None:
            note(name, *told)
            heard.append(name)

        monkeypatch.setattr(service, "_note", noted)
        async with service:
            stays = asyncio.create_task(callers[4].call("crowded", "work", number=0))
            await eventually(lambda: service.running == 1, "the first one runs")
            leaving = [
                asyncio.create_task(callers[number % 4].call("crowded", "work", number=number))
                for number in range(1, 13)
            ]
            await eventually(lambda: under_way(callers) == 13, "the others wait in the container")
            assert service.waiting == 0
            for call in leaving:
                call.cancel()
            await asyncio.gather(*leaving, return_exceptions=True)
            await eventually(lambda: heard.count("$cancel") == 12, "that is heard")
            release.set()
            await stays
            await callers[0].call("crowded", "work", number=13)
            assert begun == [0, 13]
            assert service.request_queue.left == 0, "what was left has come"


def under_way(callers: list[cogwork.Client]) -> int:
    """Count the requests that have left their callers."""
    routes = [caller_of(caller).routed for caller in callers]
    calls: list[Any] = [
        call for each in routes if each.replies for call in each.replies.calls.values()
    ]
    return sum(call.post is not None and not call.post.queued for call in calls)


@story
async def test_a_key_outlives_a_direct_connection_that_breaks(url: str) -> None:
    told: list[str] = []
    async with cogwork.connect(url) as client, cogwork.connect(url, direct=True) as caller:
        service = server_of(client.service("paying", server="one", direct=True))

        @service.method
        def hello() -> None:
            """Tell that there is a direct way."""

        @service.method
        async def pay() -> str:
            told.append("begun")
            await asyncio.sleep(0.5)
            told.append("paid")
            return "receipt"

        async with service:
            directory = caller_of(caller).directory
            assert directory is not None
            await caller.call("paying", "hello", server="one")
            await eventually(lambda: bool(directory._peers), "the server is met")
            await caller.call("paying", "hello", server="one")
            (peer,) = directory._peers.values()
            await eventually(lambda: peer.route is not None, "there is a direct way")
            paying = asyncio.create_task(
                caller.call("paying", "pay", server="one", idempotency_key="7", timeout_s=20)
            )
            await eventually(lambda: service.running == 1, "it is under work")
            break_connections(peer.endpoint.port)
            assert await paying == "receipt"
            assert told == ["begun", "paid"]


def break_connections(port: int) -> None:
    """Break this process's connections to a port of this machine."""
    for name in os.listdir("/proc/self/fd"):
        try:
            sock = socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue
        with sock:
            try:
                is_one = sock.family == socket.AF_INET and sock.getpeername()[1] == port
            except OSError:
                continue
            if is_one:
                sock.shutdown(socket.SHUT_RDWR)


@story
async def test_a_result_that_is_too_large_is_kept_under_its_key() -> None:
    runs: list[int] = []
    small = "[limits]\nmax_message_size_bytes = 10000\n"
    with container(small) as url:
        async with cogwork.connect(url) as client, cogwork.connect(url) as caller:
            service = server_of(client.service("large", server="one"))

            @service.method
            def work() -> str:
                runs.append(1)
                return "x" * 20_000

            async with service:
                call = partial(caller.call, "large", "work", server="one", idempotency_key="k")
                for _ in range(2):
                    with pytest.raises(ReplyTooLarge):
                        await call(timeout_s=10)
            assert runs == [1]


@story
async def test_a_doubt_stays_one_where_nobody_is_left_to_ask() -> None:
    with ExitStack() as containers:
        url = containers.enter_context(container())
        async with cogwork.connect(url) as client, cogwork.connect(url) as caller:
            service = server_of(client.service("bank", server="one", grace_s=0.1))

            @service.method
            async def pay() -> None:
                await asyncio.sleep(0.5)

            async with service:
                paying = asyncio.create_task(
                    caller.call("bank", "pay", server="one", idempotency_key="7", timeout_s=2)
                )
                await eventually(lambda: service.running == 1, "it is under work")
                await asyncio.to_thread(containers.close)
                with pytest.raises(cogwork.InDoubt, match="may have been handled"):
                    await paying


@story
async def test_silence_counts_from_when_a_call_was_sent(url: str) -> None:
    async with cogwork.connect(url) as client, cogwork.connect(url) as caller:

        async def serve() -> None:
            await asyncio.sleep(0.9)
            async with client.consume("unicast/rpc/late", credit=10) as requests:
                (request,) = await requests.take(1)
                to, number = request.reply_to, request.message_id
                assert to is not None
                await asyncio.sleep(0.3)
                alive = Message(None, subject="heartbeat", reply_to="exclusive/rpc/late/x")
                for reply in (alive, Message(7)):
                    reply.to, reply.correlation_id = to, number
                    await client.publish(to, reply, settled=True)

        serving = asyncio.create_task(serve())
        assert await caller.call("late", "x", timeout_s=20, heartbeat_s=0.5) == 7
        await serving
