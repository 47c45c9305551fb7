"""Items that a shard lends to another container's consumer: tags, claims, breaks and returns."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import peers
import pytest

from cogwork.amqp.errors import AmqpError
from cogwork.amqp.frames import FrameReader
from cogwork.amqp.message import Data, Sections, decode_sections, encode_sections
from cogwork.amqp.outcomes import Accepted, DeliveryState, Modified, Received, Rejected, Released
from cogwork.amqp.performatives import Transfer, decode_performative
from cogwork.amqp.types import Symbol
from cogwork.dataplane.core import Core
from cogwork.dataplane.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.loan import Borrower, Loan
from cogwork.dataplane.outgoing import OutgoingLink
from cogwork.dataplane.session_end import Session
from cogwork.dataplane.store import KEEP_CODE, SETTLE_CODE, STALE_CODE, Store
from cogwork.dataplane.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Iterator

ACCEPTED, REJECTED = 0x24, 0x25
RECEIVED = Received(section_number=0, section_offset=0)
STALE = Symbol("cogwork:stale-attempt")
WINDOW = 1 << 20


def message(text: str, **sections: object) -> bytes:
    return encode_sections(Sections(body=Data([text.encode()]), **sections))  # type: ignore[arg-type]  # whatever a test needs


def text_of(arrival: peers.Arrival) -> str:
    body = decode_sections(arrival.message).body
    assert isinstance(body, Data)
    return body.parts[0].decode()


def texts(arrivals: list[peers.Arrival]) -> list[str]:
    return [text_of(each) for each in arrivals]


class Shard:
    """One container's part of the queue, with a client that publishes there."""

    def __init__(self, number: int, **options: object) -> None:
        self.core = Core()
        self.store = Store(self.core, number, **options)  # type: ignore[arg-type]  # whatever a test needs
        self.store.handler = self
        self.store.keeps_dead = True
        self.entry = AddressEntry(self.core, "queue/a", CLOSEST_CODE)
        self.entry.add_outlet(self.store)
        self.store.inlet = self.entry
        self.client = peers.Peer(self.core)
        self.publisher = self.client.publisher(self.entry)
        self.dead: list[tuple[str, bytes | None, int]] = []

    def on_batch(self, store: Store) -> None:
        self.dead += [(why, error, failures) for why, _, error, failures in store.take_exceptions()]

    def send(self, *bodies: str, **sections: object) -> None:
        for text in bodies:
            self.client.send(self.publisher, message(text, **sections))

    def counts(self, *names: str) -> list[object]:
        counted = self.store.counts()
        return [counted[name] for name in names]


class End:
    """One end of the tunnel between two containers."""

    def __init__(self, core: Core, frame_size: int) -> None:
        self.core = core
        self.wire = Wire(core, self, 65536)
        self.wire.start_framing()
        self.wire.max_frame_out = frame_size
        self.session = Session(self.wire, 0, 0, WINDOW, WINDOW)
        self.wire.map_session(0, self.session)

    def on_sender_disposition(
        self, session: Session, first: int, last: int, settled: bool, state: bytes
    ) -> None:
        """Confirms, as a container does for the loans of a tunnel."""
        code = state[2] if len(state) > 2 else ACCEPTED
        for link in session.links:
            if settled and isinstance(link, Loan):
                link.confirm(first, last, code, None if code == ACCEPTED else state)


