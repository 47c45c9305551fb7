"""Exclusive and server-named queues take from exchanges of every linked container."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from typing import TYPE_CHECKING

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker, NackError, UnroutableError

import cogwork

from .basic_clients import basic_channel, taken
from .meshes import linked, meshed
from .served import within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingChannel

    from .meshes import Member

PROPERTIES = pika.BasicProperties(headers={"n": 1, "x-b": "two"}, delivery_mode=2, message_id="m")
"""What a message says besides its body; a headers exchange is asked for `n`."""

REPLY_TO = "amq.rabbitmq.reply-to"


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Member]]:
    """Three containers in a line: what `a` sends to `c` passes `b`."""
    folder: Path = tmp_path_factory.mktemp("private")
    with meshed(folder, "abc", ["ab", "bc"]) as found:
        linked(found.values())
        yield found


def bindings_at(member: Member) -> list[tuple[str, str, str]]:
    """List source, destination and key of what is bound at a container."""
    found = json.loads(member.served.run("exchange", "list", member.url, "--bindings", "--json"))
    return [(each["source"], each["destination"], each["key"]) for each in found]


def await_binding(member: Member, exchange: str, container: str, key: str) -> None:
    """Wait until a container knows of a binding at another one."""
    wanted = (f"exchange/{exchange}", f"container/{container}", key)
    within(20, lambda: wanted in bindings_at(member), f"{member.id} knows of {wanted}")


def publish(channel: BlockingChannel, exchange: str, key: str, body: bytes, **given: str) -> None:
    """Publish a message as soon as a queue takes it."""
    properties = pika.BasicProperties(**{**vars_of(PROPERTIES), **given})

    def is_taken() -> bool:
        try:
            channel.basic_publish(exchange, key, body, properties, mandatory=True)
        except UnroutableError:
            return False
        return True

    channel.confirm_delivery()
    within(20, is_taken, f"a queue takes from {exchange!r} by {key!r}")


def vars_of(properties: pika.BasicProperties) -> dict[str, object]:
    return {key: value for key, value in vars(properties).items() if value is not None}


def bodies(channel: BlockingChannel, queue: str, count: int) -> list[bytes]:
    """Take so many messages, and see that no more come."""
    found = [body for _, _, body in taken(channel, queue, count, auto_ack=True)]
    channel.cancel()
    assert channel.queue_declare(queue, passive=True).method.message_count == 0
    return found


@pytest.mark.parametrize(
    ("exchange", "key", "arguments"),
    [
        ("amq.direct", "k.l", {}),
        ("amq.fanout", "", {}),
        ("amq.topic", "k.*", {}),
        ("amq.headers", "", {"n": 1, "x-match": "any"}),
        ("amq.match", "", {"n": None}),
    ],
)
def test_a_private_queue_takes_from_the_exchange_of_another_container(
    members: dict[str, Member], exchange: str, key: str, arguments: dict[str, object]
) -> None:
    with (
        basic_channel(members["a"].served) as here,
        basic_channel(members["c"].served) as there,
    ):
        queue = there.queue_declare("", exclusive=True).method.queue
        there.queue_bind(queue, exchange, key, arguments)
        publish(here, exchange, "k.l", b"body")
        ((method, properties, body),) = taken(there, queue, 1, auto_ack=True)
        assert (method.exchange, method.routing_key, body) == (exchange, "k.l", b"body")
        assert vars_of(properties) == vars_of(PROPERTIES)
        there.cancel()
        there.queue_unbind(queue, exchange, key, arguments)
        within(20, lambda: not is_taken(here, exchange), "nobody takes it any more")


def is_taken(channel: BlockingChannel, exchange: str) -> bool:
    with contextlib.suppress(UnroutableError):
        channel.basic_publish(exchange, "k.l", b"", PROPERTIES, mandatory=True)
        return True
    return False


def test_each_queue_gets_each_message_once(members: dict[str, Member]) -> None:
    """Several bindings and exchanges lead to a queue, and several queues are at a container."""
    with contextlib.ExitStack() as stack:
        channels = {
            name: stack.enter_context(basic_channel(each.served)) for name, each in members.items()
        }
        for name, channel in channels.items():
            bind_often(name, channel)
        for one, other in itertools.permutations(members, 2):
            await_binding(members[one], "behind", other, "")
            await_binding(members[one], "once", other, "#.1")
        for name, channel in channels.items():
            channel.confirm_delivery()
            for number in range(10):
                body = f"{name}{number}".encode()
                channel.basic_publish("once", f"x.{number % 3}", body, mandatory=True)
        wanted = sorted(f"{name}{number}".encode() for name in members for number in range(10))
        for name, channel in channels.items():
            for number in range(3):
                assert sorted(bodies(channel, f"once-{name}-{number}", 30)) == wanted
        for channel in channels.values():
            channel.exchange_delete("behind")
            channel.exchange_delete("once")


def bind_often(name: str, channel: BlockingChannel) -> None:
    channel.exchange_declare("once", "topic")
    channel.exchange_declare("behind", "fanout")
    channel.exchange_bind("behind", "once", "x.#")
    for number in range(3):
        queue = f"once-{name}-{number}"
        channel.queue_declare(queue, exclusive=True)
        channel.queue_bind(queue, "once", "x.*")
        channel.queue_bind(queue, "once", f"#.{number % 2}")
        channel.queue_bind(queue, "behind", "")


def test_further_keys_lead_elsewhere_too_and_stay_hidden(members: dict[str, Member]) -> None:
    with (
        basic_channel(members["a"].served) as here,
        basic_channel(members["b"].served) as there,
    ):
        for key in ("cc", "bcc"):
            there.queue_declare(f"{key}-copy", exclusive=True)
            there.queue_bind(f"{key}-copy", "amq.direct", key)
            await_binding(members["a"], "amq.direct", "b", key)
        here.confirm_delivery()
        headers = {"CC": ["cc"], "BCC": ["bcc"], "n": 1}
        here.basic_publish(
            "amq.direct", "to", b"body", pika.BasicProperties(headers=headers), mandatory=True
        )
        for key in ("cc", "bcc"):
            ((method, properties, _),) = taken(there, f"{key}-copy", 1, auto_ack=True)
            assert method.routing_key == "to"
            assert properties.headers == {"CC": ["cc"], "n": 1}
            there.cancel()


@pytest.mark.parametrize("target", ["exchange/amq.topic/one.two", "exchange/amq.topic"])
@pytest.mark.parametrize("body", [b"small", b"x" * 300_000])
def test_a_message_of_amqp_1_0_goes_there_too(
    members: dict[str, Member], target: str, body: bytes
) -> None:
    async def send() -> None:
        async with (
            cogwork.connect(members["a"].url) as client,
            client.publisher(target) as publisher,
        ):
            message = cogwork.Message(body, message_id="m", subject="one.two")
            await publisher.send(message)

    with basic_channel(members["c"].served) as there:
        queue = there.queue_declare("", exclusive=True).method.queue
        there.queue_bind(queue, "amq.topic", "one.*")
        await_binding(members["a"], "amq.topic", "c", "one.*")
        asyncio.run(asyncio.wait_for(send(), 20))
        ((_, properties, found),) = taken(there, queue, 1, auto_ack=True)
        assert (properties.message_id, found) == ("m", body)


def test_a_queue_is_reached_by_its_name_and_is_its_connections_alone(
    members: dict[str, Member],
) -> None:
    with (
        basic_channel(members["a"].served) as here,
        basic_channel(members["c"].served) as there,
    ):
        generated = there.queue_declare("", exclusive=True).method.queue
        there.queue_declare("chosen", exclusive=True)
        for queue in (generated, "chosen"):
            publish(here, "", queue, b"body")
            ((method, _, body),) = taken(there, queue, 1, auto_ack=True)
            assert (method.routing_key, body) == (queue, b"body")
            there.cancel()
        for given in ({"exclusive": True}, {"passive": True}, {"durable": True}, {}):
            with basic_channel(members["b"].served) as other:
                # The neighbour may hear of it later.
                with pytest.raises(ChannelClosedByBroker) as refused:
                    other.queue_declare("chosen", **given)
                assert refused.value.reply_code == 405
                assert "exclusive access to locked queue 'chosen'" in refused.value.reply_text
        there.queue_delete("chosen")
        within(20, lambda: can_declare(members["b"], "chosen"), "the name is free again")


def can_declare(member: Member, queue: str) -> bool:
    with basic_channel(member.served) as channel:
        try:
            channel.queue_declare(queue, exclusive=True)
        except ChannelClosedByBroker:
            return False
    return True


def test_a_server_elsewhere_answers_by_direct_reply_to(members: dict[str, Member]) -> None:
    with (
        basic_channel(members["a"].served) as client,
        basic_channel(members["c"].served) as server,
    ):
        requests = server.queue_declare("", exclusive=True).method.queue
        replies: list[tuple[str | None, bytes]] = []
        client.basic_consume(
            REPLY_TO,
            lambda _c, _m, properties, body: replies.append((properties.correlation_id, body)),
            auto_ack=True,
        )
        publish(client, "", requests, b"question", reply_to=REPLY_TO, correlation_id="1")
        ((_, properties, _),) = taken(server, requests, 1, auto_ack=True)
        server.cancel()
        server.confirm_delivery()
        answered = pika.BasicProperties(correlation_id=properties.correlation_id)
        server.queue_declare(properties.reply_to, passive=True)
        server.basic_publish("", properties.reply_to, b"answer", answered, mandatory=True)
        within(20, lambda: bool(client.connection.process_data_events(0.1)) or bool(replies), "it")
        assert replies == [("1", b"answer")]
        client.connection.close()
        with pytest.raises(UnroutableError):
            server.basic_publish("", properties.reply_to, b"late", answered, mandatory=True)


def test_a_reply_does_not_overtake_the_bind_of_the_queue_that_it_is_for(
    members: dict[str, Member],
) -> None:
    with (
        basic_channel(members["b"].served) as server,
        basic_channel(members["a"].served) as client,
    ):
        asked = server.queue_declare("", exclusive=True).method.queue
        server.queue_bind(asked, "amq.direct", "ask")
        server.confirm_delivery()
        await_binding(members["a"], "amq.direct", "b", "ask")
        for number in range(30):
            name = f"answers-{number}"
            client.queue_declare(name, exclusive=True)
            client.queue_bind(name, "amq.direct", name)
            client.basic_publish("amq.direct", "ask", name.encode())
            ((method, _, body),) = taken(server, asked, 1)
            server.basic_ack(method.delivery_tag)
            server.cancel()
            server.basic_publish("amq.direct", body.decode(), b"answer", mandatory=True)
            assert [answer for *_, answer in taken(client, name, 1)] == [b"answer"]
            client.cancel()
            client.queue_delete(name)


def test_an_alternate_exchange_takes_what_no_container_wants(members: dict[str, Member]) -> None:
    with (
        basic_channel(members["a"].served) as here,
        basic_channel(members["c"].served) as there,
    ):
        here.exchange_declare("rest", "fanout")
        for channel, more in ((here, {"alternate-exchange": "rest"}), (there, {})):
            channel.exchange_declare("first", "direct", arguments=more)
        queue = there.queue_declare("", exclusive=True).method.queue
        there.queue_bind(queue, "first", "wanted")
        left = here.queue_declare("", exclusive=True).method.queue
        here.queue_bind(left, "rest", "")
        await_binding(members["a"], "first", "c", "wanted")
        for key in ("wanted", "other"):
            here.basic_publish("first", key, key.encode())
        assert bodies(there, queue, 1) == [b"wanted"]
        assert bodies(here, left, 1) == [b"other"]
        for channel in (here, there):
            channel.exchange_delete("first")
        here.exchange_delete("rest")


@pytest.mark.parametrize("kind", ["x-consistent-hash", "x-random"])
def test_an_exchange_that_chooses_does_so_among_all_containers(
    members: dict[str, Member], kind: str
) -> None:
    with contextlib.ExitStack() as stack:
        channels = {
            name: stack.enter_context(basic_channel(each.served)) for name, each in members.items()
        }
        for name, channel in channels.items():
            channel.exchange_declare("choice", kind)
            for number in range(2):
                channel.queue_declare(f"choice-{name}{number}", exclusive=True)
                channel.queue_bind(f"choice-{name}{number}", "choice", "1")
        for one, other in itertools.permutations(members, 2):
            await_binding(members[one], "choice", f"{other}/choice-{other}1", "1")
        for channel in channels.values():
            channel.confirm_delivery()
            for number in range(100):
                channel.basic_publish("choice", f"{number}", b"%d" % number, mandatory=True)
        found = {
            queue: bodies(channel, queue, 300)
            for name, channel in channels.items()
            for queue in (f"choice-{name}0", f"choice-{name}1")
        }
        assert sum(map(len, found.values())) == 300
        assert all(found.values())
        if kind == "x-consistent-hash":
            for queue, each in found.items():
                assert all(each.count(body) == 3 for body in each), queue
        for channel in channels.values():
            channel.exchange_delete("choice")


def test_a_container_that_has_gone_blocks_no_confirm(members: dict[str, Member]) -> None:
    with basic_channel(members["a"].served) as here:
        near = here.queue_declare("", exclusive=True).method.queue
        here.queue_bind(near, "amq.fanout", "")
        here.confirm_delivery()
        with basic_channel(members["c"].served) as there:
            far = there.queue_declare("", exclusive=True).method.queue
            there.queue_bind(far, "amq.fanout", "")
            await_binding(members["a"], "amq.fanout", "c", "")
            here.basic_publish("amq.fanout", "", b"both", mandatory=True)
            assert bodies(there, far, 1) == [b"both"]
            members["c"].kill()
            with contextlib.suppress(Exception):
                there.connection.close()
        refused = 0
        for number in range(20):
            try:
                here.basic_publish("amq.fanout", "", b"%d" % number, mandatory=True)
            except NackError:
                refused += 1
        assert bodies(here, near, 21) == [b"both", *(b"%d" % number for number in range(20))]
        within(
            30,
            lambda: not any(each[1] == "container/c" for each in bindings_at(members["a"])),
            "its bindings are left out",
        )
        here.basic_publish("amq.fanout", "", b"alone", mandatory=True)
        assert bodies(here, near, 1) == [b"alone"]
        members["c"].start()
        linked(members.values())
