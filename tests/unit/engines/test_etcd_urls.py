"""The URLs of etcd: which are taken, and that none is told of with a password."""

from __future__ import annotations

import asyncio
import traceback
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="the extra [etcd] is not installed")

from cogwork.engines.etcd import EtcdHost
from cogwork.engines.etcd.gateway import Gateway
from cogwork.engines.shared.server import ServerDown
from cogwork.plugin.engine.contract import EngineContext

USER = "http://root:s3cret@"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (USER + "127.0.0.1:99999", "127.0.0.1:99999"),
        (USER + "127.0.0.1:23x79", "127.0.0.1:23x79"),
        (USER + "127.0.0.1:0", "127.0.0.1:0"),
        (USER + "[::1:2379", "[::1:2379"),
        (USER + "", ""),
        ("http://root:s3/cret@127.0.0.1:2379", "127.0.0.1:2379"),
        ("http://root:s3,cret@127.0.0.1:2379", "this"),
        ("ftp://127.0.0.1", "ftp://127.0.0.1"),
        ("http://127.0.0.1:1,http://127.0.0.1:x", "http://127.0.0.1:x"),
    ],
)
def test_a_url_that_is_none_is_refused_without_its_password(url: str, shown: str) -> None:
    with pytest.raises(ValueError, match="url is like") as told:
        EtcdHost(EngineContext({"url": url}))
    assert str(told.value) == f"url is like http://localhost:2379, not {shown!r}"
    assert "s3" not in "".join(traceback.format_exception_only(told.value))


@pytest.mark.parametrize(
    "url", [USER + "127.0.0.1:1", "http://127.0.0.1:1," + USER + "127.0.0.1:2"]
)
def test_a_user_in_two_places_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="user stands in url, too"):
        EtcdHost(EngineContext({"url": url, "user": "root", "password": "s3cret"}))


@pytest.mark.parametrize("call", ["ask", "watch"])
def test_what_the_library_says_of_a_url_is_not_passed_on(call: str) -> None:
    async def story() -> None:
        gateway = Gateway([USER + "127.0.0.1:99999"], None, None)
        arguments: tuple[Any, ...] = ("kv/range", {}) if call == "ask" else ({},)
        with pytest.raises(ServerDown) as told:
            await getattr(gateway, call)(*arguments)
        await gateway.close()
        assert "s3cret" not in str(told.value)
        assert told.value.__suppress_context__, "a trace has no more of it"

    asyncio.run(story())


@pytest.mark.parametrize("call", ["ask", "watch"])
def test_a_redirect_is_not_followed_with_what_a_request_holds(call: str) -> None:
    async def story() -> None:
        asked: list[bytes] = []

        async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(await reader.read(1))
            writer.close()

        async def redirecting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            head = f"HTTP/1.1 307 Go\r\nLocation: {place(other)}/v3/kv\r\nContent-Length: 0\r\n\r\n"
            writer.write(head.encode())
            await writer.drain()
            writer.close()

        def place(server: asyncio.Server) -> str:
            return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

        async with (
            await asyncio.start_server(elsewhere, "127.0.0.1", 0) as other,
            await asyncio.start_server(redirecting, "127.0.0.1", 0) as server,
        ):
            gateway = Gateway([place(server)], None, ("root", "s3cret"))
            arguments: tuple[Any, ...] = ("kv/range", {}) if call == "ask" else ({},)
            with pytest.raises(ServerDown, match="redirects to another place"):
                await getattr(gateway, call)(*arguments)
            await gateway.close()
        assert not asked

    asyncio.run(story())