class Tunnel:
    """A tunnel from the lending container to the borrowing one, with one link on it."""

    def __init__(
        self, shard: Shard, borrower: Borrower, *, frame_size: int = 65536, **options: bool
    ) -> None:
        self.shard = shard
        self.borrower = borrower
        self.near = End(borrower.consumer.core, frame_size)
        self.far = End(shard.core, frame_size)
        self.loan = Loan(self.near.session, 1, borrower, "far")
        self.near.session.map_link(1, self.loan)
        self.lender = OutgoingLink(self.far.session, 1, borrower.consumer.presettles)
        self.far.session.map_link(1, self.lender)
        shard.store.add_consumer(self.lender, is_far=True, **options)
        self.heard: list[Transfer] = []
        self._reader = FrameReader(65536)

    def resume(self) -> list[int]:
        """Presents what the consumer has from an earlier link, as `Borrowing` does."""
        tags = self.borrower.tags_of("far")
        codes = self.shard.store.resume(self.lender, tags)
        for tag, code in zip(tags, codes, strict=True):
            if code == STALE_CODE:
                self.borrower.close_tag(tag, REJECTED)
            elif code == SETTLE_CODE:
                self.borrower.close_tag(tag, ACCEPTED)
        return codes

    def attach(self) -> Tunnel:
        self.borrower.add(self.loan)
        self.run()
        return self

    def run(self) -> None:
        """Lets both ends hear each other until there is nothing to hear."""
        for _ in itertools.count():
            self.near.core.flush()
            self.far.core.flush()
            out, back = self.far.wire.take_output(), self.near.wire.take_output()
            for each in self._reader.feed(out):
                if each.body and isinstance(said := decode_performative(each.body)[0], Transfer):
                    self.heard.append(said)
            self.near.wire.feed(out)
            self.far.wire.feed(back)
            if not out and not back:
                return

    def cut(self) -> None:
        """Loses the tunnel: nothing more is heard by either end."""
        self.borrower.remove(self.loan)
        self.loan.detach()
        self.near.session.end()
        self.near.wire.stop()
        self.shard.store.remove_consumer(self.lender, is_over=False)
        self.lender.detach()
        self.far.session.end()
        self.far.wire.stop()
        self.near.core.flush()
        self.far.core.flush()
        self.shard.store.tick(self.shard.core.now)


class Lent:
    """A consumer in one container, whose shard is empty, and a shard in another one."""

    def __init__(
        self,
        *,
        credit: int = 10,
        presettles: bool = False,
        frame_size: int = 65536,
        marks: bool = False,
        **options: object,
    ) -> None:
        self.frame_size = frame_size
        self.marks = marks
        self.near, self.far = Shard(1), Shard(2, **options)
        self.far.store.in_doubt_timeout_s = 60.0
        self.consumer = peers.Peer(self.near.core)
        self.link = self.consumer.consumer(
            self.near.store, presettles=presettles, marks_received=marks
        )
        self.borrower = Borrower(self.near.store, self.link)
        self.tunnel = self._tunnel().attach()
        if credit:
            self.flow(credit)

    def _tunnel(self) -> Tunnel:
        return Tunnel(
            self.far, self.borrower, frame_size=self.frame_size, marks_received=self.marks
        )

    def flow(self, credit: int) -> None:
        self.consumer.flow(self.link, credit)
        self.tunnel.run()

    def lend(self, *bodies: str, **sections: object) -> list[peers.Arrival]:
        """Has the other shard take items in; returns what comes to the consumer of it."""
        self.far.send(*bodies, **sections)
        return self.take()

    def take(self) -> list[peers.Arrival]:
        self.tunnel.run()
        return self.consumer.take()

    def settle(
        self, arrival: peers.Arrival, state: DeliveryState | None = None, *, settled: bool = True
    ) -> None:
        self.consumer.settle(arrival, state, settled=settled)
        self.tunnel.run()

    def again(self) -> list[int]:
        """Opens another tunnel after the last was cut; returns what became of the attempts."""
        self.tunnel = self._tunnel()
        codes = self.tunnel.resume()
        self.tunnel.attach()
        return codes

    def confirmations(self) -> list[tuple[int, DeliveryState | None]]:
        """What the consumer was told of its claims."""
        self.consumer.hear()
        return [
            (number, each.state)
            for each in self.consumer.dispositions
            if each.settled
            for number in range(each.first, (each.last or each.first) + 1)
        ]


@pytest.fixture
def lent() -> Iterator[Lent]:
    made = Lent()
    yield made
    assert made.link.unsettled >= 0


# -- lending


def test_an_item_keeps_the_tag_of_its_attempt(lent: Lent) -> None:
    (arrival,) = lent.lend("a")
    assert text_of(arrival) == "a"
    assert (arrival.parts.shard, arrival.parts.attempt) == (2, 1)
    assert [each.delivery_tag for each in lent.tunnel.heard] == [arrival.tag]


def test_the_shard_lends_no_more_than_the_consumer_has_credit_for(lent: Lent) -> None:
    arrivals = lent.lend(*(str(number) for number in range(30)))
    assert texts(arrivals) == [str(number) for number in range(10)]
    assert lent.tunnel.loan.returned == 0
    lent.flow(5)
    assert texts(lent.take()) == [str(number) for number in range(10, 15)]
    assert lent.far.counts("ready") == [15]


