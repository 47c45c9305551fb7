"""Exchanges as AMQP 1.0 clients use them: keys, headers, bindings, what is not routed, restarts."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

import cogwork
from cogwork.config.password_hash import hash_password
from cogwork.config.reading import parse, with_options
from cogwork.container.container import Container
from cogwork.container.journals import file_sync
from cogwork.router.exchanges.binding import EXCHANGE, QUEUE, Destination

from .stories import story

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cogwork.container.vhost.exchanges import Exchanges


@asynccontextmanager
async def running(
    configuration: str = "", folder: Path | None = None
) -> AsyncIterator[tuple[Exchanges, cogwork.Client]]:
    """Run a container, and a client of it."""
    head = "" if folder is None else f'data_dir = "{folder}"\n'
    settings = with_options(parse(head + configuration, "test"), "here", ("127.0.0.1:0",))
    container = Container(settings)
    await container.start()
    try:
        async with cogwork.connect(container.endpoints[0]) as client:
            yield container.vhosts[""].exchanges, client
    finally:
        await container.stop(drain_timeout_s=0)


def queue(name: str) -> Destination:
    return Destination(QUEUE, name)


async def with_queues(client: cogwork.Client, *names: str) -> None:
    """Have queues made, as the first receiver does."""
    for name in names:
        async with client.consume(f"queue/{name}"):
            pass


async def held(client: cogwork.Client, name: str) -> list[Any]:
    """Take all that a queue has at once."""
    bodies = []
    async with client.consume(f"queue/{name}") as items:
        with suppress(TimeoutError):
            while True:
                async with asyncio.timeout(0.2):
                    item = await anext(items)
                bodies.append(item.body)
                await item.accept()
    return bodies


async def send(client: cogwork.Client, address: str, body: str, **fields: Any) -> str:
    """Send a message; return what became of it."""
    try:
        await client.publish(address, cogwork.Message(body, **fields))
    except cogwork.ClientError as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"


@story
async def test_a_direct_exchange_goes_by_the_key_of_the_address_or_the_subject() -> None:
    async with running() as (exchanges, client):
        await with_queues(client, "red", "blue")
        exchanges.declare("colours", "direct")
        exchanges.bind("colours", queue("red"), b"red")
        exchanges.bind("colours", queue("blue"), b"blue")
        exchanges.bind("colours", queue("blue"), b"sea")
        assert await send(client, "exchange/colours/red", "1") == "accepted"
        assert await send(client, "exchange/colours", "2", subject="sea") == "accepted"
        assert await send(client, "exchange/colours/blue", "3", subject="red") == "accepted"
        green = await send(client, "exchange/colours/green", "4")
        assert green == "Released: exchange/colours/green: nobody took the message"
        assert await send(client, "exchange/colours", "5") != "accepted"
        assert await held(client, "red") == ["1"]
        assert await held(client, "blue") == ["2", "3"]


@story
async def test_a_topic_exchange_gives_each_queue_one_copy_however_many_patterns_fit() -> None:
    async with running() as (exchanges, client):
        await with_queues(client, "all", "eu", "orders")
        exchanges.bind("amq.topic", queue("all"), b"#")
        exchanges.bind("amq.topic", queue("all"), b"orders.*")
        exchanges.bind("amq.topic", queue("eu"), b"*.eu")
        exchanges.bind("amq.topic", queue("orders"), b"orders.#")
        for key in ("orders.eu", "orders", "orders.eu.new", "bills.eu", ""):
            assert await send(client, "exchange/amq.topic", key, subject=key) == "accepted"
        assert await held(client, "all") == ["orders.eu", "orders", "orders.eu.new", "bills.eu", ""]
        assert await held(client, "eu") == ["orders.eu", "bills.eu"]
        assert await held(client, "orders") == ["orders.eu", "orders", "orders.eu.new"]


@story
async def test_a_binding_holds_from_the_next_message_on() -> None:
    async with running() as (exchanges, client):
        await with_queues(client, "a", "b")
        async with client.publisher("exchange/amq.fanout") as publisher:
            with pytest.raises(cogwork.Released):
                await publisher.send("0")
            exchanges.bind("amq.fanout", queue("a"))
            await publisher.send("1")
            exchanges.bind("amq.fanout", queue("b"))
            await publisher.send("2")
            exchanges.unbind("amq.fanout", queue("a"))
            await publisher.send("3")
        assert await held(client, "a") == ["1", "2"]
        assert await held(client, "b") == ["2", "3"]


@story
async def test_batches_keep_their_order_in_each_queue() -> None:
    count = 500
    async with running() as (exchanges, client):
        await with_queues(client, "a", "b", "even")
        exchanges.bind("amq.fanout", queue("a"))
        exchanges.bind("amq.fanout", queue("b"))
        exchanges.bind("amq.direct", queue("even"), b"0")
        exchanges.bind("amq.direct", queue("a"), b"1")
        async with client.publisher("exchange/amq.fanout") as publisher:
            await publisher.send_batch([str(number) for number in range(count)])
        async with client.publisher("exchange/amq.direct") as publisher:
            await publisher.send_batch(
                [cogwork.Message(str(at), subject=str(at // 7 % 2)) for at in range(count)]
            )
        everything = [str(number) for number in range(count)]
        assert await held(client, "b") == everything
        assert await held(client, "even") == [
            each for each in everything if int(each) // 7 % 2 == 0
        ]
        odd = [each for each in everything if int(each) // 7 % 2]
        assert await held(client, "a") == everything + odd
        assert exchanges.figures("amq.fanout") == {"delivered": 2 * count, "unroutable": 0}


@story
async def test_a_headers_exchange_goes_by_application_properties() -> None:
    async with running() as (exchanges, client):
        await with_queues(client, "all", "any", "there")
        pdf = {"format": "pdf", "pages": 2}
        exchanges.bind("amq.headers", queue("all"), b"", pdf)
        exchanges.bind("amq.headers", queue("any"), b"", pdf | {"x-match": "any"})
        exchanges.bind("amq.headers", queue("there"), b"", {"pages": None})
        for number, properties in enumerate(
            ({"format": "pdf", "pages": 2}, {"format": "pdf"}, {"pages": 3}, {"pages": True})
        ):
            await send(client, "exchange/amq.headers/k", str(number), properties=properties)
        assert await send(client, "exchange/amq.headers", "4") != "accepted"
        assert await held(client, "all") == ["0"]
        assert await held(client, "any") == ["0", "1"]
        assert await held(client, "there") == ["0", "2", "3"]


@story
async def test_exchanges_may_be_bound_in_a_circle() -> None:
    async with running() as (exchanges, client):
        await with_queues(client, "q")
        for name in ("a", "b"):
            exchanges.declare(name, "fanout")
            exchanges.bind(name, queue("q"))
        exchanges.bind("a", Destination(EXCHANGE, "b"))
        exchanges.bind("b", Destination(EXCHANGE, "a"))
        assert await send(client, "exchange/a", "1") == "accepted"
        assert await send(client, "exchange/b/any", "2") == "accepted"
        assert await held(client, "q") == ["1", "2"]


@story
async def test_an_alternate_exchange_takes_what_is_not_bound() -> None:
    async with running() as (exchanges, client):
        await with_queues(client, "bound", "rest")
        exchanges.declare("main", "direct", arguments={"alternate-exchange": "others"})
        exchanges.bind("main", queue("bound"), b"k")
        assert await send(client, "exchange/main/x", "0") != "accepted"
        exchanges.declare("others", "fanout", internal=True)
        exchanges.bind("others", queue("rest"))
        assert await send(client, "exchange/main/k", "1") == "accepted"
        assert await send(client, "exchange/main/x", "2") == "accepted"
        assert await held(client, "bound") == ["1"]
        assert await held(client, "rest") == ["2"]


@story
async def test_the_default_exchange_leads_to_the_queue_that_the_key_names() -> None:
    async with running() as (exchanges, client):
        assert await send(client, "exchange/amq.default/q", "0") != "accepted"
        await with_queues(client, "q")
        assert await send(client, "exchange/amq.default/q", "1") == "accepted"
        assert await send(client, "exchange/amq.default", "2", subject="q") == "accepted"
        assert await held(client, "q") == ["1", "2"]
        assert exchanges.get("") is not None


@story
async def test_senders_without_a_target_name_exchange_and_key() -> None:
    async with running() as (exchanges, client):
        await with_queues(client, "q")
        exchanges.declare("a/b%", "topic")
        exchanges.bind("a/b%", queue("q"), b"x.*")
        address = exchanges.address("a/b%")
        assert address == "exchange/a%2Fb%25"
        async with client.publisher(None) as publisher:
            for key in ("x.1", "x.2", "x.1"):
                await publisher.send(cogwork.Message(key, to=f"{address}/{key}"))
            with pytest.raises(cogwork.Released):
                await publisher.send(cogwork.Message("no", to=f"{address}/y"))
            with pytest.raises(cogwork.Rejected, match="there is no exchange 'a'"):
                await publisher.send(cogwork.Message("no", to="exchange/a/x.1"))
        assert await held(client, "q") == ["x.1", "x.2", "x.1"]


@pytest.mark.parametrize("body", ["small", "large" * 100_000])
@story
async def test_the_worst_outcome_of_all_queues_is_the_publishers(body: str) -> None:
    configuration = """
    [[queue]]
    address = "queue/full"
    maximum_length = 1
    maximum_length_policy = "reject"
    """
    async with running(configuration) as (exchanges, client):
        await with_queues(client, "free")
        exchanges.bind("amq.fanout", queue("free"))
        exchanges.bind("amq.fanout", queue("full"))
        assert await send(client, "exchange/amq.fanout", body) == "accepted"
        assert (await send(client, "exchange/amq.fanout", body)).startswith("Rejected")
        assert await held(client, "full") == [body]
        assert await held(client, "free") == [body, body]


@story
async def test_what_cannot_be_done_at_an_exchange_is_told() -> None:
    async with running() as (exchanges, client):
        exchanges.declare("inner", "fanout", internal=True)
        told = await send(client, "exchange/inner", "1")
        assert "exchange 'inner' is internal" in told
        assert "there is no exchange 'none'" in await send(client, "exchange/none/k", "1")
        assert "names no exchange" in await send(client, "exchange/", "1")
        with pytest.raises(cogwork.LinkRefused, match="bind a queue to it"):
            async with client.consume("exchange/amq.topic"):
                pass


@story
async def test_an_exchange_that_is_deleted_detaches_its_senders() -> None:
    async with running() as (exchanges, client):
        exchanges.declare("gone", "fanout")
        for address in ("exchange/gone", "exchange/gone/key"):
            exchanges.declare("gone", "fanout")
            async with client.publisher(address) as publisher:
                exchanges.delete("gone")
                await asyncio.sleep(0.3)  # a tick sends the detach
                with pytest.raises(cogwork.ClientError, match=r"was deleted|no exchange"):
                    await publisher.send("1")
        assert exchanges.get("gone") is None


@story
async def test_a_queue_that_goes_takes_its_bindings_and_exchanges_along() -> None:
    async with running() as (exchanges, client):
        await with_queues(client, "q")
        exchanges.declare("first", "fanout", auto_delete=True)
        exchanges.declare("second", "fanout", auto_delete=True)
        exchanges.bind("first", Destination(EXCHANGE, "second"))
        exchanges.bind("second", queue("q"))
        await client.manage("DELETE", {"type": "queue", "name": "queue/q"})
        assert exchanges.get("second") is None
        assert exchanges.get("first") is None
        assert exchanges.bindings_to(queue("q")) == []


@story
async def test_what_is_durable_is_there_after_a_restart(tmp_path: Path) -> None:
    queues = """
    [[queue]]
    address = "queue/disk"
    durability = "disk"
    [[queue]]
    address = "queue/memory"
    durability = "memory"
    """
    arguments = {"alternate-exchange": "amq.fanout"}
    async with running(queues, tmp_path) as (exchanges, client):
        exchanges.declare("kept", "topic", arguments=arguments)
        exchanges.declare("lost", "topic", durable=False)
        exchanges.declare("deleted", "topic")
        for source in ("kept", "lost", "amq.direct", "deleted"):
            for name in ("disk", "memory"):
                exchanges.bind(source, queue(name), b"a.\xff", {"n": 1, "t": [True, None]})
        exchanges.bind("kept", Destination(EXCHANGE, "amq.direct"), b"#")
        exchanges.bind("kept", queue("disk"), b"undone")
        exchanges.unbind("kept", queue("disk"), b"undone")
        exchanges.delete("deleted")
    async with running(queues, tmp_path) as (exchanges, client):
        names = {each.name for each in exchanges if not each.name.startswith("amq.")}
        assert names == {"kept"}
        assert not exchanges.declare("kept", "topic", arguments=arguments)
        assert {each.destination for each in exchanges.bindings("kept")} == {
            queue("disk"),
            Destination(EXCHANGE, "amq.direct"),
        }
        (binding,) = exchanges.bindings("amq.direct")
        assert (binding.key, binding.arguments) == (b"a.\xff", {"n": 1, "t": [True, None]})
        exchanges.bind("kept", queue("disk"), b"x")
        assert await send(client, "exchange/kept/x", "1") == "accepted"
        assert await held(client, "disk") == ["1"]


@story
async def test_addresses_of_rabbitmq_mean_the_same(tmp_path: Path) -> None:
    async with running() as (exchanges, client):
        exchanges.declare("a/b", "direct")
        async with client.consume("/queues/q%2F1"):
            pass
        exchanges.bind("a/b", queue("q/1"), "clé/1".encode())
        assert await send(client, "/exchanges/a%2Fb/cl%C3%A9%2F1", "1") == "accepted"
        assert await send(client, "/exchanges/a%2Fb", "2", subject="clé/1") == "accepted"
        assert await send(client, "/queues/q%2F1", "3") == "accepted"
        async with client.publisher(None) as publisher:
            await publisher.send(cogwork.Message("4", to="/exchanges/a%2Fb/cl%C3%A9%2F1"))
            await publisher.send(cogwork.Message("5", to="/queues/q%2F1"))
            with pytest.raises(cogwork.Rejected, match="does not decode to UTF-8"):
                await publisher.send(cogwork.Message("6", to="/queues/%FF"))
        told = await send(client, "/exchanges/%FF", "7")
        assert "does not decode to UTF-8" in told
        assert await held(client, "q/1") == ["1", "2", "3", "4", "5"]


PERMISSIONS = """
[[user]]
name = "ann"
password_hash = "{password}"

