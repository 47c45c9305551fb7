"""What goes to the owner of a queue: kept until it is answered, sent again, taken once."""

from __future__ import annotations

import peers
import pytest
from kept_queues import KeptQueue
from text_messages import message, text_of

from cogwork.amqp.outcomes import Accepted, Modified, Rejected, Released
from cogwork.amqp.performatives import Transfer
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.addresses.owner_outbox import OwnerOutbox
from cogwork.dataplane.addresses.partitions import PartitionedInlet
from cogwork.dataplane.core import Core
from cogwork.dataplane.queue.forward_dedup import ForwardDedup
from cogwork.dataplane.queue.store import Store
from cogwork.dataplane.transport.outgoing import OutgoingLink

ORIGIN, LIFE, FIRST = 0xA, 7, 1000
WINDOW = 4096


class Forwarding:
    """This container's part of a queue whose owner is a peer."""

    def __init__(self, *, holds_back: bool = False) -> None:
        self.core = Core()
        self.entry = AddressEntry(self.core, "queue/a", CLOSEST_CODE)
        self.inlet = PartitionedInlet(Store(self.core), self.entry, 1, is_whole=True)
        self.entry.add_outlet(self.inlet)
        self.outbox = OwnerOutbox(self.entry, ORIGIN, LIFE, FIRST, holds_back=holds_back)
        self.inlet.set_owners([self.outbox])
        self.client = peers.Peer(self.core)
        self.publisher = self.client.publisher(self.entry, window=10_000)
        self.owner = peers.Peer(self.core)
        self.way = self.connect()

    def connect(self, credit: int = 100_000) -> OutgoingLink:
        """Give the outbox another link."""
        self.owner = peers.Peer(self.core, frame_size=4096)
        self.way = OutgoingLink(self.owner.session, 100)
        self.owner.session.map_link(100, self.way)
        self.outbox.set_link(self.way)
        self.owner.flow(self.way, credit)
        return self.way

    def lose(self) -> None:
        """Lose the link."""
        self.outbox.set_link(None)
        self.way.detach()
        self.core.flush()

    def send(self, *texts: str, settled: bool = False) -> int:
        first = self.client.send_run(
            self.publisher, [message(each) for each in texts], settled=settled
        )
        self.owner.hear()
        return first

    def arrived(self) -> list[peers.Arrival]:
        self.core.flush()
        self.owner.hear()
        return self.owner.take()

    def answered(self) -> dict[int, object]:
        """Return what publishers were told, by delivery."""
        self.core.flush()
        self.client.hear()
        return {
            number: each.state
            for each in self.client.dispositions
            for number in range(each.first, (each.first if each.last is None else each.last) + 1)
        }


@pytest.fixture
def forwarding() -> Forwarding:
    return Forwarding()


def texts(arrivals: list[peers.Arrival]) -> list[str]:
    return [text_of(each.message) for each in arrivals]


def tag(number: int, life: int = LIFE, origin: int = ORIGIN) -> bytes:
    return b"".join(each.to_bytes(8, "big") for each in (origin, life, number))


def test_tags_say_who_sends_in_which_life_and_what_number(forwarding: Forwarding) -> None:
    forwarding.send("a", "b")
    forwarding.send("c", settled=True)
    arrivals = forwarding.arrived()
    assert texts(arrivals) == ["a", "b", "c"]
    assert [each.tag for each in arrivals] == [tag(FIRST + at) for at in range(3)]
    assert not any(each.settled for each in arrivals), "else nobody would know what to send again"


def test_answers_reach_publishers_as_they_were_given(forwarding: Forwarding) -> None:
    first = forwarding.send("a", "b")
    a, b = forwarding.arrived()
    assert forwarding.answered() == {}
    forwarding.owner.settle(b, Rejected())
    forwarding.owner.settle(a)
    answered = forwarding.answered()
    assert isinstance(answered[first], Accepted)
    assert isinstance(answered[first + 1], Rejected)
    assert forwarding.outbox.unanswered == 0


def test_what_has_no_answer_is_sent_again_in_order_under_the_same_tags(
    forwarding: Forwarding,
) -> None:
    forwarding.send("a", "b", "c", "d")
    before = forwarding.arrived()
    forwarding.owner.settle(before[1])
    forwarding.lose()
    forwarding.send("e")
    forwarding.connect()
    again = forwarding.arrived()
    assert texts(again) == ["a", "c", "d", "e"]
    assert [each.tag for each in again[:3]] == [before[at].tag for at in (0, 2, 3)]
    assert forwarding.outbox.sent_again == 3
    for each in again:
        forwarding.owner.settle(each)
    assert all(isinstance(each, Accepted) for each in forwarding.answered().values())
    assert len(forwarding.answered()) == 5


