"""Calls without a hop: how servers are met, and what happens where one cannot be reached."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

import pytest
import trustme
from call_ends import caller_of, server_of

import cogwork
from cogwork.bench.servers.process import free_ports
from cogwork.client.call_options import Direct
from cogwork.io.tls import TlsFiles, client_context, server_context
from cogwork.rpc.direct.meeting import here, matchmaker
from cogwork.testing import container

from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cogwork.rpc import Service
    from cogwork.rpc.direct.directory import Directory


def directory_of(client: cogwork.Client) -> Directory:
    directory = caller_of(client).directory
    assert directory is not None
    return directory


async def knows(client: cogwork.Client, count: int) -> None:
    """Wait until a caller knows so many servers."""
    await eventually(lambda: len(directory_of(client)) == count, f"{count} servers are known")


def is_direct(client: cogwork.Client, service: Service) -> bool:
    """Return whether a call to the service would go directly."""
    return directory_of(client).at_hand(service.address) is not None


def routed_requests(client: cogwork.Client) -> int:
    """Count the links on which a caller has sent through the mesh."""
    return len(caller_of(client).routed.targets)


def served(
    client: cogwork.Client, topic: str, server: str, direct: Direct | bool | None = None
) -> Service:
    """Make a service with methods of all sorts."""
    service = server_of(client.service(topic, server=server, grace_s=0.1, direct=direct))

    @service.method
    async def name() -> str:
        return server

    @service.method
    async def sleep() -> None:
        await asyncio.sleep(30)

    @service.method
    async def count(to: int) -> AsyncIterator[int]:
        for n in range(to):
            yield n

    @service.method
    def fail() -> None:
        raise KeyError("k")

    return service


@story
async def test_the_first_call_goes_directly_to_an_announced_server(url: str) -> None:
    async with cogwork.connect(url) as client, cogwork.connect(url, direct=True) as caller:
        await asyncio.sleep(0.1)
        async with served(client, "first", "a", direct=True) as service:
            await knows(caller, 1)
            assert await caller.call("first", "name", server="a") == "a"
            assert await caller.call("first", "name") == "a"
            assert routed_requests(caller) == 0
            assert is_direct(caller, service)
            assert [n async for n in caller.call_stream("first", "count", to=300)] == [*range(300)]
            with pytest.raises(cogwork.RemoteError, match="KeyError"):
                await caller.call("first", "fail")
            with pytest.raises(cogwork.NoSuchMethod):
                await caller.call("first", "none")
            assert routed_requests(caller) == 0
        await knows(caller, 0)


@story
async def test_a_caller_that_comes_later_asks_who_is_there(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        served(client, "later", "a", direct=True),
        served(client, "later", "b", direct=True),
        cogwork.connect(url, direct=True) as caller,
    ):
        await knows(caller, 2)
        found = [await caller.call("later", "name") for _ in range(6)]
        assert sorted(found) == ["a", "a", "a", "b", "b", "b"]
        assert routed_requests(caller) == 0


@story
async def test_each_exchange_has_a_matchmaker_of_its_own(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        server_of(client.service("topic", server="a", exchange="nova", direct=True)) as service,
        client.service("topic", server="a", exchange="glance", direct=True),
        cogwork.connect(url, direct=True) as caller,
    ):

        @service.method
        def name() -> str:
            return "nova's"

        with pytest.raises(cogwork.NoSuchMethod):
            await caller.call("topic", "name", exchange="glance")  # it makes itself heard of there
        await knows(caller, 1)
        assert not is_direct(caller, service)
        assert await caller.call("topic", "name", exchange="nova") == "nova's"
        await knows(caller, 2)
        assert await caller.call("topic", "name", exchange="nova") == "nova's"
        assert is_direct(caller, service)
        async with server_of(
            client.service("other", server="b", exchange="nova", direct=True)
        ) as other:
            await knows(caller, 3)
            sent = routed_requests(caller)
            with pytest.raises(cogwork.NoSuchMethod):
                await caller.call("other", "name", exchange="nova")
            assert routed_requests(caller) == sent
            assert is_direct(caller, other)


@story
async def test_virtual_hosts_never_meet_each_others_servers() -> None:
    names = ("blue", "red")
    with container("".join(f'[[vhost]]\nname = "{name}"\n' for name in names)) as base:
        async with AsyncExitStack() as stack:

            async def connected(vhost: str, *, direct: bool = False) -> cogwork.Client:
                return await stack.enter_async_context(
                    cogwork.connect(f"{base}/{vhost}", direct=direct)
                )

            callers = {name: await connected(name, direct=True) for name in names}
            services = {
                name: await stack.enter_async_context(
                    served(await connected(name), "same", name, direct=True)
                )
                for name in names
            }
            for name, caller in callers.items():
                await knows(caller, 1)
                assert await caller.call("same", "name") == name
                assert is_direct(caller, services[name])
                assert routed_requests(caller) == 0
            late = await connected("red", direct=True)
            await knows(late, 1)
            assert await late.call("same", "name") == "red"
            with pytest.raises(cogwork.Unreachable):
                await late.call("same", "name", server="blue", timeout_s=0.2)
            assert [len(directory_of(caller)) for caller in (*callers.values(), late)] == [1, 1, 1]


@story
async def test_fast_direct_calls_leave_others_their_turn(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        server_of(client.service("fast", server="a", direct=True)) as service,
        cogwork.connect(url, direct=Direct(spin_us=10_000)) as caller,
    ):

        @service.method
        def echo(n: int) -> int:
            return n

        await knows(caller, 1)
        turns = 0

        async def count_turns() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        counting = asyncio.create_task(count_turns())
        assert [await caller.call("fast", "echo", n=n) for n in range(100)] == [*range(100)]
        counting.cancel()
        assert turns >= 100


@story
async def test_the_first_reply_says_where_the_server_is(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        cogwork.connect(url, direct=True) as caller,
        served(client, "met", "a", direct=True) as service,
    ):
        directory = directory_of(caller)
        tasks = directory._tasks.values()
        for task in tasks:
            task.cancel()  # it hears no announcements
        await asyncio.gather(*tasks, return_exceptions=True)
        directory._forget(service.address)
        assert await caller.call("met", "name", server="a") == "a"
        assert routed_requests(caller) == 1
        assert len(directory) == 1
        assert await caller.call("met", "name", server="a") == "a"
        assert is_direct(caller, service)


@story
async def test_a_killed_server_is_in_doubt_and_others_take_over(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        cogwork.connect(url, direct=True) as caller,
        served(client, "killed", "a", direct=True) as first,
        served(client, "killed", "b", direct=True) as second,
    ):
        await knows(caller, 2)
        assert {await caller.call("killed", "name") for _ in range(4)} == {"a", "b"}
        waiting = asyncio.create_task(caller.call("killed", "sleep", server="a", timeout_s=20))
        await eventually(lambda: first.running == 1, "it is under work")
        assert first._door is not None
        for connection in list(first._door._listener._connections):
            connection.lose()
        first._door._listener.close()
        with pytest.raises(cogwork.InDoubt, match="may have been handled"):
            await waiting
        await eventually(lambda: first.running == 0, "the caller that has gone is noticed")
        # The port is closed: what is for it goes through the mesh, at once.
        async with asyncio.timeout(30):
            assert await caller.call("killed", "name", server="a") == "a"
        assert {await caller.call("killed", "name") for _ in range(4)} <= {"a", "b"}
        assert await caller.call("killed", "name", server="b") == "b"
        assert is_direct(caller, second)


@story
async def test_servers_that_cannot_be_reached_are_called_through_the_mesh(url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for port in (silent.getsockname()[1], free_ports(1)[0]):
            async with (
                cogwork.connect(url) as client,
                cogwork.connect(url, direct=True) as caller,
                served(client, "walled", "a"),
            ):
                told = here("exclusive/rpc/walled/a", f"amqp://direct:x@127.0.0.1:{port}")
                directory_of(caller).learn(told)
                async with asyncio.timeout(30):
                    for _ in range(5):
                        assert await caller.call("walled", "name", server="a") == "a"


@story
async def test_servers_that_died_without_a_word_are_forgotten(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cogwork.rpc.direct.directory.IDLE_S", 0.1)
    monkeypatch.setattr("cogwork.rpc.direct.directory.SILENT_S", 0.5)
    async with (
        cogwork.connect(url) as client,
        cogwork.connect(url, direct=True) as caller,
        served(client, "mortal", "alive"),
        served(client, "mortal", "untried", direct=True),
    ):
        await knows(caller, 1)
        for server in ("dead", "alive"):
            port = free_ports(1)[0]
            told = here(f"exclusive/rpc/mortal/{server}", f"amqp://direct:x@127.0.0.1:{port}")
            directory_of(caller).learn(told)
            with suppress(cogwork.Unreachable, cogwork.CallTimeout):
                await caller.call("mortal", "name", server=server, timeout_s=0.1)
        assert len(directory_of(caller)) == 3
        for _ in range(10):
            directory_of(caller).learn(told)  # as its replies do
            await asyncio.sleep(0.1)
        assert len(directory_of(caller)) == 2
        await knows(caller, 1)
        assert await caller.call("mortal", "name", server="untried") == "untried"


@story
async def test_leaving_a_direct_call_cancels_the_work(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        cogwork.connect(url, direct=True) as caller,
        served(client, "left", "a", direct=True) as service,
    ):
        await knows(caller, 1)
        with pytest.raises(cogwork.CallTimeout):
            await caller.call("left", "sleep", timeout_s=0.1)
        await eventually(lambda: service.running == 0, "the deadline ends it")
        call = asyncio.create_task(caller.call("left", "sleep"))
        await eventually(lambda: service.running == 1, "it is under work")
        call.cancel()
        await eventually(lambda: service.running == 0, "leaving ends it")
        async for n in caller.call_stream("left", "count", to=10**9):
            if n == 200:
                break
        await eventually(lambda: service.running == 0, "leaving a stream ends it, too")
        assert routed_requests(caller) == 0


@story
async def test_nobody_is_let_in_without_the_secret(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        client.subscribe(matchmaker(caller_of(client).options, None)) as news,
        served(client, "secret", "a", direct=True),
    ):
        told = (await anext(news)).properties["cogwork:direct"]
        assert isinstance(told, str)
        where = told.rpartition("@")[2]
        for user in ("", "direct:wrong@", "direct:@"):
            with pytest.raises(cogwork.AuthenticationError):
                async with cogwork.connect(f"amqp://{user}{where}"):
                    raise AssertionError("it was let in")
        async with cogwork.connect(told) as friend:
            with pytest.raises(cogwork.NotFound, match="not served here"):
                await friend.publisher("exclusive/rpc/other/a").open()
            with pytest.raises(cogwork.NotFound, match="dynamic"):
                await friend.subscribe("topic/x").open()
            assert await friend.call("secret", "name") == "a"


@story
async def test_a_secret_never_travels_in_clear(url: str) -> None:
    with pytest.raises(ValueError, match="needs tls"):
        Direct(host="198.51.100.7")
    with pytest.raises(ValueError, match="advertise"):
        Direct(host="0.0.0.0")
    async with cogwork.connect(url, direct=True) as caller:
        for where in ("amqp://direct:x@198.51.100.7:1", "ws://direct:x@198.51.100.7:1", "nonsense"):
            directory_of(caller).learn(here("exclusive/rpc/clear/a", where))
        assert len(directory_of(caller)) == 0
        directory_of(caller).learn(here("unicast/rpc/clear", "amqps://direct:x@198.51.100.7:1"))
        assert len(directory_of(caller)) == 0


def test_direct_calls_over_tls(url: str, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    issued = authority.issue_cert("localhost")
    issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "own.pem"))
    asyncio.run(_over_tls(url, tmp_path))


async def _over_tls(url: str, folder: Path) -> None:
    tls = server_context(TlsFiles(certificate=folder / "own.pem"))
    direct = Direct(host="0.0.0.0", tls=tls, advertise="localhost")
    trusting = client_context(folder / "ca.pem")
    async with (
        cogwork.connect(url) as client,
        cogwork.connect(url, direct=True, tls=trusting) as caller,
        cogwork.connect(url, direct=True) as stranger,
        served(client, "tls", "a", direct=direct) as service,
    ):
        callers = (caller, stranger)
        await eventually(
            lambda: all(len(directory_of(each)) == 1 for each in callers), "it is known"
        )
        for each in callers:
            assert await each.call("tls", "name", server="a") == "a"
        assert is_direct(caller, service)
        assert not is_direct(stranger, service)
        assert routed_requests(stranger) == 1
