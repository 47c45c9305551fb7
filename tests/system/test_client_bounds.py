"""The client at what a container bounds, and with containers that leave it in the lurch."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import cogwork
from cogwork.amqp.codec import encode
from cogwork.amqp.frames import AMQP_HEADER, SASL_HEADER, encode_frame
from cogwork.amqp.sasl import ANONYMOUS, PLAIN, SaslCode, SaslMechanisms, SaslOutcome
from cogwork.client.client import Client
from cogwork.client.errors import ConnectError
from cogwork.dataplane.connection import Connection
from cogwork.testing import container

from .proxy import FaultyProxy
from .redirects import containers, url_of
from .stories import QUICKLY, eventually, reconnected, story

if TYPE_CHECKING:
    from cogwork.amqp.performatives import Close

NARROW = "[limits]\nlinks_per_session = 4\nsessions_per_connection = 3\n"


@story
async def test_more_links_than_a_session_takes_are_all_attached_again() -> None:
    with container(NARROW) as url:
        async with (
            FaultyProxy(url) as proxy,
            cogwork.connect(proxy.url, retry=QUICKLY) as client,
            cogwork.connect(url) as other,
            AsyncExitStack() as stack,
        ):
            received = [
                await stack.enter_async_context(client.subscribe(f"topic/all.{number}"))
                for number in range(12)
            ]
            proxy.cut()
            await reconnected(client)
            for number, messages in enumerate(received):
                got = asyncio.ensure_future(anext(messages))
                while not got.done():
                    await other.publish(f"topic/all.{number}", number)
                    await asyncio.sleep(0.01)
                assert (await got).body == number
            assert client.connections == 2


@story
async def test_a_link_too_many_is_refused_and_harms_nobody() -> None:
    with container(NARROW) as url:
        async with cogwork.connect(url, retry=QUICKLY) as client, AsyncExitStack() as stack:
            for number in range(11):
                await stack.enter_async_context(client.subscribe(f"topic/full.{number}"))
            last = await stack.enter_async_context(client.publisher("topic/full.0"))
            with pytest.raises(cogwork.LinkRefused, match="12 links are attached") as caught:
                await client.subscribe("topic/one-too-many").open()
            assert caught.value.condition == cogwork.Condition.RESOURCE_LIMIT_EXCEEDED
            await last.send("still here")
            assert client.connections == 1
            await last.shut()
            await client.publish("topic/full.1", "there is room again")


@story
async def test_a_link_that_is_left_without_an_error_is_told_to_be_over() -> None:
    async with (
        containers("a") as (there,),
        cogwork.connect(url_of(there)) as client,
        client.subscribe("topic/left") as messages,
    ):
        (link,) = there.attachments.links.values()
        link.detach(closed=False)
        there.core.flush()
        with pytest.raises(cogwork.LinkDetached, match="ended by the container"):
            async with asyncio.timeout(30):
                await anext(messages)


@story
async def test_a_container_that_does_not_answer_a_close_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cogwork.client.connection.handler.CLOSE_TIMEOUT_S", 0.1)
    answer = Connection._on_close

    def ignore(connection: Connection, close: Close) -> None:
        if connection.is_client:
            answer(connection, close)

    monkeypatch.setattr(Connection, "_on_close", ignore)
    async with (
        containers("a") as (there,),
        cogwork.connect(url_of(there), retry=QUICKLY) as client,
        client.subscribe("topic/again") as messages,
    ):
        (connection,) = there.peers.connections
        connection.sessions[0].close()
        connection.flush()
        await eventually(lambda: client.connections == 2, "it has come again", timeout_s=10)
        got = asyncio.ensure_future(anext(messages))
        while not got.done():
            await client.publish("topic/again", "here")
            await asyncio.sleep(0.01)
        assert (await got).body == "here"


@story
async def test_a_mesh_whose_closing_is_left_is_closed_all_the_same() -> None:
    async with containers("a") as (there,), FaultyProxy(url_of(there)) as proxy:
        client = await cogwork.connect(proxy.url).__aenter__()
        handler = client._handler
        assert handler is not None
        proxy.hold_replies()
        closing = asyncio.create_task(client.close())
        await eventually(lambda: handler.connection.is_over, "it has said so")
        assert not handler.closed.done()
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert handler.closed.done()


NOBODY = "service/nobody"
NO_CREDIT = r"^service/nobody: it was not sent within 0\.3 s: there was no credit"
NO_OUTCOME = r"^service/nobody: it was sent, and has no outcome within 0\.3 s"


@pytest.mark.parametrize("has_relay", [True, False], ids=["publisher", "publish"])
def test_a_message_without_credit_is_given_up_in_time(
    has_relay: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Client, "has_relay", has_relay)

    @story
    async def told() -> None:
        with container() as url:
            async with cogwork.connect(url) as client, client.publisher(NOBODY) as out:
                send = out.send if has_relay else partial(client.publish, NOBODY)
                with pytest.raises(cogwork.Released, match=NO_CREDIT):
                    await send("too early", timeout_s=0.3)
                assert out.backlog == 0
                async with client.consume(NOBODY) as items:
                    sending = asyncio.ensure_future(send("in time", timeout_s=0.3))
                    item = await anext(items)
                    assert item.body == "in time"
                    with pytest.raises(cogwork.InDoubt, match=NO_OUTCOME):
                        await sending
                    await item.accept()

    told()


@story
async def test_a_batch_without_credit_is_given_up_in_time() -> None:
    with container() as url:
        async with cogwork.connect(url) as client, client.publisher(NOBODY) as out:
            outcomes = await out.send_batch(range(5), timeout_s=0.3)
            assert [each.state for each in outcomes] == 5 * ["released"]
            with pytest.raises(cogwork.Released, match=NO_CREDIT):
                raise outcomes[4].error() or AssertionError
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(out.send_batch([6]), 0.3)
            assert out.backlog == 0
            async with client.consume(NOBODY, credit=1) as items:
                sending = asyncio.ensure_future(out.send_batch(range(40, 140), timeout_s=0.3))
                await (await anext(items)).accept()
                held = await anext(items)
                outcomes = await sending
                states = [str(each.state) for each in outcomes]
                taken = states.index("released")
                assert states[:2] == ["accepted", "in-doubt"]
                assert states == ["accepted", *(taken - 1) * ["in-doubt"], *states[taken:]]
                assert {*states[taken:]} == {"released"}
                with pytest.raises(cogwork.InDoubt, match=NO_OUTCOME):
                    raise outcomes[1].error() or AssertionError
                await held.accept()
                for body in range(42, 40 + taken):
                    item = await anext(items)
                    assert item.body == body
                    await item.accept()


@story
async def test_why_nobody_took_a_message_is_asked_no_longer_than_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with container() as url:
        async with cogwork.connect(url) as client:
            with pytest.raises(cogwork.Released, match="nobody took the message"):
                await client.publish(NOBODY, 1, timeout_s=10)
            monkeypatch.setattr(
                "cogwork.client.publishing.publisher.Publisher.open", lambda _: asyncio.sleep(60)
            )
            with pytest.raises(cogwork.Released, match=r"^service/nobody: nobody took the message"):
                await asyncio.wait_for(client.publish(NOBODY, 1, timeout_s=0.2), 10)


@story
async def test_a_message_without_a_connection_is_given_up_in_time() -> None:
    with container() as url:
        async with (
            FaultyProxy(url) as proxy,
            cogwork.connect(proxy.url, retry=QUICKLY) as client,
            client.publisher("queue/a") as out,
        ):
            proxy.refuse(True)
            proxy.cut()
            await eventually(lambda: not client.is_connected, "it is lost")
            match = "was not sent within 0.2 s: there was no connection"
            with pytest.raises(cogwork.Released, match=match):
                await out.send("a", timeout_s=0.2)
            with pytest.raises(cogwork.Released, match=f"^queue/b: it {match}"):
                await client.publish("queue/b", "b", timeout_s=0.2)
            proxy.refuse(False)
            await client.publish("queue/b", "c", timeout_s=10)
            async with client.consume("queue/b") as items:
                assert [each.body for each in await items.drain()] == ["c"]


@story
async def test_a_message_that_a_stream_counts_is_in_doubt_where_its_time_is_over() -> None:
    with container('[[stream]]\naddress = "stream/s"\n') as url:
        async with (
            FaultyProxy(url) as proxy,
            cogwork.connect(proxy.url, retry=QUICKLY) as client,
            client.stream("s").publisher() as out,
        ):
            proxy.refuse(True)
            proxy.cut()
            await eventually(lambda: not client.is_connected, "it is lost")
            with pytest.raises(cogwork.InDoubt, match="in a stream's line, where it stays"):
                await out.send("a", timeout_s=0.2)
            (outcome,) = await out.send_batch(["b"], timeout_s=0.2)
            assert (outcome.state, "line, where it stays" in outcome.description) == (
                "in-doubt",
                True,
            )
            proxy.refuse(False)
            await out.flush()
            async with client.stream("s").read("first") as reader:
                assert [(await anext(reader)).body for _ in "ab"] == ["a", "b"]


@pytest.mark.parametrize(
    ("url", "options", "says"),
    [
        (
            "amqp://ann:" + 600 * "x" + "@",
            {},
            r"the sasl-init, with user, password or token, and host, takes 6",
        ),
        (
            "amqp://",
            {"name": 600 * "x"},
            r"the open, with name, host and virtual host, takes 7\d\d",
        ),
        ("amqp://ann:x@", {}, None),
    ],
)
@story
async def test_what_is_too_long_for_a_strict_peer_is_named(
    url: str, options: dict[str, Any], says: str | None
) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Strict(reader, writer)
        with suppress(asyncio.IncompleteReadError):
            await peer.serve()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectError) as refused:
            async with cogwork.connect(f"{url}127.0.0.1:{port}", **options):
                pass
    assert "127.0.0.1" in str(refused.value)
    if says is None:
        assert "octets" not in str(refused.value)
    else:
        assert re.search(says, str(refused.value))
        assert "more than 512 before it has opened" in str(refused.value)
        assert "x" * 100 not in str(refused.value)


class Strict:
    """A peer that takes no frame of more than 512 octets before it opens, and never opens."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def serve(self) -> None:
        await self._reader.readexactly(8)
        offered = SaslMechanisms(sasl_server_mechanisms=(ANONYMOUS, PLAIN))
        self._writer.write(SASL_HEADER + encode_frame(0, encode(offered.to_described()), 1))
        if not await self._takes_frame():
            return
        outcome = SaslOutcome(code=SaslCode.OK)
        self._writer.write(encode_frame(0, encode(outcome.to_described()), 1) + AMQP_HEADER)
        await self._reader.readexactly(8)
        await self._takes_frame()

    async def _takes_frame(self) -> bool:
        size_bytes = int.from_bytes(await self._reader.readexactly(4), "big")
        if size_bytes > 512:
            return False
        await self._reader.readexactly(size_bytes - 4)
        return True


