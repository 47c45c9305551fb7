"""Temporary queues and topics, and what capabilities say of a name, with a stock client."""

from __future__ import annotations

import asyncio
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from proton import UNDESCRIBED, Array, Data, Delivery, Message, int32, symbol, ubyte, uint, ulong
from proton.reactor import LinkOption
from proton.utils import BlockingConnection, BlockingReceiver, LinkDetached

import cogwork.sync
from cogwork.testing import container

from .linked import linked
from .stories import story

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DELETE_ON_CLOSE = 0x2B


class Capable(LinkOption):
    """Gives a terminus capabilities, as JMS does."""

    def __init__(self, *names: str, dynamic: bool = False, is_kept: bool = False) -> None:
        self._names = names
        self._is_dynamic = dynamic
        self._is_kept = is_kept

    def apply(self, link: Any) -> None:
        terminus = link.source if link.is_receiver else link.target
        names = [symbol(name) for name in self._names]
        described: Any = UNDESCRIBED
        terminus.capabilities.put_object(Array(described, Data.SYMBOL, *names))
        if self._is_dynamic:
            terminus.dynamic = True
            if not self._is_kept:
                properties = terminus.properties
                properties.put_map()
                properties.enter()
                properties.put_symbol(symbol("lifetime-policy"))
                properties.put_described()
                properties.enter()
                properties.put_ulong(DELETE_ON_CLOSE)
                properties.put_list()
                properties.exit()
                properties.exit()


class Client:
    """A connection whose links have names of their own."""

    def __init__(self, url: str) -> None:
        self.bus = BlockingConnection(url, timeout=30)

    def sender(self, address: str | None, *names: str) -> Any:
        return self.bus.create_sender(address, name=str(uuid.uuid4()), options=Capable(*names))

    def receiver(self, address: str, *names: str) -> BlockingReceiver:
        options = Capable(*names)
        return self.bus.create_receiver(address, credit=10, name=str(uuid.uuid4()), options=options)

    def temporary(self, *names: str, is_kept: bool = False) -> tuple[Any, str]:
        """Make a temporary node; return the link that made it and its address."""
        options = Capable(*names, dynamic=True, is_kept=is_kept)
        link = self.bus.create_sender(None, name=str(uuid.uuid4()), options=options)
        address = link.link.remote_target.address
        assert link.link.remote_target.dynamic
        assert address
        return link, address

    def outcome(self, sender: Any, message: Message) -> int:
        """Send a message; return its outcome."""
        delivery = sender.link.send(message)
        self.bus.wait(lambda: delivery.remote_state != 0)
        state: int = delivery.remote_state
        delivery.settle()
        return state


@pytest.fixture
def connect(url: str) -> Iterator[Callable[[], Client]]:
    """Make clients, and close them."""
    made: list[Client] = []

    def new() -> Client:
        made.append(Client(url))
        return made[-1]

    yield new
    for each in made:
        each.bus.close()


def refusal(attach: Callable[[], object]) -> str:
    with pytest.raises(LinkDetached) as caught:
        attach()
    return f"{caught.value.condition} {caught.value}"


def test_a_temporary_queue_keeps_replies_until_they_are_taken(
    connect: Callable[[], Client],
) -> None:
    asker, server = connect(), connect()
    _, replies = asker.temporary("temporary-queue")
    relay = server.sender(None)
    assert server.outcome(relay, Message(address=replies, body="early")) == Delivery.ACCEPTED
    assert server.outcome(server.sender(replies), Message(body="next")) == Delivery.ACCEPTED
    receiver = asker.receiver(replies, "temporary-queue")
    assert [receiver.receive().body, receiver.receive().body] == ["early", "next"]
    for _ in range(2):
        receiver.accept()
    assert "amqp:resource-locked" in refusal(lambda: server.receiver(replies))


def test_only_who_made_a_dynamic_source_receives_there(
    url: str, connect: Callable[[], Client]
) -> None:
    """Anybody may send there."""
    asker, other = connect(), connect()
    replies = asker.bus.create_receiver(None, dynamic=True, name="replies", credit=10)
    address = replies.link.remote_source.address
    assert address
    assert "amqp:resource-locked" in refusal(lambda: other.receiver(address))
    with ThreadPoolExecutor() as pool, cogwork.sync.connect(url) as mesh:
        sending = pool.submit(mesh.publish, address, "x", settled=True)
        assert replies.receive(30).body == "x"
        sending.result()


