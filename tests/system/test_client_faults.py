"""The client when connections break: nothing is lost in silence, and what stood stands again."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

import cogwork
from cogwork.testing import container

from .proxy import FaultyProxy
from .stories import QUICKLY, connected_again, eventually, reconnected, story


async def published(client: cogwork.Client, address: str, body: object) -> None:
    """Publish until it succeeds, as one does where doing it twice is harmless."""
    while True:
        try:
            await client.publish(address, body)
        except cogwork.InDoubt:
            await asyncio.sleep(0.01)
        else:
            return


@story
async def test_a_subscription_goes_on_after_a_cut(url: str) -> None:
    async with (
        FaultyProxy(url) as proxy,
        cogwork.connect(proxy.url, retry=QUICKLY) as client,
        cogwork.connect(url) as other,
        client.subscribe("topic/cut.#") as messages,
    ):
        for round_number in range(3):
            await other.publish("topic/cut.a", round_number)
            assert (await anext(messages)).body == round_number
            proxy.cut()
            await connected_again(client, round_number + 2)
    assert proxy.connections == 4


@story
async def test_bound_patterns_are_bound_again(url: str) -> None:
    async with (
        FaultyProxy(url) as proxy,
        cogwork.connect(proxy.url, retry=QUICKLY) as client,
        cogwork.connect(url) as other,
        client.subscribe("topic/rebound.a") as messages,
    ):
        await messages.bind("rebound.b")
        proxy.cut()
        await connected_again(client, 2)
        got = asyncio.ensure_future(anext(messages))
        while not got.done():
            await other.publish("topic/rebound.b", "again")
            await asyncio.sleep(0.01)
        assert (await got).body == "again"


@story
async def test_patterns_are_bound_again_however_long_that_takes_or_the_subscription_ends(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals: list[Exception] = []

    class Forgetful(cogwork.Client):
        async def manage(self, *arguments: Any, **keywords: Any) -> cogwork.Message:
            if refusals:
                raise refusals.pop(0)
            return await super().manage(*arguments, **keywords)

    monkeypatch.setattr("cogwork.client.client.Client", Forgetful)
    async with (
        FaultyProxy(url) as proxy,
        cogwork.connect(proxy.url, retry=QUICKLY) as client,
        cogwork.connect(url) as other,
        client.subscribe("topic/rebound.c") as messages,
    ):
        await messages.bind("rebound.d")
        refusals += [cogwork.CallTimeout("$management", 10.0) for _ in range(2)]
        proxy.cut()
        await connected_again(client, 2)
        got = asyncio.ensure_future(anext(messages))
        while not got.done():
            await other.publish("topic/rebound.d", "again")
            await asyncio.sleep(0.01)
        assert (await got).body == "again"
        refusals.append(cogwork.PermissionDenied("$management", None, "not any more"))
        proxy.cut()
        await eventually(lambda: messages.failure is not None, "it has ended")
        assert isinstance(messages.failure, cogwork.LinkDetached)
        assert "'topic/rebound.d' is not bound any more: " in str(messages.failure)


@story
async def test_what_was_sent_into_a_broken_connection_is_in_doubt(url: str) -> None:
    async with (
        FaultyProxy(url) as proxy,
        cogwork.connect(proxy.url, retry=QUICKLY) as client,
        client.publisher("sink/doubt") as out,
    ):
        proxy.hold_replies()
        post = out.post(1)
        batch = out.post_batch([2, 3])
        await asyncio.sleep(0.05)
        assert out.unsettled == 3
        proxy.cut()
        with pytest.raises(cogwork.InDoubt, match="sink/doubt"):
            await post
        outcomes = await batch
        assert [outcome.state for outcome in outcomes] == [cogwork.OutcomeState.IN_DOUBT] * 2
        await out.send(4)


@story
async def test_what_may_have_arrived_is_in_doubt_though_it_was_to_be_sent_again(url: str) -> None:
    async with (
        FaultyProxy(url) as proxy,
        cogwork.connect(proxy.url, retry=QUICKLY) as client,
        cogwork.connect(url) as other,
        other.subscribe("topic/doubted") as messages,
        client.publisher("topic/doubted", on_doubt="resend") as out,
    ):
        await out.send("first")
        proxy.hold_replies()
        one = asyncio.create_task(out.send("one", timeout_s=1.0))
        batch = asyncio.create_task(out.send_batch(["two", "three"], timeout_s=1.0))
        seen: list[object] = []
        while len(seen) < 4:
            seen += [message.body for message in await messages.take()]
        proxy.refuse(True)
        proxy.cut()
        with pytest.raises(cogwork.InDoubt, match="topic/doubted"):
            await one
        assert [each.state for each in await batch] == [cogwork.OutcomeState.IN_DOUBT] * 2
        never = out.post("never sent")
        assert never.withdraw()
        assert isinstance(never.error(), cogwork.Released)


@story
async def test_a_publisher_that_may_repeat_itself_loses_nothing(url: str) -> None:
    count = 2_000
    async with (
        FaultyProxy(url) as proxy,
        cogwork.connect(proxy.url, retry=QUICKLY) as client,
        cogwork.connect(url) as other,
        other.subscribe("topic/resent") as messages,
        client.publisher("topic/resent", on_doubt="resend") as out,
    ):
        posts = []
        for number in range(count):
            posts.append(out.post(number))
            if number % 500 == 250:
                await asyncio.sleep(0.02)
                proxy.cut()
        for post in posts:
            await post
        seen: list[object] = []
        while len(set(seen)) < count:
            seen += [message.body for message in await messages.take()]
    assert set(seen) == set(range(count))


@story
async def test_what_waits_for_credit_was_never_sent(url: str) -> None:
    async with (
        FaultyProxy(url) as proxy,
        cogwork.connect(proxy.url, retry=QUICKLY) as client,
        cogwork.connect(url) as other,
        client.publisher("unicast/later") as out,
    ):
        posts = [out.post(number) for number in range(10)]
        proxy.cut()
        posts += [out.post(number) for number in range(10, 20)]
        async with other.consume("unicast/later") as items:
            bodies = []
            for _ in range(20):
                item = await anext(items)
                bodies.append(item.body)
                await item.accept()
        for post in posts:
            await post
    assert bodies == list(range(20))


@story
async def test_large_messages_that_were_not_begun_are_sent_later(url: str) -> None:
    body = b"x" * 3_000_000
    async with (
        FaultyProxy(url) as proxy,
        cogwork.connect(proxy.url, retry=QUICKLY) as client,
        client.publisher("sink/large", on_doubt="resend") as out,
    ):
        posts = [out.post(body) for _ in range(5)]
        await asyncio.sleep(0.005)
        proxy.cut()
        for post in posts:
            await post


@story
async def test_the_next_host_of_the_list_takes_over(url: str) -> None:
    with container(id="second") as second:
        async with (
            FaultyProxy(url) as proxy,
            cogwork.connect([proxy.url, second], retry=QUICKLY) as client,
            client.subscribe("topic/moved") as messages,
        ):
            proxy.refuse(refuses=True)
            proxy.cut()
            await connected_again(client, 2)
            async with cogwork.connect(second) as other:
                got = asyncio.ensure_future(anext(messages))
                while not got.done():
                    await published(other, "topic/moved", "here")
                    await asyncio.sleep(0.01)
            assert (await got).body == "here"


@story
async def test_a_container_that_restarts_finds_its_clients_again() -> None:
    broker = container()
    url = await asyncio.to_thread(lambda: broker.start().url)
    port = int(url.rpartition(":")[2])
    async with (
        cogwork.connect(url, retry=QUICKLY) as client,
        client.subscribe("topic/restart") as messages,
        client.publisher("topic/restart", on_doubt="resend") as out,
    ):
        await out.send(1)
        assert (await anext(messages)).body == 1
        await asyncio.to_thread(broker.stop)
        await eventually(lambda: not client.is_connected, "the loss is noticed")
        post = out.post(2)
        again = container(port=port)
        await asyncio.to_thread(again.start)
        try:
            await post
            await published(client, "topic/restart", 3)
            while (await anext(messages)).body != 3:
                pass
        finally:
            await asyncio.to_thread(again.stop)


@pytest.mark.parametrize("kind", ["publisher", "subscription"])
@story
async def test_an_attach_that_fits_into_no_frame_is_refused_and_harms_nobody(
    url: str, kind: str
) -> None:
    async with cogwork.connect(url) as client, client.subscribe("topic/fits") as other:
        end: cogwork.client.Publisher | cogwork.client.Subscription
        if kind == "publisher":
            end = client.publisher("topic/" + "x" * 40_000)
        else:
            end = client.subscribe("topic/a", selector="x" * 40_000)
        with pytest.raises(cogwork.LinkRefused, match=r"of at most 32768") as caught:
            await end.open()
        assert caught.value.condition == cogwork.Condition.FRAME_SIZE_TOO_SMALL
        await client.publish("topic/fits", 1)
        assert (await anext(other)).body == 1
        assert client.connections == 1


GIVES_UP = cogwork.Retry(first_s=0.01, longest_s=0.02, give_up_after_s=0.1)


@story
async def test_accepts_that_are_never_confirmed_are_told(url: str) -> None:
    async with (
        FaultyProxy(url) as proxy,
        cogwork.connect(proxy.url, retry=GIVES_UP) as client,
        cogwork.connect(url) as other,
    ):
        for number in range(2):
            await other.publish("queue/unconfirmed", number)
        items = client.consume("queue/unconfirmed")
        await items.open()
        taken = [await anext(items) for _ in range(2)]
        proxy.hold_replies()
        for item in taken:
            item.accept_nowait()
        flush = asyncio.create_task(items.flush())
        await asyncio.sleep(0.05)
        proxy.refuse(True)
        proxy.cut()
        for waiting in (flush, items.flush()):
            with pytest.raises(cogwork.Disconnected, match="not connected any more"):
                await waiting


@story
async def test_a_post_ends_with_its_publisher_though_nobody_waits_for_that(url: str) -> None:
    async with FaultyProxy(url) as proxy, cogwork.connect(proxy.url, retry=QUICKLY) as client:
        out = client.publisher("unicast/left")
        await out.open()
        post = out.post("no credit")
        proxy.hold_replies()
        leaving = asyncio.create_task(out.shut())
        await asyncio.sleep(0.05)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        with pytest.raises(cogwork.Disconnected, match="unicast/left: closed"):
            await post


@story
async def test_a_link_that_nobody_waits_for_any_more_is_the_next_ones(url: str) -> None:
    async with FaultyProxy(url) as proxy, cogwork.connect(proxy.url, retry=QUICKLY) as client:
        for count in range(2, 5):
            proxy.refuse(True)
            proxy.cut()
            await eventually(lambda: not client.is_connected, "the loss is noticed")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await client.publish("sink/left", 1)
            proxy.refuse(False)
            await reconnected(client, count)
        await client.publish("sink/left", 2)
        assert len(client._ends) == 1


@pytest.mark.parametrize("is_named", [True, False], ids=["send", "publish"])
@story
async def test_what_was_left_before_it_was_sent_is_not_sent(url: str, is_named: bool) -> None:
    address = f"queue/left.{is_named}"
    async with (
        FaultyProxy(url) as proxy,
        cogwork.connect(proxy.url, retry=QUICKLY) as client,
        client.publisher(address) as out,
    ):

        async def send(body: str) -> None:
            await (out.send(body) if is_named else client.publish(address, body))

        await send("first")
        proxy.refuse(True)
        proxy.cut()
        await eventually(lambda: not client.is_connected, "the loss is noticed")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await send("left")
        proxy.refuse(False)
        await send("last")
        async with client.consume(address) as items:
            assert [item.body for item in await items.drain()] == ["first", "last"]


@story
async def test_giving_up_ends_everything() -> None:
    retry = cogwork.Retry(first_s=0.01, longest_s=0.02, give_up_after_s=0.1)
    broker = container()
    url = await asyncio.to_thread(lambda: broker.start().url)
    async with cogwork.connect(url, retry=retry) as client:
        messages = client.subscribe("topic/over")
        await messages.open()
        waiting = asyncio.ensure_future(anext(messages))
        await asyncio.to_thread(broker.stop)
        with pytest.raises(cogwork.Disconnected, match="not connected any more"):
            await waiting
        with pytest.raises(cogwork.Disconnected):
            await client.publish("topic/over", 1)


@story
async def test_nobody_there_is_told_at_once() -> None:
    with pytest.raises(cogwork.ConnectError, match=r"127\.0\.0\.1:1.*refused"):
        async with cogwork.connect("amqp://127.0.0.1:1"):
            pass


@story
async def test_an_unknown_virtual_host_is_told_at_once(url: str) -> None:
    with pytest.raises(cogwork.ConnectError, match="shop") as caught:
        async with cogwork.connect(f"{url}/shop"):
            pass
    assert caught.value.condition == cogwork.Condition.NOT_FOUND


@story
async def test_a_host_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(cogwork.ConnectError, match="no answer within"):
            async with cogwork.connect(f"amqp://127.0.0.1:{port}", connect_timeout_s=0.1):
                pass


@story
async def test_a_silent_connection_is_lost_and_mended(url: str) -> None:
    async with (
        FaultyProxy(url) as proxy,
        cogwork.connect(proxy.url, retry=QUICKLY, idle_timeout_s=1) as client,
    ):
        proxy.hold_replies()
        await eventually(lambda: not client.is_connected, "the silence is noticed")
        proxy.cut()
        await eventually(lambda: client.is_connected, "it is connected again")
