"""Channels of AMQP 0-9-1 at a queue's store: what they publish, get, acknowledge and give back."""

from __future__ import annotations

import pytest
from basic_client import ACCEPTED, REJECTED, RELEASED, BasicClient
from kept_queues import KeptQueue
from stored_queue import Queue
from text_messages import texts

from cogwork.amqp.message import Properties
from cogwork.amqp091.content import BasicProperties
from cogwork.amqp091.types import Int8
from cogwork.dataplane.addresses.entry import BALANCED_CODE, MULTICAST_CODE, AddressEntry
from cogwork.dataplane.message.messages import Message
from cogwork.dataplane.queue.store import Store

PERSISTENT = BasicProperties(
    content_type="text/plain", headers={"x-a": 1, "b": Int8(2)}, delivery_mode=2
)


@pytest.fixture
def client(queue: Queue) -> BasicClient:
    return BasicClient(queue.core)


def bodies(client: BasicClient) -> list[str]:
    return [arrival.text for arrival in client.take()]


def test_a_message_goes_out_as_it_was_published(queue: Queue, client: BasicClient) -> None:
    client.publish(queue.entry, b"\xff\x00", exchange="e", key="k\udcff", properties=PERSISTENT)
    client.consume(queue.store, b"tag")
    (arrival,) = client.take()
    assert arrival == (1, False, "e", "k\udcff", PERSISTENT, b"\xff\x00", "tag", None)


@pytest.mark.parametrize("size", [0, 1, 4087, 4088, 4089, 100_000])
def test_a_body_is_cut_by_the_clients_frame_max(
    queue: Queue, client: BasicClient, size: int
) -> None:
    client.consume(queue.store)
    client.publish(queue.entry, b"x" * size)
    assert [len(arrival.body) for arrival in client.take()] == [size]


def test_publishers_hear_what_became_of_their_messages(queue: Queue, client: BasicClient) -> None:
    assert client.publish(queue.entry, b"a", token=5) == ACCEPTED
    client.publish(queue.entry, b"b")
    assert client.outcomes == [(5, ACCEPTED, None)]
    queue.store.maximum_length = 2
    queue.store.policy = "reject"
    assert client.publish(queue.entry, b"c", token=6) == REJECTED
    assert [(token, code) for token, code, _ in client.outcomes] == [(5, ACCEPTED), (6, REJECTED)]


def test_what_leads_nowhere_is_released_at_once(client: BasicClient) -> None:
    nowhere = AddressEntry(client.core, "queue/b", 1)
    assert client.publish(nowhere, b"a", token=1) == RELEASED
    assert client.publish(nowhere, b"a") == 0
    assert client.outcomes == [(1, RELEASED, None)]


def test_an_acknowledgement_frees_the_item(queue: Queue, client: BasicClient) -> None:
    client.consume(queue.store)
    for text in (b"a", b"b", b"c"):
        client.publish(queue.entry, text)
    assert [arrival.tag for arrival in client.take()] == [1, 2, 3]
    assert client.settle(2) == 1
    assert queue.store.depth == 2
    assert client.settle(3, multiple=True) == 2
    assert queue.store.depth == 0
    assert queue.count("accepted") == 3


@pytest.mark.parametrize(("tag", "multiple"), [(0, False), (2, False), (4, True), (99, False)])
def test_an_unknown_tag_settles_nothing(
    queue: Queue, client: BasicClient, tag: int, multiple: bool
) -> None:
    client.consume(queue.store)
    for text in (b"a", b"b", b"c"):
        client.publish(queue.entry, text)
    client.settle(2)
    assert client.settle(tag, multiple=multiple) == 0
    assert queue.store.depth == 2


def test_tag_zero_with_multiple_is_all(queue: Queue, client: BasicClient) -> None:
    client.consume(queue.store)
    for text in (b"a", b"b", b"c"):
        client.publish(queue.entry, text)
    assert client.settle(0, multiple=True) == 3
    assert client.settle(0, multiple=True) == 0
    assert client.channel.unsettled == 0


def test_without_acknowledgements_all_is_settled_as_it_goes(
    queue: Queue, client: BasicClient
) -> None:
    consumer = client.consume(queue.store, no_ack=True)
    client.publish(queue.entry, b"a")
    client.publish(queue.entry, b"b")
    assert bodies(client) == ["a", "b"]
    assert (queue.store.depth, consumer.unsettled, client.channel.unsettled) == (0, 0, 0)


