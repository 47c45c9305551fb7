"""Calls that are too large, or name no method: refused at once, with bounded work."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest
from call_ends import server_of

import cogwork
from cogwork.testing import container

from .stories import story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

BYTES_MAX = 200_000

CHUNKS = 20_000
"""Of a megabyte each: written whole they would take 20 GB."""

LONG_S = 60.0
AT_ONCE_S = LONG_S / 4

CODECS = ["amqp", "json", "msgpack"]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A container that takes small messages only."""
    with container(f"[limits]\nmax_message_size_bytes = {BYTES_MAX}\n") as found:
        yield found


def huge() -> list[str]:
    """Return what takes little memory, and much where it is written."""
    return ["x" * 1_000_000] * CHUNKS


def sizes(client: cogwork.Client, topic: str) -> cogwork.rpc.Service:
    """Make a service whose results and parts are as large as those of `huge`."""
    service = server_of(client.service(topic))

    @service.method
    def take(data: object = None) -> int:
        return 0

    @service.method
    async def make() -> list[str]:
        return huge()

    @service.method
    async def parts() -> AsyncIterator[object]:
        yield "small"
        yield huge()

    return service


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("direct", [False, True])
@story
async def test_large_arguments_are_refused_unwritten(url: str, codec: str, direct: bool) -> None:
    topic = f"take-{codec}-{direct}"
    async with (
        cogwork.connect(url, direct=direct) as client,
        cogwork.connect(url, direct=direct) as caller,
        sizes(client, topic),
    ):
        if not direct:  # a caller's first call: it does not know yet what is taken
            with pytest.raises(cogwork.MessageTooLarge, match=str(BYTES_MAX)):
                await caller.call(topic, "take", data=huge(), codec=codec, timeout_s=LONG_S)
        assert await caller.call(topic, "take", timeout_s=LONG_S) == 0
        began_s = time.monotonic()
        with pytest.raises(cogwork.MessageTooLarge, match="more than"):
            await caller.call(topic, "take", data=huge() * 10, codec=codec, timeout_s=LONG_S)
        for send in (caller.cast, caller.fanout):
            with pytest.raises(cogwork.MessageTooLarge, match=str(BYTES_MAX)):
                await send(topic, "take", data=huge(), codec=codec)
        with pytest.raises(cogwork.MessageTooLarge, match="more than"):
            await anext(aiter(caller.call_stream(topic, "take", data=huge() * 10, codec=codec)))
        assert time.monotonic() - began_s < AT_ONCE_S
        assert await caller.call(topic, "take", data="x" * 100_000, codec=codec) == 0


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("direct", [False, True])
@story
async def test_large_results_are_told_unwritten(url: str, codec: str, direct: bool) -> None:
    topic = f"make-{codec}-{direct}"
    async with (
        cogwork.connect(url) as client,
        cogwork.connect(url, direct=direct) as caller,
        sizes(client, topic),
    ):
        began_s = time.monotonic()
        for key in (None, "k", "k"):
            with pytest.raises(cogwork.ReplyTooLarge, match=str(BYTES_MAX)):
                await caller.call(topic, "make", codec=codec, timeout_s=LONG_S, idempotency_key=key)
        parts = aiter(caller.call_stream(topic, "parts", codec=codec, timeout_s=LONG_S))
        assert await anext(parts) == "small"
        with pytest.raises(cogwork.ReplyTooLarge, match="part 1"):
            await anext(parts)
        assert time.monotonic() - began_s < AT_ONCE_S
        assert await caller.call(topic, "take", codec=codec) == 0


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("method", ["$cancel", "$more", "$other", "$"])
@story
async def test_reserved_methods_are_refused_at_once(url: str, method: str, direct: bool) -> None:
    began_s = time.monotonic()
    async with (
        cogwork.connect(url, direct=direct) as client,
        cogwork.connect(url, direct=direct) as caller,
        sizes(client, "reserved"),
    ):
        for topic in ("reserved", "nobody-serves-this"):
            with pytest.raises(cogwork.NoSuchMethod, match=r"in front"):
                await caller.call(topic, method, timeout_s=LONG_S)
            with pytest.raises(cogwork.NoSuchMethod, match=r"in front"):
                await caller.cast(topic, method)
            with pytest.raises(cogwork.NoSuchMethod, match=r"in front"):
                await caller.fanout(topic, method)
            with pytest.raises(cogwork.NoSuchMethod, match=r"in front"):
                await anext(aiter(caller.call_stream(topic, method, timeout_s=LONG_S)))
    assert time.monotonic() - began_s < AT_ONCE_S


@story
async def test_a_stock_clients_reserved_method_is_refused(url: str) -> None:
    """One that names its request by message-id alone asks for a method, and is no note."""
    async with cogwork.connect(url) as client, sizes(client, "stock"):
        request = cogwork.Message({}, subject="$cancel", message_id="1", reply_to="queue/told")
        await client.publish("unicast/rpc/stock", request)
        async with asyncio.timeout(AT_ONCE_S), client.consume("queue/told") as replies:
            reply = await anext(replies)
            await reply.accept()
        assert reply.correlation_id == "1"
        assert reply.properties["cogwork:condition"] == "amqp:not-implemented"