@pytest.mark.parametrize("kind", [ubyte, int32, uint, ulong])
def test_the_relay_heeds_what_jms_says_of_a_plain_name(
    connect: Callable[[], Client], kind: Callable[[int], Any]
) -> None:
    client = connect()
    name = f"both-{kind.__name__}"
    told = client.receiver(name, "topic")
    relay = client.sender(None)
    for number, body in ((0, "kept"), (1, "told")):
        message = Message(address=name, body=body)
        message.annotations = {symbol("x-opt-jms-dest"): kind(number)}
        assert client.outcome(relay, message) == Delivery.ACCEPTED
    assert told.receive().body == "told"
    assert client.receiver(name, "queue").receive().body == "kept"
    said_otherwise = Message(address="queue/said", body="x")
    said_otherwise.annotations = {symbol("x-opt-jms-dest"): kind(1)}
    assert client.outcome(relay, said_otherwise) == Delivery.ACCEPTED
    assert client.receiver("queue/said").receive().body == "x", "a prefix counts for more"


def test_a_temporary_topic_gives_each_subscriber_a_copy(connect: Callable[[], Client]) -> None:
    client = connect()
    _, topic = client.temporary("temporary-topic")
    first, second = client.receiver(topic, "temporary-topic"), client.receiver(topic)
    client.sender(topic).link.send(Message(body="to all"))
    assert [first.receive().body, second.receive().body] == ["to all", "to all"]


def test_it_goes_with_the_link_where_that_was_asked_for(connect: Callable[[], Client]) -> None:
    owner, other = connect(), connect()
    link, address = owner.temporary("temporary-queue")
    relay = other.sender(None)
    assert other.outcome(relay, Message(address=address)) == Delivery.ACCEPTED
    link.close()
    assert other.outcome(relay, Message(address=address)) == Delivery.RELEASED


def test_else_it_goes_with_the_connection(connect: Callable[[], Client]) -> None:
    owner, other = connect(), connect()
    link, address = owner.temporary(is_kept=True)
    link.close()
    relay = other.sender(None)
    other.sender(address)
    assert other.outcome(relay, Message(address=address, body="x")) == Delivery.ACCEPTED
    assert owner.receiver(address).receive().body == "x"
    owner.bus.close()
    with pytest.raises(LinkDetached, match="resource-deleted"):
        other.bus.wait(lambda: False, timeout=30)
    assert other.outcome(relay, Message(address=address)) == Delivery.RELEASED


@story
async def test_a_temporary_queue_is_reached_from_a_linked_container() -> None:
    async with linked("a-b") as mesh:
        urls = [mesh.containers[name].endpoints[0] for name in "ab"]

        def exchange() -> list[object]:
            owner, other = (Client(url) for url in urls)
            _, address = owner.temporary("temporary-queue")
            relay = other.sender(None)
            for body in ("one", "two"):
                assert other.outcome(relay, Message(address=address, body=body)) == 0x24
            receiver = owner.receiver(address)
            got: list[object] = [receiver.receive().body for _ in range(2)]
            for client in (owner, other):
                client.bus.close()
            return got

        assert await asyncio.to_thread(exchange) == ["one", "two"]


def test_a_capability_says_what_a_plain_name_means(connect: Callable[[], Client]) -> None:
    client = connect()
    assert client.outcome(client.sender("orders", "queue"), Message(body="kept")) == 0x24
    assert client.receiver("orders", "queue").receive().body == "kept"
    subscribers = [client.receiver("orders", "topic"), client.receiver("topic/orders")]
    client.sender("orders", "topic").link.send(Message(body="told"))
    assert [each.receive().body for each in subscribers] == ["told", "told"]


@pytest.mark.parametrize(
    ("address", "capability", "kind"),
    [
        ("topic/a", "queue", "is a topic, and no queue"),
        ("broadcast/a", "temporary-queue", "is a topic, and no queue"),
        ("queue/a", "topic", "is a queue, and no topic"),
        ("work/a", "temporary-topic", "is a queue, and no topic"),
        ("anycast/a", "topic", "is a queue, and no topic"),
    ],
)
def test_a_name_that_says_otherwise_is_refused(
    connect: Callable[[], Client], address: str, capability: str, kind: str
) -> None:
    client = connect()
    for attach in (client.sender, client.receiver):
        told = refusal(partial(attach, address, capability))
        assert "amqp:precondition-failed" in told
        assert kind in told
    for attach in (client.sender, client.receiver):
        attach(address).close()


def test_names_and_capabilities_that_agree_are_taken() -> None:
    with container() as url:
        client = Client(url)
        for address, capability in (("queue/a", "queue"), ("topic/a", "topic")):
            client.receiver(address, capability)
            client.sender(address, capability)
        assert "invalid-field" in refusal(lambda: client.sender("x", "queue", "topic"))
        client.bus.close()