def test_without_acknowledgements_nothing_comes_while_the_channel_has_no_room(
    queue: Queue, client: BasicClient
) -> None:
    other = Store(queue.core, 8)
    entry = AddressEntry(queue.core, "queue/other", BALANCED_CODE)
    entry.add_outlet(other)
    client.channel.prefetch = 1
    client.consume(queue.store)
    client.consume(other, no_ack=True)
    client.publish(entry, b"before")
    client.publish(entry, b"counts for nothing")
    client.publish(queue.entry, b"fills it")
    client.publish(entry, b"after")
    assert bodies(client) == ["before", "counts for nothing", "fills it"]
    client.settle(3)
    assert bodies(client) == ["after"]


def test_a_consumer_has_no_more_than_its_prefetch(queue: Queue, client: BasicClient) -> None:
    consumer = client.consume(queue.store, prefetch=2)
    for text in (b"a", b"b", b"c", b"d", b"e"):
        client.publish(queue.entry, text)
    assert bodies(client) == ["a", "b"]
    assert consumer.credit == 0
    client.settle(1)
    assert bodies(client) == ["c"]
    client.settle(3, multiple=True)
    assert bodies(client) == ["d", "e"]


def test_consumers_share_their_channels_prefetch(queue: Queue, client: BasicClient) -> None:
    client.channel.prefetch = 3
    client.consume(queue.store, b"one")
    client.consume(queue.store, b"two")
    for text in (b"a", b"b", b"c", b"d", b"e"):
        client.publish(queue.entry, text)
    assert [arrival.consumer_tag for arrival in client.take()] == ["one", "two", "one"]
    client.settle(2, multiple=True)
    assert bodies(client) == ["d", "e"]
    client.channel.prefetch = 0
    client.publish(queue.entry, b"f")
    assert bodies(client) == ["f"]


def test_consumers_take_turns_where_their_channel_has_room_for_one(client: BasicClient) -> None:
    client.channel.prefetch = 1
    for number, name in enumerate("abc"):
        store, entry = Store(client.core, number), AddressEntry(client.core, name, BALANCED_CODE)
        entry.add_outlet(store)
        client.consume(store, name.encode())
        for _ in range(3):
            client.publish(entry, b"x")
    found = []
    for tag in range(1, 10):
        found += [arrival.consumer_tag for arrival in client.take()]
        client.settle(tag)
    assert set(found[:4]) == {"a", "b", "c"}
    assert [found.count(name) for name in "abc"] == [3, 3, 3]


def test_get_is_not_bounded_by_the_prefetch_and_does_not_count(
    queue: Queue, client: BasicClient
) -> None:
    client.channel.prefetch = 1
    client.consume(queue.store)
    for text in (b"a", b"b", b"c", b"d"):
        client.publish(queue.entry, text)
    assert bodies(client) == ["a"]
    got = client.get(queue.store)
    assert got is not None
    assert got.text == "b"
    client.settle(1)
    assert bodies(client) == ["c"]


@pytest.mark.parametrize("settled", [(), (1,), (2, 5), (5,), (1, 2, 3, 4, 5)])
def test_a_channel_tells_which_tags_it_has(
    queue: Queue, client: BasicClient, settled: tuple[int, ...]
) -> None:
    assert client.channel.unacknowledged_tags(0) == []
    client.consume(queue.store)
    for _ in range(5):
        client.publish(queue.entry, b"x")
    for tag in settled:
        client.settle(tag)
    left = [tag for tag in range(1, 6) if tag not in settled]
    assert client.channel.unacknowledged_tags(0) == left
    assert client.channel.unacknowledged_tags(3) == [tag for tag in left if tag <= 3]
    assert client.channel.unacknowledged_tags(2**64 - 1) == left
    assert [tag for tag in range(7) if client.channel.holds(tag)] == left


def test_a_stopped_channel_delivers_nothing(queue: Queue, client: BasicClient) -> None:
    client.consume(queue.store)
    client.channel.is_stopped = True
    client.publish(queue.entry, b"a")
    assert bodies(client) == []
    client.channel.is_stopped = False
    assert bodies(client) == ["a"]


def test_what_is_given_back_comes_again_at_its_place(queue: Queue, client: BasicClient) -> None:
    client.consume(queue.store, prefetch=2)
    for text in (b"a", b"b", b"c"):
        client.publish(queue.entry, text)
    client.take()
    assert client.requeue(1) == 1
    assert [(a.text, a.redelivered, a.tag) for a in client.take()] == [("a", True, 3)]