def test_the_consumers_own_shard_comes_first(lent: Lent) -> None:
    lent.near.send("near")
    lent.far.send("far")
    assert texts(lent.take()) == ["near", "far"]
    lent.flow(0)
    lent.far.send("far")
    lent.near.send(*["near"] * 3)
    lent.flow(3)
    assert texts(lent.take()) == ["near"] * 3


def test_what_finds_no_credit_left_is_released_uncounted(lent: Lent) -> None:
    lent.far.send(*(f"far {number}" for number in range(10)))
    lent.near.send(*(f"near {number}" for number in range(6)))
    came = lent.take()
    assert len(came) == 10
    assert lent.tunnel.loan.returned == 6
    for each in came:
        lent.settle(each)
    assert lent.far.counts("ready", "unsettled") == [6, 0]
    lent.flow(10)
    back = lent.take()
    assert len(back) == 6
    assert sorted(texts(came + back)) == sorted(
        [f"far {number}" for number in range(10)] + [f"near {number}" for number in range(6)]
    )
    assert {each.parts.attempt for each in back} == {2}
    headers = [decode_sections(each.message).header for each in back]
    assert [each.delivery_count for each in headers if each is not None] in ([], [0] * 6)
    for each in back:
        lent.settle(each)
    assert lent.far.store.depth == lent.near.store.depth == 0
    assert lent.link.unsettled == lent.tunnel.loan.unsettled == lent.tunnel.lender.unsettled == 0


def test_a_consumer_without_credit_borrows_nothing() -> None:
    lent = Lent(credit=0)
    assert lent.lend("a") == []
    assert lent.far.counts("ready") == [1]
    lent.flow(1)
    assert texts(lent.take()) == ["a"]


def test_a_consumer_that_takes_its_credit_back_stops_the_shard(lent: Lent) -> None:
    lent.flow(0)
    assert lent.lend("a") == []
    assert lent.far.counts("ready") == [1]


def test_a_consumer_has_no_more_than_an_attach_can_name() -> None:
    lent = Lent(credit=4000)
    had = lent.lend(*map(str, range(2000)))
    assert len(had) == 1500
    assert lent.far.counts("ready") == [500]
    for arrival in had[:800]:
        lent.settle(arrival)
    assert len(lent.take()) > 0, "what it gave up makes room"


def test_items_of_many_frames_arrive_whole_and_keep_their_tag() -> None:
    lent = Lent(frame_size=600)
    body = "x" * 5000
    first, second = lent.lend(body, body)
    assert len(lent.tunnel.heard) > 16
    assert texts([first, second]) == [body, body]
    assert first.parts.shard == 2
    assert first.tag != second.tag
    lent.settle(first, settled=False)
    assert lent.confirmations() == [(first.delivery_id, Accepted())]
    lent.settle(second)
    assert lent.far.store.depth == 0


def test_an_item_that_was_cut_off_in_the_middle_is_in_doubt() -> None:
    lent = Lent(frame_size=600, marks=True)
    lent.far.send("x" * 5000)
    lent.far.core.flush()
    lent.tunnel.near.wire.feed(lent.tunnel.far.wire.take_output()[:2000])
    lent.tunnel.cut()
    assert lent.consumer.take() == []
    lent.again()
    assert lent.take() == [], "the consumer may have it, for all the shard knows"
    lent.far.store.tick(lent.far.core.now + 11)
    assert lent.take() == [], "it may have had it"
    assert lent.far.dead == [("in-doubt", None, 0)]


def test_consumers_that_want_items_settled_get_them_settled() -> None:
    lent = Lent(presettles=True)
    arrivals = lent.lend("a", "b")
    assert [each.settled for each in arrivals] == [True, True]
    assert lent.far.store.depth == 0