[[user.permissions]]
address = "exchange/logs"
rights = ["send"]

[[user.permissions]]
address = "queue/q"
rights = ["send", "receive"]
"""


@story
async def test_a_permission_at_an_exchange_holds_for_all_of_its_keys() -> None:
    text = PERMISSIONS.format(password=hash_password("secret"))
    settings = with_options(parse(text, "test"), "here", ("127.0.0.1:0",))
    container = Container(settings)
    await container.start()
    exchanges = container.vhosts[""].exchanges
    container.vhosts[""].entry_of("queue/q")
    for name in ("logs", "other"):
        exchanges.declare(name, "topic")
        exchanges.bind(name, queue("q"), b"#")
    url = container.endpoints[0].replace("://", "://ann:secret@")
    try:
        async with cogwork.connect(url) as client:
            for address in ("exchange/logs/a.b", "/exchanges/logs/a.b", "exchange/logs"):
                assert await send(client, address, address) == "accepted"
            assert "no permission to send" in await send(client, "exchange/other/a.b", "no")
            async with client.publisher(None) as publisher:
                await publisher.send(cogwork.Message("yes", to="/exchanges/logs/x"))
                for address in ("/exchanges/other/x", "exchange/other/x", "exchange/logs.x/y"):
                    with pytest.raises(cogwork.Rejected, match="no permission to send"):
                        await publisher.send(cogwork.Message("no", to=address))
            assert len(await held(client, "q")) == 4
    finally:
        await container.stop(drain_timeout_s=0)


@story
async def test_an_answer_waits_until_the_disk_has_the_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    synchronise = file_sync._synchronise

    def wait(fd: int) -> None:
        assert gate.wait(10)
        synchronise(fd)

    monkeypatch.setattr(file_sync, "_synchronise", wait)
    async with running("", tmp_path) as (exchanges, client):
        asked = {"type": "exchange", "name": "exchange/slow"}
        declared = asyncio.create_task(client.manage("CREATE", asked, {"type": "fanout"}))
        await asyncio.sleep(0.3)
        assert exchanges.get("slow") is not None
        assert not declared.done()
        gate.set()
        assert str((await declared).properties["statusCode"]) == "201"


@story
async def test_nobody_is_told_of_what_the_disk_does_not_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fd: int) -> None:
        os.close(fd)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async with running("", tmp_path) as (_exchanges, client):
        monkeypatch.setattr(file_sync, "_synchronise", fail)
        asked = {"type": "exchange", "name": "exchange/lost"}
        with pytest.raises(cogwork.Disconnected):
            async with asyncio.timeout(5):
                await client.manage("CREATE", asked, {"type": "fanout"})
