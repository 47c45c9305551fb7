"""Random schedules against a dumb model: what may never be lost, doubled, reordered or leaked.

The model is what the peers themselves remember: what each publisher sent, what each consumer got
and how it answered. It knows nothing of windows, queues or frames.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wires import BLOCK, DETACH, DROP_OLDEST, Broker

from cogwork.amqp.outcomes import Accepted, Modified, Rejected, Released

if TYPE_CHECKING:
    from wires import Arrival, Consumer, Peer, Publisher

    from cogwork.amqp.outcomes import DeliveryState

FRAME_SIZES = (512, 700, 65536)
WINDOWS = (1, 3, 1000)
BODY_SIZES = (0, 10, 400, 417, 1000, 5000)
OUTCOMES = (Accepted(), Rejected(), Released(), Modified(), Modified(undeliverable_here=True))
CALM = (
    "publisher", "consumer", "send", "settled", "burst", "start", "more", "credit", "window",
    "settle",
)  # fmt: skip  # a table of words
STORMY = (*CALM, "abort", "drain", "leave", "vanish", "publisher leaves", "publisher vanishes")

Step = tuple[str, int, int]


def schedules(names: tuple[str, ...]) -> st.SearchStrategy[list[Step]]:
    numbers = st.integers(0, 11)
    return st.lists(st.tuples(st.sampled_from(names), numbers, numbers), max_size=50)


@dataclass
class Sender:
    """A publisher with what it remembers."""

    link: Publisher
    number: int
    bodies: dict[int, bytes] = field(default_factory=dict)
    settled: set[int] = field(default_factory=set)
    aborted: set[int] = field(default_factory=set)
    under_way: int | None = None
    is_gone: bool = False


@dataclass
class Receiver:
    """A consumer with what it said."""

    link: Consumer
    said: dict[int, DeliveryState] = field(default_factory=dict)
    is_gone: bool = False

    def open_arrivals(self) -> list[Arrival]:
        return [a for a in self.link.arrivals if a.complete and not a.settled]


class World:
    """A broker, peers that come and go, and one address."""

    def __init__(self, address: str, policy: int = BLOCK) -> None:
        self.address = address
        self.broker = Broker(window=7)
        self.broker.policy = policy
        self.broker.backlog_bytes_max = 3000
        self.senders: list[Sender] = []
        self.receivers: list[Receiver] = []
        self.peers: list[Peer] = []

    def run(self, schedule: list[Step]) -> None:
        for name, which, how in schedule:
            getattr(self, name.replace(" ", "_"))(which, how)
            self.check()

    def _peer(self, which: int, how: int) -> Peer:
        """Give half of the links a connection of their own, the others a shared one."""
        if self.peers and which % 2:
            alive = [peer for peer in self.peers if not peer.finished]
            if alive:
                return alive[which % len(alive)]
        self.peers.append(
            self.broker.peer(
                max_frame_size=FRAME_SIZES[how % 3], incoming_window=WINDOWS[how // 3 % 3]
            )
        )
        return self.peers[-1]

    # -- steps

    def publisher(self, which: int, how: int) -> None:
        if len(self.senders) < 6:
            link = self._peer(which, how).publisher(self.address)
            self.senders.append(Sender(link, len(self.senders)))

    def consumer(self, which: int, how: int) -> None:
        if len(self.receivers) < 6:
            presettled = how % 4 == 3
            link = self._peer(which, how).consumer(self.address, how, presettled=presettled)
            self.receivers.append(Receiver(link))

    def send(self, which: int, how: int, *, settled: bool = False) -> None:
        sender = self._sender(which)
        if sender is None or sender.under_way is not None or not sender.link.credit:
            return
        body = b"%d:%d;" % (sender.number, len(sender.bodies))
        body += b"x" * BODY_SIZES[how % len(BODY_SIZES)]
        delivery = sender.link.send(body, settled=settled, pieces=1 + how // 6 * 3)
        sender.bodies[delivery] = body
        if settled:
            sender.settled.add(delivery)

    def settled(self, which: int, how: int) -> None:
        self.send(which, how, settled=True)

    def burst(self, which: int, how: int) -> None:
        """Send many messages in one read, so that they are routed as a run."""
        sender = self._sender(which)
        if sender is None or sender.under_way is not None:
            return
        count = min(1 + how, sender.link.credit)
        sizes = [80 + 40 * how * (number % 3 == 1) for number in range(count)]
        bodies = [
            b"%d:%d;" % (sender.number, len(sender.bodies) + number) + b"z" * size
            for number, size in enumerate(sizes)
        ]
        sent = sender.link.send_at_once(bodies, settled=how % 3 == 2)
        sender.bodies |= dict(zip(sent, bodies, strict=True))
        if how % 3 == 2:
            sender.settled.update(sent)

    def start(self, which: int, how: int) -> None:
        sender = self._sender(which)
        if sender is None or sender.under_way is not None or not sender.link.credit:
            return
        body = b"%d:%d;" % (sender.number, len(sender.bodies))
        body += b"x" * BODY_SIZES[how % len(BODY_SIZES)]
        sender.under_way = sender.link.start(body, settled=how % 2 == 1)
        sender.bodies[sender.under_way] = body
        if how % 2:
            sender.settled.add(sender.under_way)

    def more(self, which: int, how: int) -> None:
        sender = self._sender(which)
        if sender is None or sender.under_way is None:
            return
        piece = b"y" * BODY_SIZES[how % len(BODY_SIZES)]
        sender.bodies[sender.under_way] += piece
        sender.link.more(piece, more=how < 6)
        if how >= 6:
            sender.under_way = None

    def abort(self, which: int, _how: int) -> None:
        sender = self._sender(which)
        if sender is not None and sender.under_way is not None:
            sender.aborted.add(sender.under_way)
            sender.under_way = None
            sender.link.abort()

    def credit(self, which: int, how: int) -> None:
        receiver = self._receiver(which)
        if receiver is not None:
            receiver.link.flow(how)

    def drain(self, which: int, how: int) -> None:
        receiver = self._receiver(which)
        if receiver is not None:
            receiver.link.flow(how, drain=True)

    def window(self, which: int, _how: int) -> None:
        receiver = self._receiver(which)
        if receiver is not None:
            receiver.link.channel.flow()

    def settle(self, which: int, how: int) -> None:
        receiver = self._receiver(which)
        if receiver is None:
            return
        for arrival in receiver.open_arrivals()[: 1 + how % 3]:
            self._say(receiver, arrival, OUTCOMES[how % len(OUTCOMES)], settled=how % 2 == 0)

    def _say(
        self, receiver: Receiver, arrival: Arrival, state: DeliveryState, *, settled: bool
    ) -> None:
        arrival.settled = True
        receiver.said[arrival.id] = state
        receiver.link.channel.settle(arrival.id, state=state, settled=settled)

    def leave(self, which: int, _how: int) -> None:
        receiver = self._receiver(which)
        if receiver is not None:
            receiver.is_gone = True
            receiver.link.detach()

    def vanish(self, which: int, _how: int) -> None:
        receiver = self._receiver(which)
        if receiver is not None:
            self._lose(receiver.link.channel.peer)

    def publisher_leaves(self, which: int, _how: int) -> None:
        sender = self._sender(which)
        if sender is not None:
            sender.is_gone = True
            sender.link.detach()

    def publisher_vanishes(self, which: int, _how: int) -> None:
        sender = self._sender(which)
        if sender is not None:
            self._lose(sender.link.channel.peer)

    def _lose(self, peer: Peer) -> None:
        ends: list[Sender | Receiver] = [*self.senders, *self.receivers]
        for end in ends:
            if end.link.channel.peer is peer:
                end.is_gone = True
        peer.vanish()

    def _sender(self, which: int) -> Sender | None:
        alive = [each for each in self.senders if not each.is_gone]
        return alive[which % len(alive)] if alive else None

    def _receiver(self, which: int) -> Receiver | None:
        alive = [each for each in self.receivers if not each.is_gone]
        return alive[which % len(alive)] if alive else None

    # -- what holds at any time

    def check(self) -> None:
        for peer in self.peers:
            assert peer.finished or not any(c.ended for c in peer.channels.values())
        self._detach_overdue()
        for sender in self.senders:
            assert sender.is_gone or sender.link.detached is None
            assert all(count == 1 for count in sender.link.answers.values())
            assert not sender.settled & set(sender.link.outcomes)
        for receiver in self.receivers:
            self._check_arrivals(receiver)

    def _check_arrivals(self, receiver: Receiver) -> None:
        newest: dict[bytes, int] = {}
        for arrival in receiver.link.arrivals:
            if not arrival.complete:
                continue
            name, number = arrival.body.partition(b";")[0].split(b":")
            assert newest.get(name, -1) < int(number), "out of order, or twice"
            newest[name] = int(number)
            assert arrival.body in self.senders[int(name)].bodies.values()

    def _detach_overdue(self) -> None:
        overdue, self.broker.core.overdue = self.broker.core.overdue, []
        for end in overdue:
            for receiver in self.receivers:
                if not receiver.is_gone and receiver.link.name == end.owner.name:
                    receiver.is_gone = True
                    end.owner.detach()
        self.broker.settle_down()

    # -- and in the end

    def finish_deliveries(self) -> None:
        for sender in self.senders:
            if not sender.is_gone and sender.under_way is not None:
                sender.link.more(b"", more=False)
                sender.under_way = None

    def take_everything(self) -> None:
        """Let every consumer take and accept all there is."""
        for _ in range(400):
            before = sum(len(r.link.arrivals) + len(r.said) for r in self.receivers)
            frames = sum(a.frames for r in self.receivers for a in r.link.arrivals)
            for receiver in self.receivers:
                if not receiver.is_gone:
                    receiver.link.flow(50)
                    for arrival in receiver.open_arrivals():
                        self._say(receiver, arrival, Accepted(), settled=True)
            after = sum(len(r.link.arrivals) + len(r.said) for r in self.receivers)
            if (after, sum(a.frames for r in self.receivers for a in r.link.arrivals)) == (
                before,
                frames,
            ):
                return
        raise AssertionError("the consumers never got to the end of it")

    def assert_all_answered(self) -> None:
        """Every unsettled delivery of a publisher that stayed has had its one answer."""
        for sender in self.senders:
            if sender.is_gone:
                continue
            expected = set(sender.bodies) - sender.settled - sender.aborted
            assert expected - set(sender.link.outcomes) == set()
            assert sender.link.end.unsettled == 0
            assert sender.link.end.charged == 0

    def everybody_goes(self) -> None:
        for peer in self.peers:
            if not peer.finished:
                peer.vanish()
        self.broker.assert_clean()
        assert self.broker.entry(self.address).is_idle


def bodies_of(receivers: list[Receiver]) -> list[bytes]:
    return [a.body for each in receivers for a in each.link.arrivals if a.complete]


thorough = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@thorough
@pytest.mark.parametrize("address", ["one/a", "least/a"])
@given(schedule=schedules(CALM))
def test_anycast_delivers_exactly_once_in_each_publishers_order(
    address: str, schedule: list[Step]
) -> None:
    world = World(address)
    world.run(schedule)
    world.consumer(0, 8)
    world.finish_deliveries()
    world.take_everything()
    world.assert_all_answered()
    got = bodies_of(world.receivers)
    sent = [body for sender in world.senders for body in sender.bodies.values()]
    assert sorted(got) == sorted(sent)
    said = {
        arrival.body: receiver.said.get(arrival.id, Accepted())
        for receiver in world.receivers
        for arrival in receiver.link.arrivals
    }
    for sender in world.senders:
        for delivery, outcome in sender.link.outcomes.items():
            assert outcome == said[sender.bodies[delivery]]
    world.everybody_goes()


@thorough
@given(schedule=schedules(CALM))
def test_multicast_gives_everybody_everything_since_it_came(schedule: list[Step]) -> None:
    world = World("all/a")
    world.broker.backlog_bytes_max = 1 << 30
    world.run(schedule)
    world.finish_deliveries()
    world.take_everything()
    world.assert_all_answered()
    for receiver in world.receivers:
        for sender in world.senders:
            start = b"%d:" % sender.number
            got = [body for body in receiver.link.bodies if body.startswith(start)]
            sent = list(sender.bodies.values())
            assert got == sent[len(sent) - len(got) :]
    for sender in world.senders:
        assert all(outcome == Accepted() for outcome in sender.link.outcomes.values())
    world.everybody_goes()


@thorough
@pytest.mark.parametrize(
    ("address", "policy"),
    [
        ("one/a", BLOCK),
        ("least/a", BLOCK),
        ("all/a", BLOCK),
        ("all/a", DROP_OLDEST),
        ("all/a", DETACH),
    ],
)
@given(schedule=schedules(STORMY))
def test_whatever_happens_nothing_is_doubled_or_left_behind(
    address: str, policy: int, schedule: list[Step]
) -> None:
    world = World(address, policy)
    world.run(schedule)
    if not address.startswith("all"):
        got = bodies_of(world.receivers)
        assert len(got) == len(set(got))
    world.finish_deliveries()
    world.take_everything()
    for receiver in list(world.receivers):
        if not receiver.is_gone:
            world.leave(0, 0)
            world.check()
    world.assert_all_answered()
    world.everybody_goes()