@story
async def test_arguments_with_which_nothing_would_ever_come_are_refused() -> None:
    with container() as url:
        async with cogwork.connect(url) as client:
            read = client.stream("orders").read
            receivers: tuple[Any, ...] = (client.subscribe, client.consume, client.browse)
            for receive in receivers:
                for credit in (0, -1, 2**32, "5", True):
                    with pytest.raises(ValueError, match="credit is a number from 1 to"):
                        receive("work/a", credit=credit)
            with pytest.raises(ValueError, match="credit is a number from 1 to"):
                read("first", credit=0)
            with pytest.raises(ValueError, match="concurrency: at least 1 is expected, not 0"):
                client.serve("service/a", print, concurrency=0)
            with pytest.raises(ValueError, match="on_truncated is 'raise' or 'first', not 'skip'"):
                read("first", on_truncated="skip")  # type: ignore[arg-type]  # a mistake


@pytest.mark.parametrize("address", ["queue/a", "topic/a", "plain/a"])
@story
async def test_what_is_no_stream_is_not_read_as_one(address: str) -> None:
    with container() as url:
        async with cogwork.connect(url) as client:
            await client.publish("queue/a", "kept")
            with pytest.raises(cogwork.LinkRefused, match="it is no stream"):
                await anext(aiter(client.stream(address).read("first")))
            async with client.consume("queue/a") as items:
                assert (await anext(items)).body == "kept"