@pytest.mark.parametrize("count", [1, 2, 3])
def test_credit_is_shared_out_among_several_shards(count: int) -> None:
    lent = Lent(credit=0)
    others = [Shard(number + 3) for number in range(count)]
    tunnels = [Tunnel(each, lent.borrower).attach() for each in others]
    lent.flow(12)
    given = [each.loan.credit for each in (lent.tunnel, *tunnels)]
    assert sum(given) == 12
    assert max(given) - min(given) <= 1
    for tunnel in tunnels:
        tunnel.run()
        lent.borrower.remove(tunnel.loan)
        tunnel.loan.detach()
    assert lent.borrower.loans == [lent.tunnel.loan]
    assert lent.tunnel.loan.credit == 12


# -- claims


def test_a_claim_is_confirmed_only_by_the_shard(lent: Lent) -> None:
    (arrival,) = lent.lend("a")
    lent.consumer.settle(arrival, settled=False)
    assert lent.confirmations() == []
    assert lent.link.unsettled == 1
    lent.tunnel.run()
    assert lent.confirmations() == [(arrival.delivery_id, Accepted())]
    assert lent.far.counts("accepted") == [1]
    assert lent.link.unsettled == lent.tunnel.loan.unsettled == lent.tunnel.lender.unsettled == 0


def test_claims_in_a_range_are_confirmed_one_and_all(lent: Lent) -> None:
    arrivals = lent.lend("a", "b", "c", "d")
    lent.consumer.settle(arrivals[0], last=arrivals[3], settled=False)
    lent.tunnel.run()
    assert lent.confirmations() == [(each.delivery_id, Accepted()) for each in arrivals]
    assert lent.far.store.depth == 0


def test_a_claim_settled_at_once_is_passed_on(lent: Lent) -> None:
    arrivals = lent.lend("a", "b")
    for each in arrivals:
        lent.settle(each)
    assert lent.confirmations() == []
    assert lent.far.counts("accepted", "unsettled") == [2, 0]
    assert lent.link.unsettled == lent.tunnel.loan.unsettled == lent.tunnel.lender.unsettled == 0


def test_an_overtaken_claim_is_refused(lent: Lent) -> None:
    (arrival,) = lent.lend("a")
    taken = lent.far.store
    lent.tunnel.cut()
    taken.in_doubt_timeout_s = 0.0
    taken.redelivers_doubtful = True
    taken.tick(lent.far.core.now + 100)
    other = peers.Peer(lent.far.core)
    other.consumer(lent.far.store, 1)
    assert texts(other.take()) == ["a"]
    lent.consumer.settle(arrival, settled=False)
    assert lent.again() == [STALE_CODE]
    ((number, state),) = lent.confirmations()
    assert number == arrival.delivery_id
    assert isinstance(state, Rejected)
    assert lent.link.unsettled == 0


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize(
    ("state", "counted"),
    [
        (Released(), {"ready": 1}),
        (Modified(delivery_failed=True), {"ready": 1}),
        (Modified(delivery_failed=True, undeliverable_here=True), {"ready": 1}),
        (Rejected(error=AmqpError(condition=Symbol("app:bad"), description="bad")), {"ready": 0}),
    ],
    ids=["released", "modified", "elsewhere", "rejected"],
)
def test_every_other_outcome_reaches_the_shard_as_it_was_said(
    lent: Lent, state: DeliveryState, counted: dict[str, int], settled: bool
) -> None:
    (arrival,) = lent.lend("a")
    lent.flow(0)
    lent.settle(arrival, state, settled=settled)
    assert lent.far.counts(*counted) == list(counted.values())
    assert lent.far.counts("unsettled") == [0]
    assert lent.link.unsettled == lent.tunnel.loan.unsettled == lent.tunnel.lender.unsettled == 0
    if isinstance(state, Rejected):
        assert [(why, b"app:bad" in (error or b"")) for why, error, _ in lent.far.dead] == [
            ("rejected", True)
        ]
        return
    lent.flow(5)
    back = lent.take()
    if isinstance(state, Modified) and state.undeliverable_here:
        assert back == []
        return
    assert texts(back) == ["a"]
    header = decode_sections(back[0].message).header
    count = 0 if header is None else header.delivery_count
    assert count == (1 if isinstance(state, Modified) else 0)


