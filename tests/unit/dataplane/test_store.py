"""A queue's store, as its publishers and consumers see it."""

from __future__ import annotations

import time

import peers
import pytest

from cogwork.amqp.errors import AmqpError
from cogwork.amqp.message import (
    Data,
    Header,
    Properties,
    Sections,
    decode_sections,
    encode_sections,
)
from cogwork.amqp.outcomes import Accepted, Modified, Received, Rejected, Released
from cogwork.amqp.types import Symbol, Timestamp, UInt, ULong
from cogwork.dataplane.core import Core
from cogwork.dataplane.entry import BALANCED_CODE, AddressEntry
from cogwork.dataplane.store import KEEP_CODE, SETTLE_CODE, STALE_CODE, Store

RECEIVED = Received(section_number=0, section_offset=0)


def message(text: str, **sections: object) -> bytes:
    return encode_sections(Sections(body=Data([text.encode()]), **sections))  # type: ignore[arg-type]  # whatever a test needs


def text_of(data: bytes) -> str:
    body = decode_sections(data).body
    assert isinstance(body, Data)
    return body.parts[0].decode()


def texts(arrivals: list[peers.Arrival]) -> list[str]:
    return [text_of(arrival.message) for arrival in arrivals]


class Queue:
    """A store behind an address, with one publisher and as many consumers as a test asks for."""

    def __init__(self, **options: object) -> None:
        self.core = Core()
        self.store = Store(self.core, 7, **options)  # type: ignore[arg-type]  # whatever a test needs
        self.store.handler = self
        self.store.keeps_dead = True
        self.entry = AddressEntry(self.core, "queue/a", BALANCED_CODE)
        self.entry.add_outlet(self.store)
        self.store.inlet = self.entry
        self.dead: list[tuple[str, str, bytes | None, int]] = []
        self.publisher = self.peer()
        self.link = self.publisher.publisher(self.entry)

    def peer(self, **options: int) -> peers.Peer:
        return peers.Peer(self.core, **options)

    def send(self, *texts: str, settled: bool = False, **sections: object) -> None:
        for text in texts:
            self.publisher.send(self.link, message(text, **sections), settled=settled)

    def on_batch(self, store: Store) -> None:
        self.dead += [
            (why, text_of(data), error, failures)
            for why, data, error, failures in store.take_exceptions()
        ]

    def later(self, seconds: float) -> None:
        self.store.tick(time.monotonic() + seconds)
        self.core.flush()

    def count(self, name: str) -> int:
        counted = self.store.counts()[name]
        assert isinstance(counted, int)
        return counted


@pytest.fixture
def queue() -> Queue:
    return Queue()


# -- in and out


def test_messages_wait_in_order_for_a_consumer(queue: Queue) -> None:
    queue.send("a", "b", "c")
    consumer = queue.peer()
    link = consumer.consumer(queue.store)
    assert consumer.take() == []
    consumer.flow(link, 2)
    assert texts(consumer.take()) == ["a", "b"]
    consumer.flow(link, 2)
    assert texts(consumer.take()) == ["c"]


def test_taken_is_accepted_at_once(queue: Queue) -> None:
    queue.send("a", "b", "c")
    said = queue.publisher.dispositions
    assert [d.state for d in said] == [Accepted()] * 3
    assert all(d.settled for d in said)


