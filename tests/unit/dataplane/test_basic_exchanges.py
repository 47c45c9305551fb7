"""Messages of AMQP 0-9-1 at exchanges: their keys and headers, and copies for queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from basic_client import ACCEPTED, REJECTED, RELEASED, BasicClient

from cogwork.amqp091.content import BasicProperties
from cogwork.amqp091.types import Int8
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.amqp091.channel import BasicChannel
from cogwork.dataplane.core import Core
from cogwork.dataplane.message.basic import pack_basic
from cogwork.dataplane.queue.store import Store
from cogwork.nodes.exchange import ExchangeNode
from cogwork.plugin.exchange_types import exchange_type
from cogwork.plugin.node import NodeContext
from cogwork.router.exchanges.binding import QUEUE, Binding, Destination

if TYPE_CHECKING:
    from collections.abc import Mapping


class World:
    """Exchanges `d`, `t` and `h`, queues `a`, `b` and `c`, and a client."""

    def __init__(self) -> None:
        self.core = Core()
        self.stores = {name: Store(self.core, 1) for name in "abc"}
        self.entries = {name: self._entry(name) for name in "abc"}
        context = NodeContext(
            core=self.core,
            address="exchange",
            is_prefix=True,
            options={},
            container_id="test",
            emit=lambda _effects: None,
        )
        self.node = ExchangeNode(context)
        self.node.find_queue = self.entries.get
        for name, kind in (("d", "direct"), ("t", "topic"), ("h", "headers")):
            factory = exchange_type(kind)
            assert factory is not None
            self.node.graph.add(name, factory({}, lambda _below: 0))
        self.client = BasicClient(self.core)

    def _entry(self, name: str) -> AddressEntry:
        entry = AddressEntry(self.core, f"queue/{name}", CLOSEST_CODE)
        entry.add_outlet(self.stores[name])
        entry.stored = self.stores[name]
        return entry

    def bind(
        self, exchange: str, queue: str, key: bytes, arguments: Mapping[str, object] | None = None
    ) -> None:
        self.node.graph.bind(exchange, Binding(Destination(QUEUE, queue), key, arguments))
        self.node.changed()

    def publish(self, exchange: str, body: bytes, key: str, **options: Any) -> int:
        entry = self.node.entry_of(exchange)
        return self.client.publish(entry, body, exchange=exchange, key=key, **options)

    def held(self) -> dict[str, int]:
        return {name: store.depth for name, store in self.stores.items() if store.depth}

    def bodies(self, queue: str) -> list[str]:
        consumer = BasicClient(self.core)
        consumer.consume(self.stores[queue])
        return [arrival.text for arrival in consumer.take()]


@pytest.fixture
def world() -> World:
    return World()


def test_the_key_is_read_from_the_octets_whatever_they_are(world: World) -> None:
    world.bind("d", "a", b"\xff.\x00")
    world.bind("t", "b", b"\xff.*")
    assert world.publish("d", b"1", "\udcff.\0", token=1) == ACCEPTED
    assert world.publish("t", b"2", "\udcff.\0", token=2) == ACCEPTED
    assert world.publish("d", b"3", "\udcfe", token=3) == RELEASED
    assert world.held() == {"a": 1, "b": 1}
    assert world.node.figures("d") == {"delivered": 1, "unroutable": 1}


def test_each_queue_gets_the_octets_that_were_published(world: World) -> None:
    properties = BasicProperties(headers={"n": Int8(1)}, delivery_mode=2, content_type="x")
    for queue in "abc":
        world.bind("t", queue, b"#")
    world.publish("t", b"body", "k.l", properties=properties)
    for queue in "abc":
        client = BasicClient(world.core)
        client.consume(world.stores[queue])
        (arrival,) = client.take()
        assert (arrival.exchange, arrival.key) == ("t", "k.l")
        assert (arrival.properties, arrival.body) == (properties, b"body")


def test_headers_are_compared_with_their_types(world: World) -> None:
    world.bind("h", "a", b"", {"n": 1})
    world.bind("h", "b", b"", {"n": True})
    tables: list[dict[str, object] | None] = [{"n": Int8(1)}, {"n": True}, {"n": "1"}, None]
    for headers in tables:
        world.publish("h", b"x", "", properties=BasicProperties(headers=headers))
    assert world.held() == {"a": 1, "b": 1}


def test_the_publisher_hears_once_and_the_worst_of_all_queues(world: World) -> None:
    for queue in "abc":
        world.bind("t", queue, b"#")
    world.stores["b"].maximum_length = 1
    world.stores["b"].policy = "reject"
    assert world.publish("t", b"1", "k", token=1) == ACCEPTED
    assert world.publish("t", b"2", "k", token=2) == REJECTED
    assert [each[:2] for each in world.client.outcomes] == [(1, ACCEPTED), (2, REJECTED)]
    assert world.held() == {"a": 2, "b": 1, "c": 2}
    assert world.core.open_fanouts == 0


def test_cc_and_bcc_are_keys_too_and_bcc_is_told_to_nobody(world: World) -> None:
    world.bind("d", "a", b"k")
    world.bind("d", "b", b"copy")
    world.bind("d", "c", b"blind")
    headers = {"CC": ["copy", "k"], "BCC": ["blind"], "n": Int8(1)}
    properties = BasicProperties(headers=headers, priority=3)
    assert world.publish("d", b"x", "k", properties=properties, token=1) == ACCEPTED
    assert world.held() == {"a": 1, "b": 1, "c": 1}
    for queue in "abc":
        client = BasicClient(world.core)
        client.consume(world.stores[queue])
        (arrival,) = client.take()
        assert arrival.properties == BasicProperties(
            headers={"CC": ["copy", "k"], "n": Int8(1)}, priority=3
        )
        assert (arrival.key, arrival.body) == ("k", b"x")


@pytest.mark.parametrize("headers", [{"xCC": ["copy"]}, {"CC": "copy"}, {"a": "\x02CC", "BC": 1}])
def test_what_only_looks_like_further_keys_is_none(world: World, headers: dict[str, Any]) -> None:
    world.bind("d", "a", b"k")
    world.bind("d", "b", b"copy")
    properties = BasicProperties(headers=headers)
    world.publish("d", b"x", "k", properties=properties)
    client = BasicClient(world.core)
    client.consume(world.stores["a"])
    (arrival,) = client.take()
    assert arrival.properties == properties
    assert world.held() == {"a": 1}


def test_a_new_binding_holds_for_keys_that_were_looked_up_before(world: World) -> None:
    world.bind("d", "a", b"k")
    world.publish("d", b"1", "k")
    world.bind("d", "b", b"k")
    world.publish("d", b"2", "k")
    assert world.bodies("a") == ["1", "2"]
    assert world.bodies("b") == ["2"]


def test_a_queue_that_is_not_there_is_looked_for_again(world: World) -> None:
    entry = world.entries.pop("a")
    world.bind("d", "a", b"k")
    assert world.publish("d", b"1", "k", token=1) == RELEASED
    world.entries["a"] = entry
    assert world.publish("d", b"2", "k", token=2) == ACCEPTED
    assert world.publish("", b"3", "a", token=3) == ACCEPTED
    assert world.publish("", b"4", "none", token=4) == RELEASED
    assert world.bodies("a") == ["2", "3"]


def test_more_keys_than_are_kept_are_found_all_the_same(world: World) -> None:
    world.bind("t", "a", b"*.even.#")
    for number in range(10_000):
        world.publish("t", b"", f"{number}.{'odd' if number % 2 else 'even'}")
    assert world.held() == {"a": 5000}


@pytest.mark.parametrize("size", range(13))
def test_octets_that_are_no_message_are_rejected(world: World, size: int) -> None:
    world.bind("d", "a", b"key")
    whole = pack_basic(b"d", b"key", b"\0\0", b"")
    channel = world.client.channel
    assert isinstance(channel, BasicChannel)
    code = channel.publish_message(world.node.entry_of("d"), whole[:size], token=1)
    assert code == (ACCEPTED if size == len(whole) else REJECTED)
