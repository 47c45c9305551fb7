"""What an audit hears of a queue's items, also of those before a restart."""

from __future__ import annotations

import hashlib

import pytest
from kept_queues import KeptQueue

from cogwork.amqp.message import Sections, Value, encode_sections
from cogwork.amqp.outcomes import Accepted, DeliveryState, Modified, Released
from cogwork.dataplane.core import Core
from cogwork.dataplane.message.basic import BASIC_MESSAGE_FORMAT, pack_basic
from cogwork.dataplane.queue.audit_events import OUTCOMES, AuditEvents
from cogwork.dataplane.queue.journal_image import JournalImage
from cogwork.dataplane.queue.store import Store

ALL = 1000

Told = tuple[str, int, int, str | None]


@pytest.fixture
def queue() -> KeptQueue:
    return KeptQueue(is_audited=True)


def told(queue: KeptQueue) -> list[Told]:
    """Take all facts: event, item, attempt, outcome."""
    audit_events = queue.store.audit_events
    assert audit_events is not None
    facts = []
    while not audit_events.is_empty:
        facts += audit_events.take(ALL)
    return [
        ("settled" if each[0] else "accepted", each[1] & 0xFFFFFFFF, each[2], OUTCOMES[each[3]])
        for each in facts
    ]


def work(queue: KeptQueue, count: int, state: DeliveryState | None = None) -> None:
    """Have a consumer get some items, and settle them."""
    consumer = queue.peer()
    consumer.consumer(queue.store, count)
    queue.commit()
    consumer.hear()
    for arrival in consumer.take():
        consumer.settle(arrival, state or Accepted())
    queue.commit()


def mark(queue: KeptQueue, number: int) -> None:
    queue.journal.gathered(number)
    queue.commit()


def tell(queue: KeptQueue, number: int) -> None:
    queue.journal.reported(number)
    queue.commit()


def audited(queue: KeptQueue) -> KeptQueue:
    """The queue after a restart."""
    queue.commit()
    return KeptQueue(queue.image(), is_audited=True)


class TestWhatIsNoted:
    def test_each_item_and_its_end(self, queue: KeptQueue) -> None:
        queue.send("a", "b")
        work(queue, 1)
        assert told(queue) == [
            ("accepted", 0, 0, None),
            ("accepted", 1, 0, None),
            ("settled", 0, 1, "accepted"),
        ]

    @pytest.mark.parametrize(
        ("state", "outcome"), [(Released(), "released"), (Modified(), "modified")]
    )
    def test_an_attempt_that_was_given_back(
        self, queue: KeptQueue, state: DeliveryState, outcome: str
    ) -> None:
        queue.send("a")
        work(queue, 1, state)
        assert told(queue)[1:] == [("settled", 0, 1, outcome)]

    def test_too_many_attempts(self, queue: KeptQueue) -> None:
        queue.store.maximum_delivery_count = 1
        queue.send("a")
        work(queue, 1, Modified(delivery_failed=True))
        assert told(queue)[1:] == [("settled", 0, 1, "modified"), ("settled", 0, 1, "exceeded")]

    def test_what_was_purged(self, queue: KeptQueue) -> None:
        queue.send("a")
        queue.store.purge()
        assert told(queue)[1:] == [("settled", 0, 0, "removed")]

    def test_no_more_than_there_is_room_for(self) -> None:
        store = Store(Core(), 7)
        store.audit_events = AuditEvents(store.items, 7, facts_max=10)
        for _ in range(15):
            store.put(b"\x00\x53\x75\xa0\x01a")
        assert (len(store.audit_events.take(ALL)), store.audit_events.missed) == (10, 5)
        store.put(b"\x00\x53\x75\xa0\x01a")
        assert len(store.audit_events.take(ALL)) == 1

    @pytest.mark.parametrize(
        ("message", "body"),
        [
            (b"\x00\x53\x75\xa0\x02ab\x00\x53\x75\xa0\x01c", b"abc"),
            (encode_sections(Sections(body=Value("text"))), b"text"),
            (encode_sections(Sections(body=Value(b"octets"))), b"octets"),
            (encode_sections(Sections(body=Value(1))), encode_sections(Sections(body=Value(1)))),
        ],
    )
    def test_the_digest_is_that_of_the_body(self, message: bytes, body: bytes) -> None:
        store = Store(Core(), 7)
        store.audit_events = AuditEvents(store.items, 7, has_digests=True)
        store.put(message)
        assert f"{store.audit_events.take(1)[0][6]:016x}" == hashlib.sha256(body).hexdigest()[:16]

    def test_the_digest_of_a_body_is_the_same_by_either_protocol(self) -> None:
        store = Store(Core())
        store.audit_events = AuditEvents(store.items, 7, has_digests=True)
        store.put(pack_basic(b"e", b"k", b"\x00\x00", b"body"), BASIC_MESSAGE_FORMAT)
        found = f"{store.audit_events.take(1)[0][6]:016x}"
        assert found == hashlib.sha256(b"body").hexdigest()[:16]

    def test_a_sample_is_the_same_share_of_everything(self) -> None:
        store = Store(Core(), 7)
        store.audit_events = AuditEvents(store.items, 7, 0.25)
        for _ in range(4000):
            store.put(b"\x00\x53\x75\xa0\x01a")
        named = {each[1] for each in store.audit_events.take(4000)}
        store.purge()
        assert {each[1] for each in store.audit_events.take(4000)} == named
        assert 850 < len(named) < 1150