def test_an_accept_frees_the_item_and_confirms_to_those_who_wait_for_it(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a", "b")
    first, second = consumer.take()
    consumer.settle(first, settled=False)
    assert [(d.first, d.settled, d.state) for d in consumer.dispositions] == [
        (first.delivery_id, True, Accepted())
    ]
    consumer.settle(second)
    assert queue.store.depth == 0
    assert queue.count("accepted") == 2


def test_a_tag_names_shard_item_and_attempt(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a", "b")
    first, second = (arrival.parts for arrival in consumer.take())
    assert (first.shard, first.attempt) == (7, 1)
    assert first.item != second.item


def test_presettled_both_ways_leaves_nothing_behind(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10, presettles=True)
    queue.send("a", "b", settled=True)
    assert [a.settled for a in consumer.take()] == [True, True]
    assert queue.store.depth == 0
    assert queue.publisher.dispositions == []


def test_consumers_with_credit_are_served_strictly_in_turn(queue: Queue) -> None:
    consumers = [queue.peer() for _ in range(3)]
    for consumer in consumers:
        consumer.consumer(queue.store, 2)
    queue.send(*"abcdefgh")
    assert [texts(consumer.take()) for consumer in consumers] == [
        ["a", "d"],
        ["b", "e"],
        ["c", "f"],
    ]
    assert queue.count("ready") == 2


def test_a_large_message_keeps_its_tag(queue: Queue) -> None:
    consumer = queue.peer(frame_size=512)
    consumer.consumer(queue.store, 10)
    queue.send("x" * 5000)
    (arrival,) = consumer.take()
    assert len(text_of(arrival.message)) == 5000
    assert arrival.parts.attempt == 1


def test_drain_gives_what_there_is_and_takes_the_rest_of_the_credit(queue: Queue) -> None:
    queue.send("a")
    consumer = queue.peer()
    link = consumer.consumer(queue.store)
    consumer.flow(link, 10, drain=True)
    assert texts(consumer.take()) == ["a"]
    assert consumer.flows[-1].link_credit == 0
    queue.send("b")
    assert consumer.take() == []


def test_a_run_of_messages_is_answered_in_one_range(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 100)
    texts_sent = [f"{number:60}" for number in range(50)]
    queue.publisher.send_run(queue.link, [message(text) for text in texts_sent])
    assert [(d.first, d.last) for d in queue.publisher.dispositions] == [(0, 49)]
    arrived = consumer.take()
    assert texts(arrived) == texts_sent
    consumer.settle(arrived[0], last=arrived[-1])
    assert queue.store.depth == 0


def test_in_a_run_each_message_gets_its_own_answer() -> None:
    queue = Queue(deduplication_window_s=60.0)
    queue.store.maximum_length = 3
    queue.store.policy = "reject"
    long = "x" * 80
    run = [message(long, properties=Properties(message_id=f"{id_}")) for id_ in "abacdef"]
    run[1] = b"\x00\x53\x70\xc0\xff" + run[1]
    queue.publisher.send_run(queue.link, run)
    said = queue.publisher.outcomes()
    assert [type(said[number]).__name__ for number in range(7)] == [
        *("Accepted", "Rejected", "Accepted", "Accepted", "Accepted"),
        *("Rejected", "Rejected"),
    ]
    assert queue.store.depth == 3


def test_a_run_that_fills_the_store_goes_on_later(queue: Queue) -> None:
    queue.store.maximum_length = 4
    run = [message(f"{number:80}") for number in range(10)]
    queue.publisher.send_run(queue.link, run)
    assert queue.store.depth == 4
    assert len(queue.publisher.outcomes()) == 4
    taken = []
    while queue.store.depth:
        taken += [int(text_of(data)) for data in queue.store.take_ready(3)]
        queue.later(0)
    assert taken == list(range(10))
    assert len(queue.publisher.outcomes()) == 10


def test_malformed_sections_are_rejected_by_name(queue: Queue) -> None:
    queue.publisher.send(queue.link, b"\x00\x53\x70\xc0\xff")
    state = queue.publisher.dispositions[-1].state
    assert isinstance(state, Rejected)
    assert state.error is not None
    assert state.error.condition == "amqp:decode-error"


# -- order


def test_higher_priorities_go_first_and_each_is_in_order(queue: Queue) -> None:
    for priority, text in ((4, "a"), (9, "b"), (0, "c"), (9, "d"), (200, "e")):
        queue.send(text, header=Header(priority=priority))
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    assert texts(consumer.take()) == ["b", "d", "e", "a", "c"]


def test_fewer_levels_put_the_default_in_the_middle() -> None:
    queue = Queue(priorities=2)
    for priority in (9, 4, 5, 0):
        queue.send(str(priority), header=Header(priority=priority))
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    assert texts(consumer.take()) == ["9", "5", "4", "0"]


def test_what_is_released_goes_back_to_its_old_place(queue: Queue) -> None:
    consumer, other = queue.peer(), queue.peer()
    consumer.consumer(queue.store, 3)
    queue.send(*"abcde")
    a, b, c = consumer.take()
    consumer.settle(c, Released())
    consumer.settle(a, Released())
    consumer.settle(b)
    other.consumer(queue.store, 10)
    assert texts(other.take()) == ["a", "c", "d", "e"]


def test_released_is_not_counted_but_a_failure_is(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a", header=Header(durable=True, priority=7, first_acquirer=True))
    (first,) = consumer.take()
    consumer.settle(first, Released())
    (second,) = consumer.take()
    assert decode_sections(second.message).header == Header(durable=True, priority=7)
    consumer.settle(second, Modified(delivery_failed=True))
    (third,) = consumer.take()
    assert decode_sections(third.message).header == Header(
        durable=True, priority=7, delivery_count=1
    )
    assert [a.parts.attempt for a in (first, second, third)] == [1, 2, 3]
    assert len({a.parts.item for a in (first, second, third)}) == 1


def test_undeliverable_here_goes_to_others_only(queue: Queue) -> None:
    picky, other = queue.peer(), queue.peer()
    picky.consumer(queue.store, 10)
    queue.send("a", "b")
    a, _b = picky.take()
    picky.settle(a, Modified(undeliverable_here=True))
    assert picky.take() == []
    queue.send("c")
    assert texts(picky.take()) == ["c"]
    other.consumer(queue.store, 10)
    assert texts(other.take()) == ["a"]


def disorder(queue: Queue) -> list[int]:
    return [queue.count(f"disorder-{each}") for each in ("p50", "p99", "maximum")]


def test_disorder_is_how_many_came_later_and_went_out_before(queue: Queue) -> None:
    assert disorder(queue) == [0, 0, 0]
    for priority in (0, 9, 9, 9, 9, 9, 9, 5):
        queue.send("a", header=Header(priority=priority))
    consumer = queue.peer()
    link = consumer.consumer(queue.store, 7)
    assert disorder(queue) == [0, 0, 0]
    consumer.flow(link, 1)
    assert disorder(queue) == [0, 7, 7]


def test_only_first_attempts_are_counted_in_disorder(queue: Queue) -> None:
    consumer = queue.peer()
    link = consumer.consumer(queue.store, 3)
    queue.send(*"abc")
    first = consumer.take()[0]
    consumer.settle(first, Released())
    consumer.flow(link, 1)
    assert texts(consumer.take()) == ["a"]
    assert disorder(queue) == [0, 0, 0]


def test_a_delayed_item_comes_when_its_time_has_come(queue: Queue) -> None:
    queue.send("a", message_annotations={Symbol("x-opt-delivery-delay"): UInt(60_000)})
    queue.send("b")
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.later(61)
    assert texts(consumer.take()) == ["b", "a"]
    assert disorder(queue) == [0, 0, 0]


def test_what_never_went_out_overtook_nobody(queue: Queue) -> None:
    queue.send("low", header=Header(priority=0))
    queue.send("old", "old", header=Header(ttl=UInt(1_000), priority=9))
    queue.later(2)
    queue.send("high", header=Header(priority=9))
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    assert texts(consumer.take()) == ["high", "low"]
    assert disorder(queue) == [0, 1, 1]


def test_disorder_of_long_ago_is_forgotten(queue: Queue) -> None:
    consumer = queue.peer()
    link = consumer.consumer(queue.store)
    for priority in (4, 9):
        queue.send("a", header=Header(priority=priority))
    consumer.flow(link, 2)
    queue.later(61)
    assert disorder(queue) == [0, 1, 1]
    consumer.flow(link, 1)
    queue.send("b")
    queue.later(122)
    assert disorder(queue) == [0, 0, 0]


# -- attempts that fail


def test_a_rejected_item_is_dead_with_the_error(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    error = AmqpError(condition=Symbol("app:broken"), description="no such customer")
    consumer.settle(consumer.take()[0], Rejected(error=error))
    ((why, text, state, failures),) = queue.dead
    assert (why, text, failures) == ("rejected", "a", 0)
    assert state is not None
    assert b"no such customer" in state
    assert queue.store.depth == 0


def test_an_item_that_failed_too_often_is_dead(queue: Queue) -> None:
    queue.store.maximum_delivery_count = 2
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    for _ in range(2):
        consumer.settle(consumer.take()[0], Modified(delivery_failed=True))
    assert consumer.take() == []
    assert queue.dead == [("delivery-count-exceeded", "a", None, 2)]


def test_the_dead_are_only_counted_where_nobody_wants_them(queue: Queue) -> None:
    queue.store.keeps_dead = False
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    consumer.settle(consumer.take()[0], Rejected())
    assert queue.dead == []
    assert queue.count("rejected") == 1


# -- consumers that vanish


def test_what_the_application_never_had_goes_back_uncounted(queue: Queue) -> None:
    consumer, other = queue.peer(), queue.peer()
    consumer.consumer(queue.store, 10, marks_received=True)
    queue.send("a", "b")
    first, _ = consumer.take()
    consumer.settle(first, RECEIVED, settled=False)
    consumer.vanish(queue.store)
    other.consumer(queue.store, 10)
    (again,) = other.take()
    assert text_of(again.message) == "b"
    assert (decode_sections(again.message).header or Header()) == Header(first_acquirer=False)
    assert queue.count("in-doubt") == 1


def test_a_doubtful_item_is_parked_with_the_dead_after_a_while(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    consumer.take()
    consumer.vanish(queue.store)
    queue.later(29)
    assert queue.count("in-doubt") == 1
    queue.later(31)
    assert queue.dead == [("in-doubt", "a", None, 0)]
    assert queue.store.depth == 0


def test_or_it_is_delivered_again_and_says_so(queue: Queue) -> None:
    queue.store.redelivers_doubtful = True
    consumer, other = queue.peer(), queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    (first,) = consumer.take()
    consumer.vanish(queue.store)
    other.consumer(queue.store, 10)
    queue.later(31)
    (again,) = other.take()
    assert decode_sections(again.message).header == Header(delivery_count=1)
    assert queue.store.claim(first.parts.item, 1) == STALE_CODE
    assert queue.store.claim(again.parts.item, 2) == SETTLE_CODE
    assert queue.count("stale-claims") == 1
    assert queue.count("accepted") == 1


def test_with_nowhere_to_park_it_an_item_stays_in_doubt(queue: Queue) -> None:
    queue.store.keeps_dead = False
    consumer, other = queue.peer(), queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a", "b")
    a, _ = consumer.take()
    consumer.vanish(queue.store)
    queue.later(31)
    assert queue.count("in-doubt") == queue.count("doubts-parked") == 2
    assert queue.store.claim(a.parts.item, 1) == SETTLE_CODE
    other.consumer(queue.store, 10)
    assert queue.store.redeliver_doubtful() == 1
    queue.core.flush()
    assert texts(other.take()) == ["b"]


def test_no_time_to_come_back_decides_at_once(queue: Queue) -> None:
    queue.store.in_doubt_timeout_s = 0
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    consumer.take()
    consumer.vanish(queue.store)
    assert [why for why, *_ in queue.dead] == ["in-doubt"]


def test_a_consumer_that_comes_back_keeps_its_attempts(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10, marks_received=True)
    queue.send("a", "b", "c")
    a, b, c = consumer.take()
    for arrival in (a, b, c):
        consumer.settle(arrival, RECEIVED, settled=False)
    consumer.settle(c, settled=False)
    consumer.vanish(queue.store)
    back = queue.peer()
    link = back.consumer(queue.store, marks_received=True)
    strange = (7).to_bytes(4, "big") + bytes(12)
    assert queue.store.resume(link, [a.tag, c.tag, strange, b"short"]) == [
        KEEP_CODE,
        SETTLE_CODE,
        STALE_CODE,
        STALE_CODE,
    ]
    queue.send("d")
    back.flow(link, 10)
    again, d = back.take()
    assert (again.tag, text_of(again.message)) == (a.tag, "a")
    assert d.parts.attempt == 1
    back.settle(again, settled=False)
    assert back.dispositions[-1].state == Accepted()
    queue.later(31)
    assert [text for _, text, *_ in queue.dead] == ["b"]
    assert queue.store.depth == 1


def test_what_was_resumed_may_be_lost_again(queue: Queue) -> None:
    consumer, back = queue.peer(), queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    (a,) = consumer.take()
    consumer.vanish(queue.store)
    link = back.consumer(queue.store)
    assert queue.store.resume(link, [a.tag]) == [KEEP_CODE]
    back.vanish(queue.store)
    assert queue.count("in-doubt") == 1
    assert queue.store.claim(a.parts.item, 1) == SETTLE_CODE


def test_a_claim_that_comes_again_is_confirmed_again(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10, marks_received=True)
    queue.send("a")
    (a,) = consumer.take()
    consumer.settle(a, RECEIVED, settled=False)
    consumer.settle(a, settled=False)
    consumer.vanish(queue.store)
    assert queue.store.claim(a.parts.item, 1) == SETTLE_CODE
    assert queue.store.claim(a.parts.item, 2) == STALE_CODE
    assert queue.count("accepted") == 1


def test_the_old_link_of_a_consumer_that_came_back_is_not_listened_to(queue: Queue) -> None:
    old, new = queue.peer(), queue.peer()
    old.consumer(queue.store, 10, marks_received=True)
    queue.send("a")
    (a,) = old.take()
    link = new.consumer(queue.store, marks_received=True)
    assert queue.store.resume(link, [a.tag]) == [KEEP_CODE]
    old.settle(a, settled=False)
    state = old.dispositions[-1].state
    assert isinstance(state, Rejected)
    assert state.error is not None
    assert state.error.condition == "cogwork:stale-attempt"
    old.vanish(queue.store)
    assert queue.count("in-doubt") == 0
    new.vanish(queue.store)
    assert queue.count("in-doubt") == 1


def test_a_large_delivery_that_was_cut_off_is_not_lost(queue: Queue) -> None:
    for presettles in (False, True):
        consumer = queue.peer(frame_size=512, window=3)
        consumer.consumer(queue.store, 10, presettles=presettles, marks_received=True)
        queue.send("x" * 5000)
        assert consumer.take() == []
        consumer.vanish(queue.store)
        assert queue.store.take_ready(1) != []
        assert queue.store.depth == 0


# -- time


def test_what_is_too_old_is_dead(queue: Queue) -> None:
    queue.send("a", header=Header(ttl=UInt(60_000)))
    queue.send("b")
    queue.later(59)
    assert queue.dead == []
    queue.later(61)
    assert queue.dead == [("expired", "a", None, 0)]
    queue.store.ttl_s = 10
    queue.send("c", header=Header(ttl=UInt(100_000)))
    queue.later(61 + 11)
    assert [text for _, text, *_ in queue.dead] == ["a", "c"]


def test_what_is_too_old_never_goes_out(queue: Queue) -> None:
    queue.send("a", header=Header(ttl=UInt(1)))
    queue.send("b")
    time.sleep(0.005)
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    assert texts(consumer.take()) == ["b"]
    assert queue.count("expired") == 1


def test_an_item_out_at_a_consumer_expires_only_when_it_comes_back(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a", header=Header(ttl=UInt(1000)))
    (a,) = consumer.take()
    queue.later(5)
    assert queue.dead == []
    consumer.settle(a, Released())
    assert [why for why, *_ in queue.dead] == ["expired"]


def test_the_ttl_is_shortened_by_the_time_that_was_spent_here(queue: Queue) -> None:
    queue.send("a", header=Header(ttl=UInt(60_000)))
    queue.later(20)
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    header = decode_sections(consumer.take()[0].message).header
    assert header is not None
    assert header.ttl is not None
    assert 39_000 < header.ttl <= 40_000


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("x-opt-delivery-delay", UInt(5000)),
        ("x-opt-delivery-delay", ULong(5000)),
        ("x-opt-delivery-delay", 5000),
        ("x-opt-delivery-time", lambda: Timestamp(int((time.time() + 5) * 1000))),
    ],
)
def test_a_message_may_ask_to_be_delivered_later(queue: Queue, key: str, value: object) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    asked = value() if callable(value) else value
    queue.send("later", message_annotations={Symbol(key): asked})
    queue.send("now")
    assert texts(consumer.take()) == ["now"]
    queue.later(4)
    assert consumer.take() == []
    queue.later(6)
    assert texts(consumer.take()) == ["later"]


# -- groups


def group(name: str) -> Properties:
    return Properties(group_id=name)


def test_a_group_goes_to_one_consumer_at_a_time() -> None:
    queue = Queue(is_ordered=True)
    one, two = queue.peer(), queue.peer()
    one.consumer(queue.store, 2)
    two.consumer(queue.store, 10)
    for text in ("a1", "b1", "a2", "b2", "a3"):
        queue.send(text, properties=group(text[0]))
    mine = one.take()
    assert texts(mine) == ["a1", "a2"]
    assert texts(two.take()) == ["b1", "b2"]
    one.settle(mine[0])
    assert two.take() == []
    one.settle(mine[1])
    assert texts(two.take()) == ["a3"]


def test_a_group_in_doubt_waits() -> None:
    queue = Queue(is_ordered=True)
    queue.store.redelivers_doubtful = True
    one, two = queue.peer(), queue.peer()
    one.consumer(queue.store, 10)
    queue.send("a1", "a2", properties=group("a"))
    one.take()
    one.vanish(queue.store)
    two.consumer(queue.store, 10)
    queue.send("a3", properties=group("a"))
    assert two.take() == []
    queue.later(31)
    assert texts(two.take()) == ["a1", "a2", "a3"]


def test_what_a_group_gets_back_goes_before_the_rest_of_it() -> None:
    queue = Queue(is_ordered=True)
    one = queue.peer()
    one.consumer(queue.store, 2)
    queue.send("a1", "a2", "a3", properties=group("a"))
    first, second = one.take()
    one.settle(second, Released())
    one.settle(first, Released())
    two = queue.peer()
    two.consumer(queue.store, 10)
    assert texts(two.take()) == ["a1", "a2", "a3"]
    assert queue.count("groups") == 1


# -- duplicates


def test_a_message_id_is_stored_once_within_the_window() -> None:
    queue = Queue(deduplication_window_s=60.0)
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    for message_id in (ULong(1), ULong(1), "1", b"1", ULong(300), ULong(300)):
        queue.send(repr(message_id), properties=Properties(message_id=message_id))
    arrived = consumer.take()
    assert len(arrived) == 4
    for arrival in arrived:
        consumer.settle(arrival)
    queue.send("again", properties=Properties(message_id="1"))
    assert consumer.take() == []
    assert queue.publisher.dispositions[-1].state == Accepted()
    assert queue.count("duplicates") == 3


def test_the_window_is_bounded_by_time_and_count() -> None:
    queue = Queue(deduplication_window_s=60.0, deduplication_count=100)
    for number in range(200):
        queue.send("x", properties=Properties(message_id=f"id-{number}"))
    queue.send("x", properties=Properties(message_id="id-150"))
    assert queue.count("duplicates") == 1
    queue.send("x", properties=Properties(message_id="id-10"))
    assert queue.count("duplicates") == 1
    queue.later(61)
    queue.send("x", properties=Properties(message_id="id-199"))
    assert queue.count("duplicates") == 1


# -- bounds


def test_a_full_store_blocks_its_publishers_until_there_is_room(queue: Queue) -> None:
    queue.store.maximum_length = 2
    queue.send(*"abcd")
    assert queue.store.depth == 2
    assert len(queue.publisher.dispositions) == 2
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    for arrival in consumer.take():
        consumer.settle(arrival)
    assert texts(consumer.take()) == ["c", "d"]
    queue.publisher.hear()
    assert sum(1 + (d.last or d.first) - d.first for d in queue.publisher.dispositions) == 4


def test_or_it_rejects(queue: Queue) -> None:
    queue.store.maximum_length = 1
    queue.store.policy = "reject"
    queue.send("a", "b")
    state = queue.publisher.dispositions[-1].state
    assert isinstance(state, Rejected)
    assert state.error is not None
    assert state.error.condition == "amqp:resource-limit-exceeded"
    assert queue.count("refused") == 1


def test_or_it_drops_the_oldest(queue: Queue) -> None:
    queue.store.maximum_bytes = 3 * len(message("a"))
    queue.store.policy = "drop-oldest"
    queue.send(*"abcde")
    assert [text for _, text, *_ in queue.dead] == ["a", "b"]
    assert [text_of(data) for data, _ in queue.store.peek(10)] == ["c", "d", "e"]


def test_but_not_what_waits_for_its_time(queue: Queue) -> None:
    queue.store.maximum_length = 2
    queue.store.policy = "drop-oldest"
    queue.send("a", "b", message_annotations={Symbol("x-opt-delivery-delay"): UInt(5000)})
    queue.send("c")
    assert queue.dead == [("maximum-length", "c", None, 0)]
    assert queue.store.depth == 2


def test_what_is_out_does_not_keep_new_messages_away(queue: Queue) -> None:
    queue.store.maximum_length = 2
    queue.store.policy = "drop-oldest"
    consumer = queue.peer()
    consumer.consumer(queue.store, 2)
    queue.send(*"abcd")
    assert texts(consumer.take()) == ["a", "b"]
    assert [text for _, text, *_ in queue.dead] == ["c"]


def test_a_policy_that_is_none_is_named(queue: Queue) -> None:
    with pytest.raises(ValueError, match="expected one of block, drop-oldest, reject"):
        queue.store.policy = "explode"


# -- those who choose, and those who only look


def test_a_selector_takes_what_it_likes_and_holds_up_nobody(queue: Queue) -> None:
    queue.send("a1", "b1", "a2", "b2")
    choosy, other = queue.peer(), queue.peer()
    link = choosy.consumer(queue.store, 1, selector=lambda data: text_of(data).startswith("b"))
    assert texts(choosy.take()) == ["b1"]
    queue.send("b3")
    choosy.flow(link, 10)
    mine = choosy.take()
    assert texts(mine) == ["b2", "b3"]
    choosy.settle(mine[0], Released())
    assert texts(choosy.take()) == ["b2"]
    queue.send("a3", "b4")
    assert texts(choosy.take()) == ["b4"]
    other.consumer(queue.store, 10)
    assert texts(other.take()) == ["a1", "a2", "a3"]


def test_browsers_see_everything_and_take_nothing(queue: Queue) -> None:
    queue.send("a", "b")
    looker, worker = queue.peer(), queue.peer()
    looker.consumer(queue.store, 10, is_browser=True)
    seen = looker.take()
    assert texts(seen) == ["a", "b"]
    looker.settle(seen[0])
    assert queue.store.depth == 2
    worker.consumer(queue.store, 1)
    (first,) = worker.take()
    queue.send("c")
    worker.settle(first, Released())
    assert texts(looker.take()) == ["c"]


# -- management


def test_peek_shows_and_purge_forgets_what_is_not_out(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 1)
    queue.send(*"abc")
    queue.send("d", message_annotations={Symbol("x-opt-delivery-delay"): UInt(5000)})
    shown = queue.store.peek(10)
    assert [(text_of(data), facts["state"]) for data, facts in shown] == [
        ("b", "ready"),
        ("c", "ready"),
        ("a", "out"),
        ("d", "delayed"),
    ]
    assert [text_of(data) for data, _ in queue.store.peek(2, 1)] == ["c", "a"]
    assert queue.store.purge() == 3
    assert queue.store.depth == 1
    consumer.settle(consumer.take()[0])
    assert queue.store.depth == 0


def test_purging_goes_step_by_step(queue: Queue) -> None:
    queue.send(*"abcde")
    assert [queue.store.purge(2) for _ in range(4)] == [2, 2, 1, 0]


def test_what_is_put_back_is_no_duplicate() -> None:
    queue = Queue(deduplication_window_s=60.0)
    queue.send("a", properties=Properties(message_id="1"))
    (taken,) = queue.store.take_ready(1)
    assert queue.store.put(taken)
    assert queue.store.depth == 1
    queue.send("a", properties=Properties(message_id="1"))
    assert queue.store.depth == 1, "who sends it again is told so as before"


def test_items_can_be_taken_to_move_them(queue: Queue) -> None:
    queue.send(*"abc")
    assert [text_of(data) for data in queue.store.take_ready(2)] == ["a", "b"]
    assert queue.store.depth == 1
    assert queue.store.put(message("z"))
    assert [text_of(data) for data in queue.store.take_ready(9)] == ["c", "z"]


def test_a_store_that_is_closed_settles_for_whatever_is_still_said(queue: Queue) -> None:
    consumer = queue.peer()
    consumer.consumer(queue.store, 10)
    queue.send("a")
    queue.store.close()
    consumer.settle(consumer.take()[0])
    consumer.vanish(queue.store)
