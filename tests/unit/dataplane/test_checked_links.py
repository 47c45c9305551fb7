"""Links whose messages are looked at before they are routed: nothing overtakes, nothing is lost."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from wires import Broker

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.outcomes import Accepted, Rejected, Released
from cogwork.dataplane.addresses.checked import CheckedLink
from cogwork.dataplane.addresses.checkpoint import Checkpoint
from cogwork.dataplane.encoding.codec import encode
from cogwork.dataplane.message.messages import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.transport.incoming import IncomingLink

KIB = 1024
ERROR = AmqpError(condition=Condition.INVALID_FIELD, description="it is bad")
REFUSED = encode(Rejected(error=ERROR).to_described())


class Guards(dict[bytes, int]):
    """Guards what is below `one/guarded` and `all/guarded`."""

    def __missing__(self, address: bytes) -> int:
        return int(b"guarded" in address)


class GuardedBroker(Broker):
    """Looks at messages when it is told to; those whose body has `bad` in it are refused."""

    def __init__(self, *, window: int = 100, at_once: bool = False) -> None:
        super().__init__(window=window)
        self.guards = Guards()
        self.checkpoint = Checkpoint(self.core, self.guards, self)
        self.at_once = at_once
        self.seen: list[bytes] = []
        self.arrived: dict[CheckedLink, None] = {}

    def publisher_end(
        self, link: Link, address: str | None, entry: AddressEntry | None
    ) -> IncomingLink:
        name = None if address is None else address.encode()
        place = (entry, self.space, self.window, self.max_message_size)
        return CheckedLink(link.session.end, link.handle, self.checkpoint, name, *place)

    def on_arrivals(self, links: Sequence[CheckedLink]) -> None:
        self.arrived.update(dict.fromkeys(links))
        if self.at_once:
            self.look()

    def look(self, count: int = 1000, size: int = 1 << 20) -> None:
        """Decide over what waits."""
        for link in list(self.arrived):
            found = link.look(count, size)
            self.seen += [body for _, body, _ in found]
            link.decide(
                [
                    REFUSED if b"bad" in body and self.guards[address] else None
                    for address, body, _ in found
                ]
            )
            if not link.waiting:
                del self.arrived[link]

    def decide(self, count: int = 1000) -> None:
        self.look(count)
        self.settle_down()


@pytest.fixture
def guarded() -> GuardedBroker:
    return GuardedBroker()


@pytest.mark.parametrize("address", ["one/guarded", "all/guarded"])
@pytest.mark.parametrize("settled", [False, True])
def test_what_waits_goes_on_in_order(guarded: GuardedBroker, address: str, settled: bool) -> None:
    consumer = guarded.peer().consumer(address, credit=50)
    publisher = guarded.peer().publisher(address)
    bodies = [b"%d" % number for number in range(9)]
    for body in bodies:
        publisher.send(body, settled=settled)
    assert consumer.bodies == []
    assert publisher.end.waiting == 9
    guarded.decide(4)
    guarded.decide(4)
    guarded.decide()
    assert consumer.bodies == guarded.seen == bodies
    assert [arrival.settled for arrival in consumer.arrivals] == [settled] * 9
    consumer.accept_all()
    if not settled:
        assert publisher.outcomes == dict.fromkeys(publisher.sent, Accepted())
    guarded.assert_clean()


def test_a_node_gets_what_passes(guarded: GuardedBroker) -> None:
    publisher = guarded.peer().publisher("whole/guarded")
    publisher.send(b"0", pieces=3)
    publisher.send(b"1, bad")
    publisher.send(b"2", settled=True)
    assert guarded.taken == []
    guarded.decide()
    assert [(body, is_settled) for body, _, _, is_settled in guarded.taken] == [
        (b"0", False),
        (b"2", True),
    ]
    _, token, source, _ = guarded.taken[0]
    assert source is publisher.end
    source.settle(token, 0x24)
    guarded.settle_down()
    assert list(publisher.outcomes.values())[-1] == Accepted()
    guarded.assert_clean()


def test_what_is_refused_goes_no_further(guarded: GuardedBroker) -> None:
    consumer = guarded.peer().consumer("one/guarded", credit=50)
    publisher = guarded.peer().publisher("one/guarded")
    good, bad = publisher.send(b"good"), publisher.send(b"bad")
    publisher.send(b"bad, settled", settled=True)
    last = publisher.send(b"good, too")
    guarded.decide()
    assert consumer.bodies == [b"good", b"good, too"]
    consumer.accept_all()
    refused = publisher.outcomes.pop(bad)
    assert isinstance(refused, Rejected)
    assert refused.error == ERROR
    assert publisher.outcomes == {good: Accepted(), last: Accepted()}
    guarded.assert_clean()


def test_other_addresses_pass_at_once(guarded: GuardedBroker) -> None:
    consumer = guarded.peer().consumer("one/free", credit=50)
    publisher = guarded.peer().publisher("one/free")
    publisher.send(b"bad")
    assert consumer.bodies == [b"bad"]
    assert guarded.seen == []


def named(to: str | None, body: bytes) -> bytes:
    return Message(body, to=to).encode()


def test_a_sender_to_several_addresses_keeps_its_order(guarded: GuardedBroker) -> None:
    consumer = guarded.peer().consumer("one/free", credit=50)
    other = guarded.peer().consumer("one/guarded", credit=50)
    publisher = guarded.peer().publisher(None)
    publisher.send(named("one/free", b"0"))
    assert len(consumer.bodies) == 1
    publisher.send(named("one/guarded", b"1"))
    publisher.send(named("one/free", b"2, behind it"))
    publisher.send(named("one/guarded", b"3, bad"))
    lost = publisher.send(named(None, b"4"))
    nowhere = publisher.send(named("nowhere/guarded", b"5"))
    assert len(consumer.bodies) == 1
    assert publisher.end.waiting == 5
    guarded.decide()
    assert [Message.decode(body).body for body in consumer.bodies] == [b"0", b"2, behind it"]
    assert [Message.decode(body).body for body in other.bodies] == [b"1"]
    assert publisher.outcomes[lost] == Released()
    assert publisher.outcomes[nowhere] == Released()
    consumer.accept_all()
    other.accept_all()
    assert publisher.end.unsettled == 0
    guarded.assert_clean()


def test_a_forbidden_address_is_not_looked_at(guarded: GuardedBroker) -> None:
    publisher = guarded.peer().publisher(None)
    publisher.end.permit = {b"one/guarded": False}
    sent = publisher.send(named("one/guarded", b"bad"))
    assert publisher.outcomes == {sent: Released()}
    assert guarded.seen == []


@pytest.mark.parametrize("size", [0, 1, 512, 4 * KIB, 300 * KIB])
@pytest.mark.parametrize("address", ["one/guarded", "all/guarded"])
def test_deliveries_of_several_frames_are_looked_at_whole(
    guarded: GuardedBroker, address: str, size: int
) -> None:
    consumer = guarded.peer(max_frame_size=512).consumer(address, credit=5)
    publisher = guarded.peer().publisher(address)
    body = bytes(number % 251 for number in range(size))
    publisher.send(body, pieces=7)
    publisher.send(b"short")
    assert consumer.arrivals == []
    guarded.decide()
    assert guarded.seen == [body, b"short"]
    assert consumer.bodies == [body, b"short"]
    consumer.accept_all()
    assert publisher.outcomes == dict.fromkeys(publisher.sent, Accepted())
    guarded.assert_clean()


def test_a_large_one_to_elsewhere_does_not_overtake(guarded: GuardedBroker) -> None:
    consumer = guarded.peer().consumer("one/free", credit=5)
    publisher = guarded.peer().publisher(None)
    publisher.send(named("one/guarded", b"bad"))
    publisher.send(named("one/free", b"x" * 1000), pieces=5)
    assert consumer.arrivals == []
    guarded.decide()
    assert [Message.decode(body).body for body in consumer.bodies] == [b"x" * 1000]
    publisher.start(named("one/free", b"y" * 1000)[:500])
    assert not consumer.last.complete


def test_an_aborted_delivery_is_never_looked_at(guarded: GuardedBroker) -> None:
    publisher = guarded.peer().publisher("one/guarded")
    publisher.start(b"bad")
    publisher.abort()
    guarded.decide()
    assert guarded.seen == []
    guarded.assert_clean()


def test_what_waits_counts_against_the_credit(guarded: GuardedBroker) -> None:
    consumer = guarded.peer().consumer("one/guarded", credit=guarded.window)
    publisher = guarded.peer().publisher("one/guarded")
    consumer.flow(0)
    for number in range(guarded.window):
        publisher.send(b"%d" % number, settled=number % 2 == 0)
    assert publisher.credit == 0
    assert publisher.end.charged == guarded.window // 2
    consumer.flow(1000)
    assert publisher.credit == 0
    guarded.decide(10)
    guarded.decide()
    consumer.accept_all()
    assert publisher.end.charged == 0
    assert publisher.credit > guarded.window // 2
    guarded.assert_clean()


def test_presettled_refusals_give_the_credit_back(guarded: GuardedBroker) -> None:
    guarded.peer().consumer("one/guarded", credit=1000)
    publisher = guarded.peer().publisher("one/guarded")
    for _ in range(guarded.window):
        publisher.send(b"bad", settled=True)
    assert publisher.credit == 0
    guarded.decide()
    assert publisher.end.charged == 0
    assert publisher.credit > guarded.window // 2
    guarded.assert_clean()


@pytest.mark.parametrize("goes", ["detach", "vanish"])
def test_what_was_sent_before_a_link_went_still_goes_on(guarded: GuardedBroker, goes: str) -> None:
    consumer = guarded.peer().consumer("one/guarded", credit=50)
    publisher = guarded.peer().publisher("one/guarded")
    for number in range(3):
        publisher.send(b"%d" % number, settled=True)
    publisher.send(b"bad", settled=True)
    publisher.send(b"bad")
    publisher.send(b"unsettled")
    if goes == "detach":
        publisher.detach()
    else:
        publisher.channel.peer.vanish()
    guarded.space.entries.clear()
    guarded.entry("one/guarded").add_outlet(guarded.links[consumer.name])
    guarded.decide()
    assert consumer.bodies == [b"0", b"1", b"2", b"unsettled"]
    consumer.accept_all()
    guarded.assert_clean()


def test_what_nobody_can_decide_over_is_given_back(guarded: GuardedBroker) -> None:
    consumer = guarded.peer().consumer("one/guarded", credit=50)
    publisher = guarded.peer().publisher("one/guarded")
    sent = publisher.send(b"unsettled")
    publisher.send(b"settled", settled=True)
    (link,) = guarded.arrived
    assert link.give_back() == 1
    guarded.settle_down()
    assert publisher.outcomes == {sent: Released()}
    assert consumer.bodies == []
    link.decide([None, REFUSED])
    guarded.assert_clean()


def test_a_look_is_bounded(guarded: GuardedBroker) -> None:
    guarded.peer().consumer("one/guarded", credit=50)
    publisher = guarded.peer().publisher("one/guarded")
    for _ in range(5):
        publisher.send(b"x" * 100)
    (link,) = guarded.arrived
    assert len(link.look(3, 1 << 20)) == 3
    assert len(link.look(10, 250)) == 2
    assert len(link.look(10, 1)) == 1
    link.give_back()
    assert link.look(10, 1000) == []


@pytest.mark.parametrize("seed", range(20))
def test_any_mixture_stays_in_order(seed: int) -> None:
    chance = random.Random(seed)
    guarded = GuardedBroker(window=1000, at_once=chance.random() < 0.5)
    consumers = {
        address: guarded.peer().consumer(address, credit=1000)
        for address in ("one/guarded", "one/free", "all/guarded")
    }
    publishers = [guarded.peer().publisher(None) for _ in range(2)]
    publishers += [guarded.peer().publisher(address) for address in consumers]
    expected: dict[tuple[int, str], list[bytes]] = {}
    for number in range(300):
        at = chance.randrange(len(publishers))
        publisher = publishers[at]
        address = chance.choice(list(consumers)) if at < 2 else list(consumers)[at - 2]
        is_bad = chance.random() < 0.2
        body = b"%d/%d%s" % (at, number, b" bad" if is_bad else b"")
        settled = chance.random() < 0.5
        data = named(address, body)
        # A first frame without the whole address leads nowhere, here as anywhere.
        publisher.send(data, settled=settled, pieces=chance.choice([1, 1, 3]) if at > 1 else 1)
        if not is_bad or address == "one/free":
            expected.setdefault((at, address), []).append(body)
        if chance.random() < 0.1:
            guarded.decide(chance.randrange(1, 5))
        if chance.random() < 0.1:
            chance.choice(list(consumers.values())).accept_all()
    guarded.decide()
    for address, consumer in consumers.items():
        consumer.accept_all()
        found: dict[tuple[int, str], list[bytes]] = {}
        for data in consumer.bodies:
            said = Message.decode(data).body
            assert isinstance(said, bytes)
            found.setdefault((int(said.split(b"/")[0]), address), []).append(said)
        assert found == {key: each for key, each in expected.items() if key[1] == address}
    guarded.assert_clean()
    for publisher in publishers:
        assert publisher.end.unsettled == publisher.end.charged == 0