def test_recover_gives_back_all_in_order(queue: Queue, client: BasicClient) -> None:
    client.consume(queue.store)
    for text in (b"a", b"b"):
        client.publish(queue.entry, text)
    client.take()
    assert client.channel.recover() == 2
    assert [(a.text, a.redelivered) for a in client.take()] == [("a", True), ("b", True)]


def test_a_rejected_item_is_dead(queue: Queue, client: BasicClient) -> None:
    client.consume(queue.store)
    client.publish(queue.entry, b"a")
    client.take()
    client.settle(1, code=REJECTED)
    assert [(why, text) for why, text, _, _ in queue.dead] == [("rejected", "a")]


def test_an_ended_channel_gives_back_to_a_queue_that_redelivers(
    queue: Queue, client: BasicClient
) -> None:
    queue.store.redelivers_in_doubt = True
    client.consume(queue.store)
    client.publish(queue.entry, b"a")
    client.publish(queue.entry, b"b")
    other = BasicClient(queue.core)
    client.channel.close()
    other.consume(queue.store)
    assert [(a.text, a.redelivered) for a in other.take()] == [("a", True), ("b", True)]
    assert queue.count("in-doubt") == 0


def test_an_ended_channel_leaves_in_doubt_what_is_never_given_twice(
    queue: Queue, client: BasicClient
) -> None:
    client.consume(queue.store)
    client.publish(queue.entry, b"a")
    client.channel.close()
    assert queue.count("in-doubt") == 1


def test_what_a_cancelled_consumer_has_is_still_acknowledged(
    queue: Queue, client: BasicClient
) -> None:
    consumer = client.consume(queue.store)
    client.publish(queue.entry, b"a")
    queue.store.remove_consumer(consumer)
    consumer.detach()
    client.publish(queue.entry, b"b")
    assert bodies(client) == ["a"]
    assert not consumer.detached
    assert client.settle(1) == 1
    assert consumer.detached
    assert queue.store.depth == 1


def test_get_takes_one_message_at_once(queue: Queue, client: BasicClient) -> None:
    assert client.get(queue.store) is None
    client.publish(queue.entry, b"a", exchange="e", key="k")
    client.publish(queue.entry, b"b")
    found = client.get(queue.store)
    assert found is not None
    assert (found.text, found.exchange, found.key, found.message_count) == ("a", "e", "k", 1)
    assert client.settle(found.tag) == 1
    last = client.get(queue.store, no_ack=True)
    assert last is not None
    assert (last.text, last.message_count) == ("b", 0)
    assert queue.store.depth == 0


def test_get_does_not_count_for_a_prefetch_of_its_channel(
    queue: Queue, client: BasicClient
) -> None:
    for text in (b"a", b"b"):
        client.publish(queue.entry, text)
    assert client.get(queue.store) is not None
    assert client.get(queue.store) is not None


def test_a_durable_message_is_known_by_its_delivery_mode(queue: Queue, client: BasicClient) -> None:
    client.publish(queue.entry, b"a")
    client.publish(queue.entry, b"b", properties=PERSISTENT)
    assert queue.count("durable-in-memory") == 1


def test_a_message_expires_as_its_expiration_says(queue: Queue, client: BasicClient) -> None:
    client.publish(queue.entry, b"a", properties=BasicProperties(expiration="1000"))
    client.publish(queue.entry, b"b", properties=BasicProperties(expiration="60000"))
    queue.later(2.0)
    assert [(why, text) for why, text, _, _ in queue.dead] == [("expired", "a")]
    client.consume(queue.store)
    assert bodies(client) == ["b"]


def test_priorities_are_heeded(queue: Queue, client: BasicClient) -> None:
    for body, priority in ((b"low", 1), (b"none", None), (b"high", 9)):
        client.publish(queue.entry, body, properties=BasicProperties(priority=priority))
    client.consume(queue.store)
    assert bodies(client) == ["high", "low", "none"]