class TestAfterARestart:
    def test_what_is_there_is_named_again(self, queue: KeptQueue) -> None:
        queue.send("a", "b", "c")
        assert told(queue)
        again = audited(queue)
        assert told(again) == [("accepted", each, 0, None) for each in range(3)]

    def test_what_was_settled_and_not_told_is_told(self, queue: KeptQueue) -> None:
        queue.send("a", "b")
        work(queue, 1)
        again = audited(queue)
        assert told(again) == [
            ("accepted", 0, 0, None),
            ("settled", 0, 1, "accepted"),
            ("accepted", 1, 0, None),
        ]

    def test_what_was_told_is_not_told_again(self, queue: KeptQueue) -> None:
        queue.send("a", "b", "c")
        work(queue, 1)
        mark(queue, 5)
        work(queue, 1)
        tell(queue, 5)
        assert [each for each in told(audited(queue)) if each[0] == "settled"] == [
            ("settled", 1, 1, "accepted")
        ]

    def test_a_mark_that_was_not_told_covers_nothing(self, queue: KeptQueue) -> None:
        queue.send("a")
        work(queue, 1)
        mark(queue, 5)
        assert ("settled", 0, 1, "accepted") in told(audited(queue))

    def test_the_dead_are_told_with_the_reason(self, queue: KeptQueue) -> None:
        queue.store.maximum_delivery_count = 1
        queue.send("a")
        work(queue, 1, Modified(delivery_failed=True))
        queue.commit()
        assert [each for each in told(audited(queue)) if each[0] == "settled"] == [
            ("settled", 0, 1, "exceeded")
        ]

    def test_what_is_settled_before_it_is_named_again_is_named_first(
        self, queue: KeptQueue
    ) -> None:
        queue.send("a", "b")
        again = audited(queue)
        work(again, 1)
        facts = told(again)
        assert facts.index(("accepted", 0, 0, None)) < facts.index(("settled", 0, 1, "accepted"))
        assert ("accepted", 1, 0, None) in facts

    def test_a_checkpoint_keeps_what_was_not_told(self, queue: KeptQueue) -> None:
        queue.send("a", "b")
        work(queue, 1)
        assert ("settled", 0, 1, "accepted") in told(audited(queue.checkpointed()))

    def test_a_checkpoint_keeps_what_is_on_its_way(self, queue: KeptQueue) -> None:
        queue.send("a")
        work(queue, 1)
        audit_events = queue.store.audit_events
        assert audit_events is not None
        audit_events.pending.append(audit_events.take(ALL))
        assert ("settled", 0, 1, "accepted") in told(audited(queue.checkpointed()))
        audit_events.pending.clear()
        assert told(audited(queue.checkpointed())) == []

    def test_without_an_audit_nothing_is_kept(self) -> None:
        queue = KeptQueue()
        queue.send("a")
        work(queue, 1)
        assert queue.image().unreported == []

    def test_a_journal_keeps_no_more_than_it_may(self) -> None:
        image = JournalImage()
        image.apply(b"\x09" + bytes(8))
        settled = b"".join(
            b"\x0b" + number.to_bytes(8, "big") + b"\0\0\0\1\1" for number in range(1000)
        )
        for _ in range(251):
            image.apply(settled)
        assert 125_000 <= len(image.unreported) <= 250_000
