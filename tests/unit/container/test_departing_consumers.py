"""What becomes of what a consumer has not settled when it goes (AMQP 1.0 §3.5.3, §3.5.6)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from hosted import LISTEN, Hosted
from text_messages import message, text_of
from wires import Peer

from cogwork.amqp.errors import AmqpError
from cogwork.amqp.extensions import CONSUMER_LOST, MARKS_RECEIVED
from cogwork.amqp.message import Header, decode_sections
from cogwork.amqp.outcomes import Accepted, Modified, Received, Rejected, Released
from cogwork.amqp.performatives import Close, Detach, Disposition, End, Role
from cogwork.amqp.terminus import ExpiryPolicy, Source
from cogwork.amqp.types import Symbol
from cogwork.config.settings import Configuration, Queue
from cogwork.nodes.queue.node import QueueNode

if TYPE_CHECKING:
    from collections.abc import Callable

    from wires.links import Consumer

    from cogwork.amqp.outcomes import Outcome

    Leave = Callable[[Consumer], None]

WORK, QUEUE, DEAD = "work/a", "queue/a", "queue/dead"
TIMEOUT_S = 30.0
HANDED = Received(section_number=0, section_offset=0)


@pytest.fixture
def hosted() -> Hosted:
    queues = [Queue(address=WORK, dead_letter=DEAD), Queue(address=QUEUE), Queue(address=DEAD)]
    return Hosted(Configuration(id="hosted", listeners=[LISTEN], queues=queues))


def node(hosted: Hosted, address: str) -> QueueNode:
    found = hosted.container.vhosts[""].nodes.get(address)
    assert isinstance(found, QueueNode)
    return found


def counts(hosted: Hosted, address: str) -> dict[str, int]:
    return node(hosted, address).store.counts()


def fill(hosted: Hosted, address: str, *texts: str) -> None:
    publisher = Peer(hosted).greet().publisher(address)
    for text in texts:
        publisher.send(message(text))


def holding(hosted: Hosted, address: str, credit: int = 3, **fields: Any) -> Consumer:
    """Attach a consumer that gets the first items of five, and settle none."""
    fill(hosted, address, *"abcde")
    source = Source(address=address, **fields.pop("source", {}))
    consumer = Peer(hosted).greet().consumer(address, credit, source=source, **fields)
    assert texts(consumer) == list("abcde")[:credit]
    return consumer


def texts(consumer: Consumer) -> list[str]:
    return [text_of(each.body) for each in consumer.arrivals]


def close_link(consumer: Consumer) -> None:
    consumer.detach()


def close_link_with_error(consumer: Consumer) -> None:
    error = AmqpError(condition=Symbol("app:bored"))
    consumer.channel.say(Detach(handle=consumer.handle, closed=True, error=error))


def end_session(consumer: Consumer) -> None:
    consumer.channel.end()


def close_connection(consumer: Consumer) -> None:
    consumer.channel.peer.close()


def vanish(consumer: Consumer) -> None:
    consumer.channel.peer.vanish()


IN_ORDER = [close_link, close_link_with_error, end_session, close_connection]
ways = pytest.mark.parametrize("leave", IN_ORDER, ids=lambda way: way.__name__)
kinds = pytest.mark.parametrize("address", [WORK, QUEUE])

# -- closed in order


@kinds
@ways
def test_all_goes_back_at_once_in_order_and_uncounted(
    hosted: Hosted, leave: Leave, address: str
) -> None:
    other = Peer(hosted).greet()
    leave(holding(hosted, address))
    second = other.consumer(address, 10)
    assert texts(second) == list("abcde")
    for each in second.arrivals:
        header = decode_sections(each.body).header or Header()
        assert (header.delivery_count, header.first_acquirer) == (0, False)
    assert counts(hosted, address)["in-doubt"] == counts(hosted, DEAD)["depth"] == 0


@ways
def test_who_waits_gets_it_before_what_came_later(hosted: Hosted, leave: Leave) -> None:
    first = holding(hosted, QUEUE, 5)
    second = Peer(hosted).greet().consumer(QUEUE, 4)
    assert second.arrivals == []
    leave(first)
    assert texts(second) == list("abcd")


@ways
def test_what_was_settled_before_stays_settled(hosted: Hosted, leave: Leave) -> None:
    first = holding(hosted, QUEUE)
    first.accept(first.arrivals[1])
    leave(first)
    assert texts(Peer(hosted).greet().consumer(QUEUE, 10)) == list("acde")


@kinds
@pytest.mark.parametrize(
    "say",
    [
        lambda each: each.channel.peer.vanish(),
        lambda each: each.channel.say(End(error=AmqpError(condition=Symbol("app:broken")))),
        lambda each: each.channel.peer.say(Close(error=AmqpError(condition=Symbol("app:broken")))),
        lambda each: each.channel.say(
            Detach(handle=each.handle, closed=True, error=AmqpError(condition=CONSUMER_LOST))
        ),
    ],
    ids=["connection lost", "session failed", "connection failed", "whose client has gone"],
)
def test_what_did_not_end_in_order_is_in_doubt(
    hosted: Hosted, say: Callable[[Consumer], None], address: str
) -> None:
    say(holding(hosted, address))
    assert counts(hosted, address)["in-doubt"] == 3


@ways
@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Released(), ("abcde", 0, 0)),
        (Modified(), ("abcde", 0, 0)),
        (Modified(delivery_failed=True), ("abcde", 1, 0)),
        (Accepted(), ("de", 0, 0)),
        (Rejected(), ("de", 0, 3)),
    ],
)
def test_the_default_outcome_of_the_source_wins(
    hosted: Hosted, leave: Leave, outcome: Outcome, expected: tuple[str, int, int]
) -> None:
    back, failures, dead = expected
    consumer = holding(hosted, WORK, source={"default_outcome": outcome})
    assert consumer.attach is not None
    assert isinstance(consumer.attach.source, Source)
    assert consumer.attach.source.default_outcome == outcome
    leave(consumer)
    second = Peer(hosted).greet().consumer(WORK, 10)
    assert texts(second) == list(back)
    header = decode_sections(second.arrivals[0].body).header
    assert (header.delivery_count if header else 0) == failures
    assert counts(hosted, DEAD)["depth"] == dead


def test_a_default_that_says_not_here_keeps_it_from_this_link_alone(hosted: Hosted) -> None:
    default = Modified(
        undeliverable_here=True, message_annotations={Symbol("x-opt-seen-by"): "one"}
    )
    close_link(holding(hosted, QUEUE, source={"default_outcome": default}))
    second = Peer(hosted).greet().consumer(QUEUE, 10)
    assert texts(second) == list("abcde")
    found = decode_sections(second.arrivals[0].body).message_annotations
    assert found == {"x-opt-seen-by": "one"}


def test_settled_without_an_outcome_has_the_default_one(hosted: Hosted) -> None:
    rejecting = holding(hosted, WORK, source={"default_outcome": Rejected()})
    releasing = rejecting.channel.consumer(WORK, 2)
    rejecting.channel.say(Disposition(role=Role.RECEIVER, first=0, last=4, settled=True))
    assert counts(hosted, DEAD)["depth"] == 3
    assert len(releasing.arrivals) == 2
    assert counts(hosted, WORK)["ready"] == 2


def test_what_nothing_stores_is_released_too(hosted: Hosted) -> None:
    consumer = Peer(hosted).greet().consumer("unicast/a", 5)
    publisher = Peer(hosted).greet().publisher("unicast/a")
    sent = publisher.send(message("a"))
    consumer.detach()
    assert publisher.outcomes == {sent: Released()}


# -- our own client, which marks what its application has


@ways
@kinds
def test_what_an_application_was_given_is_abandoned_and_the_rest_goes_back(
    hosted: Hosted, leave: Leave, address: str
) -> None:
    first = holding(hosted, address, desired_capabilities=(MARKS_RECEIVED,))
    first.channel.settle(first.arrivals[1].id, state=HANDED, settled=False)
    leave(first)
    second = Peer(hosted).greet().consumer(address, 10)
    assert texts(second) == list("acde" if address == WORK else "abcde")
    assert counts(hosted, address)["abandoned"] == 1
    failures = [
        header.delivery_count if (header := decode_sections(each.body).header) else 0
        for each in second.arrivals
    ]
    assert failures == ([0] * 4 if address == WORK else [0, 1, 0, 0, 0])
    dead = Peer(hosted).greet().consumer(DEAD, 10)
    assert texts(dead) == (["b"] if address == WORK else [])
    for each in dead.arrivals:
        annotations = decode_sections(each.body).message_annotations or {}
        assert annotations[Symbol("x-opt-dead-letter-reason")] == "abandoned"


def test_with_nowhere_to_park_it_what_is_abandoned_stays_in_doubt() -> None:
    hosted = Hosted(Configuration(id="hosted", listeners=[LISTEN], queues=[Queue(address=WORK)]))
    first = holding(hosted, WORK, desired_capabilities=(MARKS_RECEIVED,))
    first.channel.settle(first.arrivals[0].id, state=HANDED, settled=False)
    close_link(first)
    assert texts(Peer(hosted).greet().consumer(WORK, 10)) == list("bcde")
    assert counts(hosted, WORK)["in-doubt"] == 1


# -- loops


def test_what_is_given_back_again_and_again_is_dead() -> None:
    queues = [Queue(address=WORK, dead_letter=DEAD, maximum_acquisitions=3), Queue(address=DEAD)]
    hosted = Hosted(Configuration(id="hosted", listeners=[LISTEN], queues=queues))
    fill(hosted, WORK, "poison")
    for leave in (close_link, end_session):
        leave(Peer(hosted).greet().consumer(WORK, 1))
    third = Peer(hosted).greet().consumer(WORK, 1)
    assert texts(third) == ["poison"]
    third.settle(Released())
    assert third.arrivals[1:] == []
    assert counts(hosted, WORK)["acquisitions-exceeded"] == 1
    (dead,) = Peer(hosted).greet().consumer(DEAD, 1).arrivals
    annotations = decode_sections(dead.body).message_annotations or {}
    assert annotations[Symbol("x-opt-dead-letter-reason")] == "acquisitions-exceeded"


def test_what_certainly_nobody_has_seen_is_not_counted_as_acquired() -> None:
    queues = [Queue(address=WORK, dead_letter=DEAD, maximum_acquisitions=2), Queue(address=DEAD)]
    hosted = Hosted(Configuration(id="hosted", listeners=[LISTEN], queues=queues))
    fill(hosted, WORK, "a")
    for _ in range(4):
        close_link(Peer(hosted).greet().consumer(WORK, 1, desired_capabilities=(MARKS_RECEIVED,)))
    assert counts(hosted, WORK)["ready"] == 1


@pytest.mark.parametrize(("dead_letter", "bound"), [(None, 0), (DEAD, 2000)])
def test_nothing_is_dropped_for_that_by_default(dead_letter: str | None, bound: int) -> None:
    queues = [Queue(address=QUEUE, dead_letter=dead_letter)]
    hosted = Hosted(Configuration(id="hosted", listeners=[LISTEN], queues=queues))
    assert node(hosted, QUEUE).store.maximum_acquisitions == bound


# -- detached without being closed


def kept(hosted: Hosted, **source: Any) -> Consumer:
    """Have a consumer detach its link with three items, and makes sure that nobody gets them."""
    first = holding(hosted, QUEUE, name="l", source=source)
    first.detach(closed=False)
    assert texts(Peer(hosted).greet().consumer(QUEUE, 2)) == list("de")
    assert (counts(hosted, QUEUE)["unsettled"], counts(hosted, QUEUE)["in-doubt"]) == (5, 0)
    return first


def later(hosted: Hosted, seconds: float) -> None:
    hosted.container.attachments.kept.tick(time.monotonic() + seconds)
    hosted.settle_down()


def is_free(hosted: Hosted) -> bool:
    return counts(hosted, QUEUE)["ready"] == 3


def test_a_link_that_is_left_keeps_its_items_until_its_session_ends(hosted: Hosted) -> None:
    first = kept(hosted)
    later(hosted, 3600)
    assert not is_free(hosted)
    end_session(first)
    assert is_free(hosted)
    assert texts(Peer(hosted).greet().consumer(QUEUE, 10)) == list("abc")


@pytest.mark.parametrize(
    ("policy", "timeout", "endings", "waits_s"),
    [
        (ExpiryPolicy.LINK_DETACH, 7, 0, 7),
        (ExpiryPolicy.LINK_DETACH, 3600, 0, TIMEOUT_S),
        (ExpiryPolicy.SESSION_END, 7, 1, 7),
        (ExpiryPolicy.CONNECTION_CLOSE, 0, 2, 0),
        (ExpiryPolicy.CONNECTION_CLOSE, 7, 2, 7),
        (ExpiryPolicy.NEVER, 0, 2, TIMEOUT_S),
        (ExpiryPolicy.NEVER, 3600, 2, TIMEOUT_S),
    ],
)
def test_the_source_says_for_how_long(
    hosted: Hosted, policy: ExpiryPolicy, timeout: int, endings: int, waits_s: float
) -> None:
    first = kept(hosted, expiry_policy=policy, timeout=timeout)
    for leave in (end_session, close_connection)[:endings]:
        later(hosted, 3600)
        assert not is_free(hosted)
        leave(first)
    if waits_s:
        later(hosted, waits_s - 1)
        assert not is_free(hosted)
        later(hosted, waits_s + 1)
    assert is_free(hosted)
    assert texts(Peer(hosted).greet().consumer(QUEUE, 10)) == list("abc")
    assert len(hosted.container.attachments.kept) == 0


def test_the_container_lets_the_time_pass(hosted: Hosted) -> None:
    kept(hosted, expiry_policy=ExpiryPolicy.LINK_DETACH, timeout=2)
    hosted.container.peers.sweep(time.monotonic() + 3)
    hosted.settle_down()
    assert is_free(hosted)


@pytest.mark.parametrize("leave", [end_session, close_connection])
def test_a_link_that_goes_with_its_session_may_be_kept_as_well(
    hosted: Hosted, leave: Callable[[Consumer], None]
) -> None:
    leave(holding(hosted, QUEUE, source={"expiry_policy": ExpiryPolicy.NEVER}))
    if leave is close_connection:
        later(hosted, TIMEOUT_S - 1)
    assert counts(hosted, QUEUE)["unsettled"] == 3
    if leave is close_connection:
        later(hosted, TIMEOUT_S + 1)
        assert counts(hosted, QUEUE)["ready"] == 5


def test_the_answer_says_what_holds(hosted: Hosted) -> None:
    source = Source(address=QUEUE, expiry_policy=ExpiryPolicy.NEVER, timeout=9)
    consumer = Peer(hosted).greet().consumer(QUEUE, source=source)
    assert consumer.attach is not None
    assert isinstance(consumer.attach.source, Source)
    answer = consumer.attach.source
    assert answer.expiry_policy is ExpiryPolicy.CONNECTION_CLOSE
    assert answer.timeout == TIMEOUT_S


def test_at_once_where_the_link_is_all_there_was(hosted: Hosted) -> None:
    first = holding(hosted, QUEUE, source={"expiry_policy": ExpiryPolicy.LINK_DETACH})
    first.detach(closed=False)
    assert counts(hosted, QUEUE)["ready"] == 5


def test_the_link_that_resumes_has_what_it_presents_and_the_rest_goes_back(hosted: Hosted) -> None:
    first = kept(hosted)
    tag = first.arrivals[1].tag
    again = first.channel.consumer(QUEUE, 1, name="l", unsettled={tag: None})
    assert again.attach is not None
    assert again.attach.unsettled == {tag: None}
    assert [each.tag for each in again.arrivals] == [tag]
    assert texts(Peer(hosted).greet().consumer(QUEUE, 10)) == ["a", "c"]
    again.accept()
    assert counts(hosted, QUEUE)["accepted"] == 1
    assert len(hosted.container.attachments.kept) == 0


def test_a_link_of_that_name_that_presents_nothing_gets_it_anew(hosted: Hosted) -> None:
    first = kept(hosted)
    assert texts(first.channel.consumer(QUEUE, 10, name="l")) == list("abc")


def test_another_user_resumes_nothing(hosted: Hosted) -> None:
    kept(hosted)
    stranger = Peer(hosted)
    stranger.connection.identity = "somebody"
    stranger.greet().consumer(QUEUE, 10, name="l")
    assert not is_free(hosted)


def test_a_lost_connection_leaves_in_doubt_what_was_kept(hosted: Hosted) -> None:
    vanish(kept(hosted, expiry_policy=ExpiryPolicy.CONNECTION_CLOSE))
    assert counts(hosted, QUEUE)["in-doubt"] == 3


def test_what_is_not_kept_for_want_of_items_is_forgotten(hosted: Hosted) -> None:
    first = holding(hosted, QUEUE, 1)
    first.accept()
    first.detach(closed=False)
    assert len(hosted.container.attachments.kept) == 0


@pytest.mark.parametrize("address", [WORK, QUEUE])
def test_what_an_application_has_of_a_kept_link_is_abandoned_with_it(
    hosted: Hosted, address: str
) -> None:
    first = holding(hosted, address, desired_capabilities=(MARKS_RECEIVED,))
    first.channel.settle(first.arrivals[0].id, state=HANDED, settled=False)
    first.detach(closed=False)
    assert counts(hosted, address)["abandoned"] == 0
    end_session(first)
    assert counts(hosted, address)["abandoned"] == 1
    assert counts(hosted, DEAD)["depth"] == (1 if address == WORK else 0)
