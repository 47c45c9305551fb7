"""Requests and services of the client when connections break, or nobody answers."""

from __future__ import annotations

import asyncio
import gc

import pytest

import cogwork
from cogwork.io.turn import Waiter

from .proxy import FaultyProxy
from .stories import QUICKLY, connected_again, story


@story
async def test_a_reply_that_cannot_be_read_keeps_back_no_other(url: str) -> None:
    asked: list[cogwork.Message] = []

    def answer(request: cogwork.Message) -> str:
        asked.append(request)
        return f"{request.body}!"

    async with (
        cogwork.connect(url) as client,
        cogwork.connect(url) as other,
        client.serve("service/more", answer),
    ):
        assert (await client.request("service/more", 2)).body == "2!"
        reply_to = asked[0].reply_to
        assert reply_to is not None
        to = reply_to.encode()
        fields = b"\x06\x40\x40\xa1" + bytes([len(to)]) + to + b"\x40\x40\xa1\x02\xff\xfe"
        properties = b"\x00\x53\x73\xc0" + bytes([len(fields)]) + fields
        async with other.publisher() as relay:
            (outcome,) = await relay.post_encoded([properties + b"\x00\x53\x77\x40"])
            assert outcome.is_accepted
        assert (await client.request("service/more", 3, timeout_s=5)).body == "3!"


@story
async def test_who_waits_in_vain_again_and_again_leaves_nothing(url: str) -> None:
    async with cogwork.connect(url) as client, client.subscribe("topic/quiet") as messages:
        for _ in range(500):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await messages.take()
        gc.collect()
        assert sum(isinstance(each, Waiter) for each in gc.get_objects()) < 100
        await client.publish("topic/quiet", 1)
        assert [message.body for message in await messages.take()] == [1]


@story
async def test_a_call_in_flight_fails_and_the_next_one_succeeds(url: str) -> None:
    begun = asyncio.Event()

    async def slowly(request: cogwork.Message) -> object:
        begun.set()
        await asyncio.sleep(0.3 if request.body == "slow" else 0)
        return request.body

    async with (
        FaultyProxy(url) as proxy,
        cogwork.connect(proxy.url, retry=QUICKLY) as client,
        cogwork.connect(url) as other,
        other.serve("service/slow", slowly),
    ):
        call = asyncio.create_task(client.request("service/slow", "slow"))
        await begun.wait()
        proxy.cut()
        with pytest.raises((cogwork.Disconnected, cogwork.InDoubt)):
            await call
        assert (await client.request("service/slow", "fast")).body == "fast"


@story
async def test_a_service_goes_on_after_a_cut(url: str) -> None:
    async with (
        FaultyProxy(url) as proxy,
        cogwork.connect(proxy.url, retry=QUICKLY) as client,
        cogwork.connect(url) as other,
        client.serve("service/cut", lambda request: request.body),
    ):
        assert (await other.request("service/cut", 1)).body == 1
        proxy.cut()
        await connected_again(client, 2)
        while True:
            try:
                reply = await other.request("service/cut", 2)
            except cogwork.Released:
                await asyncio.sleep(0.01)
            else:
                break
        assert reply.body == 2


@story
async def test_a_request_that_was_never_sent_is_not_sent_once_it_is_over(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cogwork.Client, "has_relay", False)
    handled: list[object] = []
    async with cogwork.connect(url) as client:
        with pytest.raises(cogwork.CallTimeout):
            await client.request("unicast/over", "nobody was there", timeout_s=0.1)
        async with client.serve("unicast/over", lambda request: handled.append(request.body)):
            await client.request("unicast/over", "somebody is", timeout_s=5)
    assert handled == ["somebody is"]
