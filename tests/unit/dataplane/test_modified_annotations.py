"""What consumers add to the annotations of an item as they give it back (AMQP 1.0 §3.4.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kept_queues import KeptQueue
from text_messages import text_of

from cogwork.amqp.codec import encode
from cogwork.amqp.message import Header, Properties, decode_sections
from cogwork.amqp.outcomes import Modified
from cogwork.amqp.types import Symbol, UInt
from cogwork.dataplane.queue.store import SETTLE_CODE

if TYPE_CHECKING:
    import peers

MINE: dict[Symbol, object] = {Symbol("x-opt-mine"): UInt(1), Symbol("x-opt-try"): "first"}
WHY: dict[Symbol, object] = {Symbol("x-opt-try"): "second", Symbol("x-opt-why"): [1, "busy", None]}
MERGED = {**MINE, **WHY}


@pytest.fixture
def queue() -> KeptQueue:
    return KeptQueue()


def given(queue: KeptQueue, consumer: peers.Peer) -> list[peers.Arrival]:
    """What a consumer has got by now."""
    queue.core.flush()
    queue.commit()
    consumer.hear()
    return consumer.take()


def give_back(queue: KeptQueue, state: Modified, **sections: object) -> bytes:
    """Send a message, has a consumer give it back, and return it as the next one gets it."""
    consumer = queue.peer()
    link = consumer.consumer(queue.store, 1)
    queue.send("x" * 100, **sections)
    (item,) = given(queue, consumer)
    consumer.settle(item, state)
    consumer.detach(queue.store, link)
    other = queue.peer()
    other.consumer(queue.store, 1)
    (again,) = given(queue, other)
    return again.message


@pytest.mark.parametrize(
    ("there", "added", "expected"),
    [
        (None, WHY, WHY),
        (MINE, WHY, MERGED),
        (MINE, {}, MINE),
        (MINE, None, MINE),
        (MINE, {Symbol("x-opt-mine"): None}, {**MINE, Symbol("x-opt-mine"): None}),
    ],
)
@pytest.mark.parametrize(
    "front",
    [{}, {"header": Header(durable=True, priority=7), "delivery_annotations": {Symbol("hop"): 1}}],
)
def test_they_are_merged_into_those_of_the_message(
    queue: KeptQueue,
    front: dict[str, object],
    there: dict[Symbol, object] | None,
    added: dict[Symbol, object] | None,
    expected: dict[Symbol, object],
) -> None:
    properties = Properties(message_id="m")
    message = give_back(
        queue,
        Modified(message_annotations=added),
        message_annotations=there,
        properties=properties,
        application_properties={"a": 1},
        **front,
    )
    sections = decode_sections(message)
    assert sections.message_annotations == expected
    assert sections.delivery_annotations == front.get("delivery_annotations")
    assert (sections.properties, sections.application_properties) == (properties, {"a": 1})
    assert (sections.header or Header()).durable == bool(front)
    assert message.endswith(b"x" * 100)


@pytest.mark.parametrize("is_rewritten", [False, True])
def test_they_and_the_attempts_are_there_after_a_restart(
    queue: KeptQueue, is_rewritten: bool
) -> None:
    consumer = queue.peer()
    link = consumer.consumer(queue.store, 1)
    queue.send("a", "b", message_annotations=MINE)
    for _ in range(2):
        (item,) = given(queue, consumer)
        consumer.settle(item, Modified(delivery_failed=True, message_annotations=WHY))
        consumer.flow(link, 1)
    (item,) = given(queue, consumer)
    again = (queue.checkpointed() if is_rewritten else queue).restarted()
    assert again.texts() == ["b", "a"]
    (_, _), (message, facts) = again.store.peek(2)
    assert decode_sections(message).message_annotations == MERGED
    assert (facts["state"], facts["attempts"], facts["failures"]) == ("in-doubt", 3, 2)


def test_an_item_has_them_that_dies_of_its_last_attempt() -> None:
    queue = KeptQueue(accepts_dead=False)
    queue.store.maximum_delivery_count = 1
    consumer = queue.peer()
    consumer.consumer(queue.store, 1)
    queue.send("a", message_annotations=MINE)
    (item,) = given(queue, consumer)
    consumer.settle(item, Modified(delivery_failed=True, message_annotations=WHY))
    queue.core.flush()
    again = queue.restarted()
    again.core.flush()
    for _, why, message, _, failures, _ in (*queue.dead_letters, *again.dead_letters):
        assert (why, failures) == ("delivery-count-exceeded", 1)
        assert decode_sections(message).message_annotations == MERGED
    assert (len(queue.dead_letters), len(again.dead_letters)) == (1, 1)


def test_an_item_in_doubt_gets_them_by_its_claim(queue: KeptQueue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 1)
    queue.send("a")
    (item,) = given(queue, consumer)
    consumer.vanish(queue.store)
    assert queue.count("in-doubt") == 1
    state = encode(Modified(message_annotations=WHY).to_described())
    _, number, attempt = item.parts
    assert queue.store.claim(number, attempt, 0x27, state) == SETTLE_CODE
    other = queue.peer()
    other.consumer(queue.store, 1)
    (again,) = given(queue, other)
    assert decode_sections(again.message).message_annotations == WHY


def test_groups_stay_in_order_and_bytes_are_counted() -> None:
    queue = KeptQueue(is_ordered=True)
    consumer = queue.peer()
    link = consumer.consumer(queue.store, 3)
    queue.send("a", "b", "c", properties=Properties(group_id="g"))
    before = queue.count("bytes")
    items = given(queue, consumer)
    for item in (items[1], items[0]):
        consumer.settle(item, Modified(message_annotations={Symbol("n"): "x" * 1000}))
    assert before + 2000 < queue.count("bytes") < before + 2100
    consumer.settle(items[2])
    consumer.flow(link, 3)
    again = given(queue, consumer)
    assert [text_of(item.message) for item in again] == ["a", "b"]
    for item in again:
        consumer.settle(item)
    assert (queue.count("bytes"), queue.count("depth"), queue.count("groups")) == (0, 0, 0)


@pytest.mark.parametrize("there", [10, 60_000])
def test_what_would_grow_too_large_stays_as_it_is(queue: KeptQueue, there: int) -> None:
    annotations: dict[Symbol, object] = {Symbol("there"): "x" * there}
    added: dict[Symbol, object] = {Symbol(f"n{number}"): "x" * 5000 for number in range(2)}
    for _ in range(10):
        message = give_back(
            queue, Modified(message_annotations=added), message_annotations=annotations
        )
        queue.store.purge()
    kept = annotations if there > 50_000 else annotations | added
    assert decode_sections(message).message_annotations == kept


def test_a_message_that_is_given_back_for_ever_does_not_grow_for_ever(queue: KeptQueue) -> None:
    consumer = queue.peer()
    link = consumer.consumer(queue.store, 1)
    queue.send("a")
    for number in range(50):
        (item,) = given(queue, consumer)
        added: dict[Symbol, object] = {Symbol(f"n{number}"): "x" * 5000}
        consumer.settle(item, Modified(message_annotations=added))
        consumer.flow(link, 1)
    assert 50_000 < queue.count("bytes") < 70_000


@pytest.mark.parametrize(
    "state",
    [
        b"\x00\x53\x27\xc0\x06\x03\x42\x42\xc1\x02\x01\x40",  # a key without a value
        b"\x00\x53\x27\xc0\x06\x03\x42\x42\xc1\xff\x02\x40",  # beyond the state's end
        b"\x00\x53\x27\xc0\x09\x03\x42\x42\xc1\x05\x02\xc0\x01\x00\x40",  # a list as a key
        b"\x00\x53\x27\xc0\x05\x03\x42\x42\xc0\x01\x00",  # a list
        b"\x00\x53\x27\xc0\x04\x03\x42\x42\x40",
        b"\x00\x53\x27\x45",
    ],
)
def test_what_is_no_map_of_annotations_changes_nothing(queue: KeptQueue, state: bytes) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 1)
    queue.send("a", message_annotations=MINE)
    (item,) = given(queue, consumer)
    assert queue.store.claim(item.parts.item, item.parts.attempt, 0x27, state) == SETTLE_CODE
    ((message, facts),) = queue.store.peek(1)
    assert decode_sections(message).message_annotations == MINE
    assert facts["state"] == "ready"