def test_received_is_passed_on_so_that_the_item_is_in_doubt_later() -> None:
    lent = Lent(marks=True)
    lent.far.store.redelivers_doubtful = True
    had, _ = lent.lend("had", "not had")
    lent.settle(had, RECEIVED, settled=False)
    assert lent.tunnel.lender.unsettled == 2
    lent.tunnel.cut()
    assert lent.far.counts("ready", "in-doubt") == [0, 2], "the way may be broken, no more"
    lent.far.store.tick(lent.far.core.now + 11)
    assert lent.far.counts("ready", "in-doubt") == [1, 1], "one of them nobody has seen"


def test_what_a_consumer_that_leaves_has_not_seen_goes_back_at_once() -> None:
    lent = Lent(marks=True, credit=2)
    had, _ = lent.lend("had", "not had")
    lent.settle(had, RECEIVED, settled=False)
    lent.tunnel.shard.store.remove_consumer(lent.tunnel.lender)
    lent.tunnel.lender.detach()
    lent.far.core.flush()
    assert lent.far.counts("ready", "in-doubt") == [1, 1]


def test_what_the_consumer_marked_while_the_loan_was_broken_is_known_to_the_next_one() -> None:
    lent = Lent(marks=True)
    had, other = lent.lend("had", "not had")
    lent.tunnel.cut()
    lent.settle(had, RECEIVED, settled=False)
    assert lent.borrower.is_handed(had.tag)
    assert not lent.borrower.is_handed(other.tag)
    assert not lent.borrower.is_handed(b"another")


# -- breaks


def test_after_a_break_what_is_sent_again_is_recognised(lent: Lent) -> None:
    first, second = lent.lend("a", "b")
    lent.tunnel.cut()
    assert lent.borrower.containers() == ["far"]
    assert sorted(lent.borrower.tags_of("far")) == sorted([first.tag, second.tag])
    assert lent.borrower.tags_of("another") == []
    assert lent.again() == [KEEP_CODE, KEEP_CODE]
    assert lent.take() == [], "delivered twice"
    assert [each.delivery_tag for each in lent.tunnel.heard] == [first.tag, second.tag]
    assert lent.borrower.containers() == []
    lent.settle(first, settled=False)
    lent.settle(second)
    assert lent.confirmations() == [(first.delivery_id, Accepted())]
    assert lent.far.counts("accepted", "unsettled") == [2, 0]
    assert texts(lent.lend("c")) == ["c"]
    assert lent.link.unsettled == lent.tunnel.loan.unsettled == 1


@pytest.mark.parametrize("settled", [True, False])
def test_what_was_said_during_a_break_is_passed_on_after_it(lent: Lent, settled: bool) -> None:
    claimed, given, kept = lent.lend("claimed", "given", "kept")
    lent.tunnel.cut()
    lent.consumer.settle(claimed, settled=settled)
    lent.consumer.settle(given, Rejected(), settled=settled)
    assert lent.confirmations() == []
    lent.again()
    assert lent.take() == []
    assert lent.far.counts("accepted", "unsettled") == [1, 1]
    assert [why for why, _, _ in lent.far.dead] == ["rejected"]
    told = dict(lent.confirmations())
    assert told == (
        {} if settled else {claimed.delivery_id: Accepted(), given.delivery_id: Rejected()}
    )
    lent.settle(kept)
    assert lent.far.store.depth == 0
    assert lent.link.unsettled == lent.tunnel.loan.unsettled == lent.tunnel.lender.unsettled == 0
    assert lent.borrower.containers() == []


def test_a_claim_under_way_when_the_tunnel_broke_is_confirmed_after_it(lent: Lent) -> None:
    (arrival,) = lent.lend("a")
    lent.consumer.settle(arrival, settled=False)
    lent.near.core.flush()
    lent.tunnel.far.wire.feed(lent.tunnel.near.wire.take_output())
    assert lent.far.counts("accepted") == [1]
    lent.tunnel.cut()
    assert lent.confirmations() == []
    assert lent.again() == [SETTLE_CODE]
    assert lent.confirmations() == [(arrival.delivery_id, Accepted())]
    assert lent.take() == []
    assert lent.link.unsettled == 0