def test_a_large_message_is_sent_again_whole(forwarding: Forwarding) -> None:
    forwarding.send("x" * 60_000)
    forwarding.lose()
    forwarding.connect()
    assert texts(forwarding.arrived()) == ["x" * 60_000]


def test_what_the_owner_gives_back_is_kept_for_another_link(forwarding: Forwarding) -> None:
    released: list[bool] = []
    forwarding.outbox.on_released = lambda: released.append(True)
    forwarding.send("a")
    forwarding.owner.settle(forwarding.arrived()[0], Released())
    assert released
    assert forwarding.answered() == {}
    forwarding.lose()
    forwarding.connect()
    assert texts(forwarding.arrived()) == ["a"]


def test_an_owner_that_is_away_for_too_long_leaves_publishers_in_doubt(
    forwarding: Forwarding,
) -> None:
    forwarding.lose()
    first = forwarding.send("a", "b")
    forwarding.send("settled", settled=True)
    assert forwarding.answered() == {}
    assert forwarding.outbox.refuse() == 3
    late = forwarding.send("late")
    answered = forwarding.answered()
    assert [isinstance(answered[each], Modified) for each in (first, first + 1, late)] == [True] * 3
    assert (forwarding.outbox.refused, forwarding.outbox.lost) == (4, 1)
    forwarding.connect()
    forwarding.send("new")
    assert texts(forwarding.arrived()) == ["new"]


def test_no_more_is_kept_than_the_owner_tells_apart(forwarding: Forwarding) -> None:
    forwarding.lose()
    for _ in range(50):
        forwarding.send(*["x"] * 100)
    assert forwarding.outbox.unanswered == WINDOW
    assert forwarding.entry.held == 5000 - WINDOW
    forwarding.connect()
    arrivals = forwarding.arrived()
    assert len(arrivals) == WINDOW
    forwarding.owner.settle(arrivals[0], last=arrivals[-1])
    assert len(forwarding.arrived()) == 5000 - WINDOW
    assert forwarding.entry.held == 0


# -- the owner's side


def test_each_number_of_a_life_is_known_once_it_was_taken() -> None:
    dedup = ForwardDedup()
    for number in (5, 7, 6, 5000, 4999):
        assert not dedup.knows_tag(tag(number))
        dedup.remember_tag(tag(number))
        assert dedup.knows_tag(tag(number))
    assert not dedup.knows_tag(tag(4998)), "refused, and sent again"
    assert not dedup.knows_tag(tag(5000, origin=0xB))
    assert not dedup.knows_tag(tag(5000, life=LIFE + 1))
    assert dedup.knows_tag(tag(5000 - WINDOW)), "nobody has so many without an answer"
    again = ForwardDedup()
    again.restore_rows(dedup.rows())
    assert [again.knows_tag(tag(number)) for number in (5000, 4999, 4998)] == [True, True, False]
    again.remember_tag(tag(1, life=LIFE + 1))
    assert not again.knows_tag(tag(5000)), "that life is over"
    assert again.knows_tag(tag(1, life=LIFE + 1))
    again.remember_tag(tag(2, life=LIFE))
    assert again.knows_tag(tag(1, life=LIFE + 1))


def test_every_number_keeps_its_bit_while_others_come() -> None:
    dedup = ForwardDedup()
    numbers = [number for number in range(1, 20_000) if number % 7]
    for number in numbers:
        dedup.remember_tag(tag(number))
    last = numbers[-1]
    for number in range(last - WINDOW + 1, last + 1):
        assert dedup.knows_tag(tag(number)) == bool(number % 7), number


class Owner:
    """A queue with a journal, at its owner, and another container that sends to it."""

    def __init__(self, queue: KeptQueue) -> None:
        self.queue = queue
        inlet = PartitionedInlet(queue.store, queue.entry, 1, is_whole=True)
        inlet.set_owners([queue.store])
        self.near = queue.store.near_inlet = AddressEntry(queue.core, "queue/a", CLOSEST_CODE)
        self.near.add_outlet(inlet.near)
        self.connect()

    def connect(self) -> None:
        """Have the other container send by another link."""
        self.peer = self.queue.peer()
        self.link = self.peer.publisher(self.near)
        self.link.wants_tags = True
        self._sent = 0

    def send(self, number: int, text: str) -> None:
        transfer = Transfer(
            handle=self.link.handle, delivery_id=self._sent, delivery_tag=tag(number)
        )
        self._sent += 1
        self.peer.say(transfer, self.queue.message(text))


