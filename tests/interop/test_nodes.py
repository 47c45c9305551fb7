"""What topics and queues do, as foreign clients see it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from .clients import CLIENTS, fresh_address
from .notation import Json, Typed, integer, string, value_message

if TYPE_CHECKING:
    from .broker import Settings
    from .conftest import GetPeer
    from .peer import Running

TTL_MS = 50


class Client:
    """One client library, with a process to send and one to receive.

    Args:
        name: The library.
        peer: Where its processes come from.
        broker: What it connects to.
    """

    def __init__(self, name: str, peer: GetPeer, broker: Settings) -> None:
        self._sender, self._receiver = peer(name, "sender"), peer(name, "receiver")
        self._connection = broker.anonymous()

    def send(self, address: str, *messages: Json) -> list[Json]:
        """Send messages; return their outcomes."""
        running = self._sender.run(
            "send", connection=self._connection, address=address, messages=list(messages)
        )
        return running.outcomes

    def subscribe(self, address: str, **fields: Json) -> Running:
        """Start to receive and returns once the link is attached."""
        running = self._receiver.start(
            "receive", connection=self._connection, address=address, **fields
        )
        running.wait("attached")
        return running

    def receive(self, address: str, **fields: Json) -> list[Json]:
        """Receive to the end; return the messages."""
        return self.subscribe(address, **fields).finish().messages

    def drain(self, address: str, **fields: Json) -> list[Json]:
        """Receive what is there at once; return the messages."""
        return self.receive(address, count=0, drain=True, **fields)


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, peer: GetPeer, broker: Settings) -> Client:
    """Each of the libraries."""
    return Client(request.param, peer, broker)


def item(text: str, **sections: Json) -> Json:
    """Return a small message."""
    return value_message(string(text), **sections)


def coloured(text: str, colour: str) -> Json:
    """Return a small message with an application-property to select by."""
    return item(text, application_properties=[[string("colour"), string(colour)]])


def texts(messages: list[Json]) -> list[str]:
    """Return the bodies."""
    return [message["body"]["value"][1] for message in messages]


def header(message: Json, field: str) -> Typed | None:
    """Return a field of the header, if it was there."""
    found: Typed | None = message.get("header", {}).get(field)
    return found


def test_a_queue_keeps_its_order(client: Client) -> None:
    queue = fresh_address("queue/interop.")
    names = [f"item {number}" for number in range(50)]
    outcomes = client.send(queue, *map(item, names))
    assert outcomes == [{"state": "accepted"}] * 50
    assert texts(client.receive(queue, count=50)) == names


def test_draining_gives_the_credit_back(client: Client) -> None:
    queue = fresh_address("queue/interop.")
    assert client.drain(queue) == []
    client.send(queue, item("one"), item("two"), item("three"))
    assert texts(client.drain(queue, credit=2)) == ["one", "two"]
    assert texts(client.drain(queue)) == ["three"]


def test_browsing_takes_nothing(client: Client) -> None:
    queue = fresh_address("queue/interop.")
    client.send(queue, item("one"), item("two"))
    assert texts(client.drain(queue, mode="copy")) == ["one", "two"]
    assert texts(client.drain(queue)) == ["one", "two"]
    assert client.drain(queue) == []


def test_a_released_item_comes_again(client: Client) -> None:
    queue = fresh_address("queue/interop.")
    client.send(queue, item("one"))
    assert texts(client.receive(queue, count=1, outcomes=[{"state": "released"}])) == ["one"]
    (again,) = client.receive(queue, count=1)
    assert header(again, "delivery_count") in (None, integer("uint", 0))


def test_a_failed_attempt_is_counted(client: Client) -> None:
    queue = fresh_address("queue/interop.")
    failed = {"state": "modified", "delivery_failed": True}
    client.send(queue, item("one"))
    client.receive(queue, count=1, outcomes=[failed])
    (again,) = client.receive(queue, count=1)
    assert header(again, "delivery_count") == integer("uint", 1)


def test_the_urgent_overtakes(client: Client) -> None:
    queue = fresh_address("queue/interop.")
    levels = {"low": 1, "high": 9, "usual": 4}
    client.send(
        queue,
        *(item(name, header={"priority": integer("ubyte", it)}) for name, it in levels.items()),
    )
    assert texts(client.drain(queue)) == ["high", "usual", "low"]


def test_what_lived_its_time_is_gone(client: Client) -> None:
    queue = fresh_address("queue/interop.")
    brief = item("brief", header={"ttl": integer("uint", TTL_MS)})
    client.send(queue, brief, item("lasting"))
    time.sleep(4 * TTL_MS / 1000)
    assert texts(client.drain(queue)) == ["lasting"]


def test_a_selector_leaves_the_rest(client: Client) -> None:
    queue = fresh_address("queue/interop.")
    client.send(queue, coloured("one", "red"), coloured("two", "blue"), coloured("three", "red"))
    assert texts(client.drain(queue, selector="colour = 'red'")) == ["one", "three"]
    assert texts(client.drain(queue)) == ["two"]


def test_a_topic_finds_its_subscribers(client: Client) -> None:
    root = fresh_address("topic/interop.")
    subscription = client.subscribe(f"{root}.*.red.#", count=2)
    client.send(f"{root}.wheel.blue", item("no"))
    client.send(f"{root}.wheel.red", item("yes"))
    client.send(f"{root}.wheel.red.small", item("yes, too"))
    assert texts(subscription.finish().messages) == ["yes", "yes, too"]


def test_no_local_spares_the_echo(client: Client) -> None:
    topic = fresh_address("topic/interop.")
    subscription = client.subscribe(topic, count=1, no_local=True, own_messages=[item("own")])
    subscription.wait("sent-own")
    client.send(topic, item("foreign"))
    assert texts(subscription.finish().messages) == ["foreign"]