@pytest.mark.parametrize("is_swept", [True, False])
def test_what_was_under_way_when_the_tunnel_broke_is_given_back_by_the_next(is_swept: bool) -> None:
    lent = Lent(marks=True)
    had, handed = lent.lend("had", "handed")
    lent.settle(handed, RECEIVED, settled=False)
    lent.far.send("under way")
    lent.far.core.flush()
    assert lent.far.counts("unsettled") == [3]
    serial = lent.far.store.serial_of(lent.tunnel.lender)
    if is_swept:
        lent.tunnel.cut()
        assert lent.far.counts("in-doubt") == [3]
    else:
        lent.borrower.remove(lent.tunnel.loan)
        lent.tunnel.loan.detach()
        lent.far.store.remove_consumer(lent.tunnel.lender, is_over=False)
        lent.tunnel.lender.detach()
    lent.tunnel = lent._tunnel()
    assert lent.tunnel.resume() == [KEEP_CODE, KEEP_CODE]
    lent.far.store.take_back(serial)
    lent.tunnel.attach()
    assert texts(lent.take()) == ["under way"]
    assert lent.far.counts("unsettled", "in-doubt", "ready") == [3, 0, 0]
    for each in (had, handed):
        lent.settle(each, settled=False)
    assert [number for number, _ in lent.confirmations()] == [had.delivery_id, handed.delivery_id]
    assert lent.far.counts("accepted", "stale-claims") == [2, 0]


def test_what_another_consumer_may_have_is_not_taken_back() -> None:
    lent = Lent(marks=True)
    (arrival,) = lent.lend("a")
    serial = lent.far.store.serial_of(lent.tunnel.lender)
    lent.tunnel.cut()
    lent.far.store.take_back(serial + 1)
    assert lent.far.counts("in-doubt", "ready") == [1, 0]
    assert lent.far.store.serial_of(lent.tunnel.lender) == 0
    assert lent.again() == [KEEP_CODE]
    lent.settle(arrival, settled=False)
    assert lent.far.counts("accepted") == [1]


def test_two_breaks_in_a_row_are_like_one(lent: Lent) -> None:
    (arrival,) = lent.lend("a")
    lent.tunnel.cut()
    lent.tunnel = lent._tunnel()
    assert lent.tunnel.resume() == [KEEP_CODE]
    lent.tunnel.cut()
    assert lent.again() == [KEEP_CODE]
    assert lent.take() == []
    lent.settle(arrival, settled=False)
    assert lent.confirmations() == [(arrival.delivery_id, Accepted())]


def test_without_credit_the_attempts_go_on_once_there_is_some(lent: Lent) -> None:
    arrivals = lent.lend(*(str(number) for number in range(10)))
    assert lent.link.credit == 0
    lent.tunnel.cut()
    assert lent.again() == [KEEP_CODE] * 10
    for each in arrivals:
        lent.settle(each, settled=False)
    lent.flow(10)
    assert lent.take() == []
    assert len(lent.confirmations()) == 10
    assert lent.far.store.depth == 0


def test_what_the_shard_took_back_meanwhile_is_delivered_as_a_new_attempt(lent: Lent) -> None:
    lent.far.store.in_doubt_timeout_s = 0.0
    lent.far.store.redelivers_doubtful = True
    (arrival,) = lent.lend("a")
    lent.tunnel.cut()
    lent.far.store.tick(lent.far.core.now + 1)
    assert lent.again() == [STALE_CODE]
    (back,) = lent.take()
    assert back.parts.item == arrival.parts.item
    assert back.parts.attempt == arrival.parts.attempt + 1
    lent.settle(arrival)
    lent.settle(back, settled=False)
    assert lent.far.counts("accepted") == [1]
    assert lent.confirmations()[-1] == (back.delivery_id, Accepted())


# -- consumers that go


def test_a_consumer_that_goes_leaves_its_items_in_doubt(lent: Lent) -> None:
    lent.lend("a", "b")
    lent.near.store.remove_consumer(lent.link)
    lent.borrower.close()
    lent.link.detach()
    lent.tunnel.cut()
    assert lent.far.counts("in-doubt") == [2]
    assert lent.link.feeder is not lent.borrower


def test_what_comes_for_a_consumer_that_has_gone_is_released(lent: Lent) -> None:
    lent.far.send("a")
    lent.near.store.remove_consumer(lent.link)
    lent.link.detach()
    lent.tunnel.run()
    assert 1 <= lent.tunnel.loan.returned <= 2, "it came again and again"
    assert lent.consumer.take() == []
    assert lent.far.counts("ready", "unsettled") == [1, 0]