@pytest.mark.parametrize("levels", [2, 3, 6, 10, 11, 64, 65, 254])
def test_levels_are_counted_from_the_lowest(levels: int) -> None:
    queue = Queue(priorities=levels)
    client = BasicClient(queue.core)
    for priority in range(levels + 2):
        properties = BasicProperties(priority=priority)
        client.publish(queue.entry, b"%d" % priority, properties=properties)
    client.consume(queue.store)
    highest = list(range(levels - 1, levels + 2))
    expected = [*highest, *range(levels - 2, -1, -1)]
    assert [int(body) for body in bodies(client)] == expected


def test_a_message_id_is_the_same_by_either_protocol() -> None:
    queue = Queue(deduplication_window_s=60.0)
    client = BasicClient(queue.core)
    client.publish(queue.entry, b"a", properties=BasicProperties(message_id="one"))
    client.publish(queue.entry, b"b", properties=BasicProperties(message_id="one"))
    queue.send("c", properties=Properties(message_id="one"))
    assert queue.store.depth == 1


def test_damaged_properties_are_refused(queue: Queue, client: BasicClient) -> None:
    damaged = b"\x80\x00\x05ab"  # a content type that is shorter than it says
    assert client.channel.publish(queue.entry, b"", b"a", damaged, b"", token=1) == REJECTED
    assert queue.count("malformed") == 1


def test_links_get_what_a_channel_publishes(queue: Queue, client: BasicClient) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    client.publish(queue.entry, b"a", exchange="e", key="k", properties=PERSISTENT)
    arrivals = consumer.take()
    assert texts(arrivals) == ["a"]
    message = Message.decode(arrivals[0].message)
    assert message.durable
    assert message.subject == "k"
    assert message.annotations["x-exchange"] == "e"


def test_channels_get_what_a_link_sends(queue: Queue, client: BasicClient) -> None:
    client.consume(queue.store)
    queue.send("a")
    (arrival,) = client.take()
    assert (arrival.text, arrival.redelivered) == ("a", False)
    client.requeue(arrival.tag)
    assert [(a.text, a.redelivered) for a in client.take()] == [("a", True)]


def test_subscribers_of_an_address_get_whole_messages(client: BasicClient) -> None:
    topic = AddressEntry(client.core, "topic/a", MULTICAST_CODE)
    consumer = client.channel.consumer(b"c", no_ack=True)
    topic.add_outlet(consumer)
    assert client.publish(topic, b"a", token=3) == ACCEPTED
    assert bodies(client) == ["a"]


def test_an_anycast_address_holds_what_its_consumer_has_no_room_for(client: BasicClient) -> None:
    direct = AddressEntry(client.core, "direct/a", 1)
    consumer = client.channel.consumer(b"c", prefetch=1)
    direct.add_outlet(consumer)
    client.publish(direct, b"a", token=1)
    client.publish(direct, b"b", token=2)
    assert bodies(client) == ["a"]
    assert direct.held == 1
    client.settle(1)
    assert bodies(client) == ["b"]
    assert client.outcomes == [(1, ACCEPTED, None)]


def test_too_much_that_waits_stops_its_connection(queue: Queue, client: BasicClient) -> None:
    queue.store.maximum_length = 1
    for _ in range(10):
        client.publish(queue.entry, bytes(1 << 20), token=1)
    assert client.backlogs == [True]
    queue.store.maximum_length = 0
    client.consume(queue.store, no_ack=True)
    client.take()
    assert client.backlogs == [True, False]


def test_many_unacknowledged_ones_are_all_known(queue: Queue, client: BasicClient) -> None:
    client.consume(queue.store)
    client.publish(queue.entry, b"oldest")
    for _ in range(70_000):
        client.channel.publish(queue.entry, b"", b"a", b"\x00\x00", b"x")
        client.channel.acknowledge(client.channel.last_tag, False, ACCEPTED)
        client.wire.take_output()
    assert client.channel.unsettled == 1
    assert client.settle(1) == 1
    assert queue.store.depth == 0


def test_an_acknowledgement_that_is_awaited_holds_what_is_said_behind_it() -> None:
    queue = KeptQueue()
    client = BasicClient(queue.core)
    client.publish(queue.entry, b"a", properties=PERSISTENT)
    queue.commit()
    client.consume(queue.store)
    queue.commit()
    assert len(client.take()) == 1
    assert client.channel.acknowledge(1, False, ACCEPTED, is_awaited=True) == 1
    client.wire.write(b"commit-ok")
    queue.core.flush()
    assert client.wire.sendable_bytes == 0
    queue.commit()
    assert client.wire.take_output() == b"commit-ok"
    assert queue.store.depth == 0