def test_an_owner_takes_each_message_once_also_after_a_restart() -> None:
    owner = Owner(KeptQueue())
    for number, text in ((1, "a"), (2, "b"), (1, "a"), (3, "c")):
        owner.send(number, text)
    assert owner.queue.texts() == ["a", "b", "c"]
    for queue in (owner.queue.restarted(), owner.queue.restarted().checkpointed()):
        again = Owner(queue)
        for number, text in ((2, "b"), (3, "c"), (4, "d")):
            again.send(number, text)
        again.queue.commit()
        again.peer.hear()
        assert queue.texts() == ["a", "b", "c", "d"]
        answers = [each.state for each in again.peer.dispositions]
        assert answers
        assert all(isinstance(each, Accepted) for each in answers)


def test_a_message_that_was_refused_may_come_again() -> None:
    queue = KeptQueue()
    queue.store.policy, queue.store.maximum_length = "reject", 1
    owner = Owner(queue)
    owner.send(1, "a")
    owner.send(2, "b")
    assert queue.texts() == ["a"]
    queue.store.maximum_length = 5
    owner.send(2, "b")
    owner.send(1, "a")
    assert queue.texts() == ["a", "b"]


@pytest.mark.parametrize("has_room_first", [True, False])
def test_a_message_that_waits_at_a_full_owner_is_taken_once(has_room_first: bool) -> None:
    queue = KeptQueue()
    queue.store.maximum_length = 1
    owner = Owner(queue)
    for number, text in ((1, "a"), (2, "b"), (3, "x" * 60_000)):
        owner.send(number, text)
    assert (queue.texts(), owner.near.held) == (["a"], 2)
    owner.peer.vanish(queue.store)
    owner.connect()

    def make_room() -> None:
        queue.store.maximum_length = 5
        queue.store.purge()
        queue.core.flush()

    if has_room_first:
        make_room()
    owner.send(2, "b")
    owner.send(3, "x" * 60_000)
    if not has_room_first:
        assert owner.near.held == 4
        make_room()
    queue.commit()
    owner.peer.hear()
    assert queue.texts() == ["b", "x" * 60_000]
    assert {type(each.state) for each in owner.peer.dispositions} == {Accepted}
    again = Owner(queue.restarted())
    again.send(2, "b")
    assert again.queue.texts() == ["b", "x" * 60_000]


# -- owners that change


def test_what_the_next_owner_gets_first_is_what_the_last_one_has_not_answered() -> None:
    forwarding = Forwarding(holds_back=True)
    first = forwarding.send("a", "b", "c")
    forwarding.owner.settle(forwarding.arrived()[1])
    forwarding.lose()
    forwarding.send("d")
    assert (forwarding.outbox.unanswered, forwarding.entry.held) == (3, 1)
    forwarding.connect()
    arrivals = forwarding.arrived()
    assert texts(arrivals) == ["a", "c", "d"]
    assert [each.tag for each in arrivals] == [tag(FIRST + at) for at in (0, 2, 3)]
    for each in arrivals:
        forwarding.owner.settle(each)
    assert sorted(forwarding.answered()) == [first + at for at in range(4)]


def test_that_may_be_this_container_which_knows_what_was_taken() -> None:
    forwarding = Forwarding(holds_back=True)
    first = forwarding.send("a", "b", "c")
    forwarding.arrived()
    forwarding.lose()
    forwarding.send("d")
    store = forwarding.inlet.store
    near = forwarding.inlet.near
    forwarding.inlet.set_owners([store])
    assert [text_of(data) for data, _ in store.peek(9)] == ["a", "b", "c", "d"]
    assert {type(state) for state in forwarding.answered().values()} == {Accepted}
    assert sorted(forwarding.answered()) == [first + at for at in range(4)]
    assert (forwarding.outbox.link, forwarding.outbox.unanswered) == (near, 0)


def test_no_more_is_taken_than_the_owner_has_room_for() -> None:
    forwarding = Forwarding(holds_back=True)
    forwarding.lose()
    forwarding.connect(credit=2)
    forwarding.send("a", "b", "c")
    assert texts(forwarding.arrived()) == ["a", "b"]
    assert (forwarding.outbox.room(), forwarding.entry.held) == (0, 1)
    forwarding.owner.flow(forwarding.way, 1)
    assert texts(forwarding.arrived()) == ["c"]


def test_without_an_owner_what_has_no_answer_is_in_doubt_and_the_rest_waits() -> None:
    forwarding = Forwarding(holds_back=True)
    first = forwarding.send("a")
    forwarding.lose()
    forwarding.send("b")
    assert forwarding.outbox.refuse() == 1
    answered = forwarding.answered()
    assert list(answered) == [first]
    assert isinstance(answered[first], Modified)
    assert forwarding.entry.held == 1
    forwarding.connect()
    assert texts(forwarding.arrived()) == ["b"]