def test_a_claim_of_a_consumer_that_has_gone_confirms_to_nobody(lent: Lent) -> None:
    (arrival,) = lent.lend("a")
    lent.consumer.settle(arrival, settled=False)
    lent.near.store.remove_consumer(lent.link)
    lent.link.detach()
    lent.tunnel.run()
    assert lent.far.counts("accepted") == [1]
    assert lent.confirmations() == []
    assert lent.link.unsettled == 0


# -- rounds


def test_a_shard_lends_only_what_none_of_its_own_consumers_can_take(lent: Lent) -> None:
    own = peers.Peer(lent.far.core)
    link = own.consumer(lent.far.store, 2)
    arrivals = lent.lend("a", "b", "c", "d")
    assert texts(own.take()) == ["a", "b"]
    assert texts(arrivals) == ["c", "d"]
    lent.far.send("e")
    assert texts(lent.take()) == ["e"]
    own.flow(link, 1)
    assert lent.lend("f") == []
    assert texts(own.take()) == ["f"]


def test_what_is_waiting_goes_to_own_consumers_first_when_all_have_credit() -> None:
    lent = Lent(credit=0)
    lent.far.send(*(str(number) for number in range(6)))
    own = peers.Peer(lent.far.core)
    own.consumer(lent.far.store, 4)
    lent.flow(10)
    assert texts(own.take()) == ["0", "1", "2", "3"]
    assert texts(lent.take()) == ["4", "5"]


def test_what_an_own_consumer_does_not_want_goes_far(lent: Lent) -> None:
    own = peers.Peer(lent.far.core)
    own.consumer(lent.far.store, 10, selector=lambda data: b"mine" in data)
    assert texts(lent.lend("yours", "mine", "yours too")) == ["yours", "yours too"]
    assert texts(own.take()) == ["mine"]


def test_far_consumers_are_served_in_turn() -> None:
    lent = Lent(credit=10)
    other = Lent(credit=10)
    second = Tunnel(lent.far, other.borrower).attach()
    lent.far.send(*(str(number) for number in range(6)))
    second.run()
    assert texts(lent.take()) == ["0", "2", "4"]
    second.run()
    assert texts(other.consumer.take()) == ["1", "3", "5"]


# -- clients that come from another container


class Moved:
    """A client that has items of a shard, by another container's loan, and comes to this one."""

    def __init__(self, lent: Lent, *tags: bytes) -> None:
        self.shard = lent.far
        self.near = Shard(3)
        self.consumer = peers.Peer(self.near.core)
        self.link = self.consumer.consumer(self.near.store, marks_received=True)
        self.borrower = Borrower(self.near.store, self.link)
        for tag in tags:
            self.borrower.expect("far", tag)
        self.tunnel = Tunnel(lent.far, self.borrower, marks_received=True)

    def ask(self, *, handed: bool = True) -> list[int]:
        """Presents the tags, as `Borrowing` does."""
        tags = self.borrower.tags_of("far")
        codes = self.shard.store.resume(self.tunnel.lender, tags, tags if handed else ())
        for tag, code in zip(tags, codes, strict=True):
            assert tag in self.borrower.expected
            if code == KEEP_CODE:
                self.tunnel.loan.awaited += 1
            else:
                self.borrower.forget(tag)
        self.tunnel.attach()
        return codes

    def begin(self) -> list[peers.Arrival]:
        self.borrower.begin()
        return self.take()

    def flow(self, credit: int) -> None:
        self.consumer.flow(self.link, credit)
        self.tunnel.run()

    def take(self) -> list[peers.Arrival]:
        self.tunnel.run()
        return self.consumer.take()


def test_nothing_comes_before_the_attach_is_answered_and_then_what_the_client_has() -> None:
    lent = Lent(marks=True)
    held = [each.tag for each in lent.lend("a", "b", "c")]
    lent.tunnel.cut()
    moved = Moved(lent, *held)
    moved.near.send("near")
    lent.far.send("far")
    assert moved.ask() == [KEEP_CODE] * 3
    moved.flow(3)
    assert moved.take() == []
    assert moved.tunnel.loan.credit == 0
    arrivals = moved.begin()
    assert [each.tag for each in arrivals] == held
    assert moved.tunnel.loan.awaited == moved.tunnel.loan.credit == 0
    assert moved.borrower.expected == {}
    moved.consumer.settle(arrivals[0], last=arrivals[1], settled=False)
    moved.consumer.settle(arrivals[2], Released())
    moved.take()
    assert lent.far.counts("accepted", "released", "unsettled") == [2, 1, 0]
    (said,) = moved.consumer.dispositions
    assert (said.first, said.last, said.state) == (
        arrivals[0].delivery_id,
        arrivals[1].delivery_id,
        Accepted(),
    )
    moved.flow(3)
    assert texts(moved.take()) == ["near", "c", "far"]


def test_what_waits_for_credit_comes_as_there_is_some() -> None:
    lent = Lent(marks=True)
    held = [each.tag for each in lent.lend("a", "b", "c", "d", "e")]
    lent.tunnel.cut()
    moved = Moved(lent, *held)
    moved.near.send("near")
    moved.ask()
    moved.begin()
    got: list[peers.Arrival] = []
    for credit in (3, 1, 1, 1):
        assert len(got) == 0 or len(moved.borrower.expected) == 5 - len(got)
        moved.flow(credit)
        got += moved.take()
    assert [each.tag for each in got[:5]] == held
    assert texts(got[5:]) == ["near"]


def test_what_is_stale_is_not_waited_for() -> None:
    lent = Lent(marks=True)
    (arrival,) = lent.lend("a")
    lent.settle(arrival, settled=False)
    moved = Moved(lent, arrival.tag, arrival.tag[:15] + b"\x07")
    moved.near.send("near")
    assert moved.ask() == [SETTLE_CODE, STALE_CODE]
    assert moved.borrower.containers() == []
    moved.flow(1)
    assert texts(moved.begin()) == ["near"]


def test_an_awaited_item_stays_with_its_shard_where_the_credit_is_taken_back() -> None:
    lent = Lent(marks=True)
    (arrival,) = lent.lend("a")
    lent.tunnel.cut()
    moved = Moved(lent, arrival.tag)
    moved.ask()
    moved.flow(1)
    moved.borrower.begin()
    moved.near.core.flush()
    moved.consumer.flow(moved.link, 0)
    assert moved.take() == []
    assert arrival.tag in moved.borrower.expected
    assert lent.far.counts("unsettled", "ready") == [1, 0]
    moved.borrower.forget(arrival.tag)
    moved.flow(1)
    moved.near.send("near")
    assert texts(moved.take()) == ["near"]
    moved.tunnel.cut()
    assert lent.far.counts("in-doubt") == [1]


@pytest.mark.parametrize("handed", [True, False])
def test_what_the_application_has_is_in_doubt_when_its_container_goes_too(handed: bool) -> None:
    lent = Lent(marks=True)
    (arrival,) = lent.lend("a")
    lent.tunnel.cut()
    moved = Moved(lent, arrival.tag)
    moved.ask(handed=handed)
    moved.tunnel.shard.store.remove_consumer(moved.tunnel.lender)
    moved.tunnel.lender.detach()
    lent.far.core.flush()
    assert lent.far.counts("ready", "in-doubt") == ([0, 1] if handed else [1, 0])


def test_the_next_loan_goes_on_where_one_broke() -> None:
    lent = Lent(marks=True)
    first, second = lent.lend("a", "b")
    lent.tunnel.cut()
    moved = Moved(lent, first.tag, second.tag)
    moved.ask()
    moved.flow(1)
    (came,) = moved.begin()
    moved.tunnel.cut()
    moved.tunnel = Tunnel(lent.far, moved.borrower, marks_received=True)
    assert sorted(moved.borrower.tags_of("far")) == sorted([first.tag, second.tag])
    assert moved.borrower.expected == {second.tag: "far"}
    assert lent.far.store.resume(moved.tunnel.lender, [first.tag, second.tag]) == [KEEP_CODE] * 2
    moved.tunnel.loan.owed = moved.tunnel.loan.awaited = 1
    moved.tunnel.attach()
    moved.flow(1)
    assert [each.tag for each in moved.take()] == [second.tag]
    moved.consumer.settle(came, settled=False)
    moved.take()
    assert lent.far.counts("accepted", "unsettled") == [1, 1]
