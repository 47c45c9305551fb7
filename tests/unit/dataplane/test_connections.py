"""Two ends of one connection, both of this code: a client and a broker, fed to each other."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from wires import Broker

from cogwork.amqp.errors import AmqpError, Condition, ProtocolError
from cogwork.amqp.frames import AMQP_HEADER, SASL_HEADER, encode_frame
from cogwork.amqp.performatives import Attach, Detach, End, Open, Role
from cogwork.amqp.sasl import ANONYMOUS, PLAIN, SaslCode, SaslInit, SaslResponse, encode_sasl
from cogwork.amqp.states import ConnectionState
from cogwork.amqp.terminus import Source, Target
from cogwork.dataplane.connection import Connection
from cogwork.dataplane.connection_settings import ConnectionSettings
from cogwork.dataplane.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.incoming import IncomingLink
from cogwork.dataplane.outgoing import OutgoingLink
from cogwork.dataplane.port import Port

if TYPE_CHECKING:
    from cogwork.amqp.types import Symbol
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.session import SessionEndpoint


class Client(Broker):
    """The client's host: it attaches links, and gathers what arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[Open] = []
        self.attached: list[Link] = []
        self.detached: list[tuple[str, AmqpError | None, bool]] = []
        self.ended: list[AmqpError | None] = []
        self.outcomes: list[tuple[int, int]] = []
        self.mechanism = ANONYMOUS
        self.inbox = Port(self.core, self)

    def on_batch(self, port: Port) -> None:
        self.outcomes += [(token, code) for token, code, _, _ in port.outcomes]
        super().on_batch(port)

    def sasl_init(self, connection: Connection, offered: tuple[Symbol, ...]) -> SaslInit:
        assert self.mechanism in offered
        return SaslInit(mechanism=self.mechanism)

    def on_open(self, connection: Connection, opened: Open) -> None:
        self.opened.append(opened)

    def on_attached(self, link: Link) -> None:
        self.attached.append(link)

    def on_detached(self, link: Link, error: AmqpError | None, *, closed: bool) -> None:
        self.detached.append((link.name, error, closed))

    def on_session_ended(self, session: SessionEndpoint, error: AmqpError | None) -> None:
        self.ended.append(error)

    def sender(self, session: SessionEndpoint, address: str) -> Link:
        link = session.open_link(f"to-{address}", Role.SENDER)
        link.attach(source=Source(), target=Target(address=address))
        end = OutgoingLink(session.end, link.handle)
        end.feeder = self.inbox
        link.carry(end)
        return link

    def receiver(self, session: SessionEndpoint, address: str, credit: int) -> Link:
        link = session.open_link(f"from-{address}", Role.RECEIVER)
        link.attach(source=Source(address=address), target=Target())
        entry = AddressEntry(self.core, address, CLOSEST_CODE)
        entry.add_outlet(self.node)
        end = IncomingLink(session.end, link.handle, entry)
        link.carry(end)
        end.grant(credit)
        return link


def outgoing(link: Link) -> OutgoingLink:
    assert isinstance(link.end, OutgoingLink)
    return link.end


class Server(Broker):
    """A broker that asks for SASL."""

    def __init__(self) -> None:
        super().__init__()
        self.mechanisms = (ANONYMOUS, PLAIN)
        self.asked: list[SaslInit | SaslResponse] = []
        self.lets_anyone_in = True

    def sasl_mechanisms(self, connection: Connection) -> tuple[Symbol, ...]:
        return self.mechanisms

    def may_skip_sasl(self, connection: Connection) -> bool:
        return self.lets_anyone_in

    def authenticate(self, connection: Connection, frame: SaslInit | SaslResponse) -> None:
        self.asked.append(frame)
        if isinstance(frame, SaslInit) and frame.mechanism == ANONYMOUS:
            connection.sasl_done(SaslCode.OK)


class Ends:
    """Both ends, and what carries bytes between them."""

    def __init__(
        self, *, with_sasl: bool = True, mechanism: Symbol = ANONYMOUS, **settings: Any
    ) -> None:
        self.client, self.server = Client(), Server()
        self.client.mechanism = mechanism
        self.near = Connection(self.client.core, self.client, ConnectionSettings())
        self.far = Connection(self.server.core, self.server, ConnectionSettings(**settings))
        self.finished: list[Connection] = []
        for connection in (self.near, self.far):
            connection.transport = Transport(self.finished, connection)
        self.near.start(Open(container_id="client", idle_time_out=2000), with_sasl=with_sasl)
        self.run()

    def run(self) -> None:
        """Carries bytes both ways until nobody has more to say."""
        self.near.flush()
        self.far.flush()
        while self.near.wire.unsent_bytes or self.far.wire.unsent_bytes:
            self.far.wire.feed(self.near.wire.take_output())
            self.near.wire.feed(self.far.wire.take_output())
        assert not self.client.faults
        assert not self.server.faults


class Transport:
    def __init__(self, finished: list[Connection], connection: Connection) -> None:
        self._finished = finished
        self._connection = connection

    def prefer(self) -> None:
        pass

    def finish(self, *, linger: bool) -> None:
        self._finished.append(self._connection)


@pytest.mark.parametrize("with_sasl", [True, False])
def test_both_open(with_sasl: bool) -> None:
    ends = Ends(with_sasl=with_sasl)
    assert ends.near.is_open
    assert ends.far.is_open
    assert ends.client.opened[0].container_id == "broker"


def test_messages_go_both_ways_with_their_outcomes() -> None:
    ends = Ends()
    session = ends.near.begin_session()
    sender = ends.client.sender(session, "one/a")
    ends.client.receiver(session, "one/a", credit=10)
    ends.run()
    for number in range(3):
        assert outgoing(sender).send(ends.client.inbox, number, b"%d" % number, False)
    ends.run()
    assert [message for message, _, _, _ in ends.client.taken] == [b"0", b"1", b"2"]
    for _, token, source, _ in ends.client.taken:
        assert source is not None
        source.settle(token, 0x24)
    ends.run()
    assert ends.client.outcomes == [(0, 0x24), (1, 0x24), (2, 0x24)]
    assert ends.far.sessions[0].end.unsettled == 0


def test_a_client_may_not_send_before_it_has_credit() -> None:
    ends = Ends()
    sender = ends.client.sender(ends.near.begin_session(), "one/a")
    assert not outgoing(sender).send(ends.client.inbox, 0, b"x", True)
    ends.run()
    assert not outgoing(sender).send(ends.client.inbox, 0, b"x", True)


def test_a_client_drains_and_is_told() -> None:
    ends = Ends()
    receiver = ends.client.receiver(ends.near.begin_session(), "one/a", credit=10)
    ends.run()
    assert isinstance(receiver.end, IncomingLink)
    receiver.end.grant(10, drain=True)
    ends.run()
    assert ends.client.drained == [receiver]
    assert receiver.end.credit == 0
    assert receiver.end.delivery_count == 10


def test_a_refused_link_is_told_to_the_client() -> None:
    ends = Ends()
    ends.client.sender(ends.near.begin_session(), "forbidden/a")
    ends.run()
    name, error, closed = ends.client.detached[0]
    assert (name, closed) == ("to-forbidden/a", True)
    assert error is not None
    assert error.condition == Condition.UNAUTHORIZED_ACCESS
    assert ends.near.is_open


def test_detach_end_and_close_are_answered_both_ways() -> None:
    ends = Ends()
    session = ends.near.begin_session()
    sender = ends.client.sender(session, "one/a")
    ends.run()
    links = list(ends.far.sessions[0].links.values())
    sender.detach(closed=False)
    ends.run()
    assert ends.client.detached == [("to-one/a", None, False)]
    assert [link.was_left for link in links] == [True]
    session.close()
    ends.run()
    assert ends.near.sessions == ends.far.sessions == []
    ends.near.close()
    ends.run()
    assert ends.finished == [ends.far, ends.near]
    assert ends.client.closed == ends.server.closed == [None]


@pytest.mark.parametrize("is_answered", [True, False])
def test_the_end_of_a_link_is_told_once(is_answered: bool) -> None:
    ends = Ends()
    sender = ends.client.sender(ends.near.begin_session(), "one/a")
    ends.run()
    told: list[Link] = []
    ends.client.on_stopping = told.append  # type: ignore[method-assign,assignment]  # a broker that fails
    sender.detach()
    assert told == [sender]
    if is_answered:
        ends.run()
    ends.near.on_lost(104)
    assert told == [sender]


def test_the_server_ends_a_session_and_the_client_hears_why() -> None:
    ends = Ends()
    ends.client.sender(ends.near.begin_session(), "one/a")
    ends.run()
    why = AmqpError(condition=Condition.RESOURCE_LIMIT_EXCEEDED, description="enough")
    ends.far.sessions[0].close(why)
    ends.run()
    assert ends.client.ended == [why]
    assert ends.far.sessions == []


def test_a_lost_transport_ends_everything_once() -> None:
    ends = Ends()
    ends.client.sender(ends.near.begin_session(), "one/a")
    ends.run()
    ends.far.on_lost(104)
    ends.far.on_lost(104)
    ends.far.close()
    assert len(ends.server.closed) == 1
    assert ends.far.state is ConnectionState.END
    assert ends.server.core.wires == []


def test_a_link_may_be_detached_before_it_was_answered() -> None:
    ends = Ends()
    sender = ends.client.sender(ends.near.begin_session(), "one/a")
    sender.detach()
    ends.run()
    assert [name for name, _, _ in ends.client.detached] == ["to-one/a"]
    assert ends.server.links == {}


def test_a_session_takes_no_more_links_than_handles() -> None:
    ends = Ends(handle_max=1)
    session = ends.near.begin_session()
    ends.run()
    for address in ("one/a", "one/b"):
        ends.client.sender(session, address)
    with pytest.raises(ProtocolError, match="more than 2 links"):
        ends.client.sender(session, "one/c")


# -- SASL


def test_a_mechanism_that_takes_its_time_keeps_the_client_waiting() -> None:
    ends = Ends(mechanism=PLAIN)
    assert len(ends.server.asked) == 1
    assert not ends.near.is_open
    ends.far.sasl_done(SaslCode.OK, "user")
    ends.run()
    assert ends.near.is_open
    assert ends.far.identity == "user"


def test_a_refused_login_ends_the_connection() -> None:
    broker = Server()
    connection = Connection(broker.core, broker, ConnectionSettings())
    connection.wire.feed(SASL_HEADER)
    connection.wire.take_output()
    connection.sasl_done(SaslCode.AUTH)
    assert connection.wire.take_output()[-1:] == bytes([SaslCode.AUTH])
    assert broker.closed == [None]


def sasl_frame(body: SaslInit) -> bytes:
    return encode_frame(0, encode_sasl(body), 1)


def test_one_login_at_a_time() -> None:
    """Each check of a password costs a tenth of a second: nobody gets many at once."""
    broker = Server()
    connection = Connection(broker.core, broker, ConnectionSettings())
    connection.wire.feed(SASL_HEADER + 3 * sasl_frame(SaslInit(mechanism=PLAIN)))
    assert len(broker.asked) == 1
    assert len(broker.closed) == 1


def test_frames_before_the_login_is_over_are_refused() -> None:
    broker = Server()
    connection = Connection(broker.core, broker, ConnectionSettings())
    connection.wire.feed(SASL_HEADER + b"\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x10\x45")
    assert broker.closed[0] is not None
    assert broker.closed[0].condition == Condition.CONNECTION_FRAMING_ERROR


def test_amqp_without_a_login_is_answered_with_the_sasl_header() -> None:
    broker = Server()
    broker.lets_anyone_in = False
    connection = Connection(broker.core, broker, ConnectionSettings())
    connection.wire.feed(AMQP_HEADER)
    assert connection.wire.take_output() == SASL_HEADER
    assert len(broker.closed) == 1


# -- time


def test_heartbeats_are_sent_within_half_of_what_the_peer_allows() -> None:
    ends = Ends()
    assert ends.far.peer_idle_timeout_s == 2.0
    last_s = ends.far.wire.last_sent_s
    ends.far.tick(last_s + 0.9)
    assert ends.far.wire.unsent_bytes == 0
    ends.far.tick(last_s + 1.01)
    assert ends.far.wire.take_output() == b"\x00\x00\x00\x08\x02\x00\x00\x00"


def test_a_silent_peer_is_given_up() -> None:
    ends = Ends(idle_timeout_s=30)
    received_s = ends.far.wire.last_received_s
    ends.far.tick(received_s + 29)
    assert ends.far.is_open
    ends.far.tick(received_s + 30.1)
    ends.run()
    error = ends.client.closed[0]
    assert error is not None
    assert error.condition == Condition.RESOURCE_LIMIT_EXCEEDED
    assert len(ends.server.closed) == 1


def test_a_peer_that_is_slow_to_close_is_given_up_too() -> None:
    ends = Ends(idle_timeout_s=30)
    ends.far.close()
    ends.far.tick(ends.far.wire.last_received_s + 30.1)
    assert len(ends.server.closed) == 1


# -- faults of our own


def test_a_fault_ends_its_connection_and_no_other() -> None:
    broker = Broker()
    consumer = broker.peer().consumer("one/a", credit=5)
    publisher = broker.peer().publisher("one/a")
    victim = broker.peer()

    def fail(_link: Link, _attach: Attach) -> None:
        raise ZeroDivisionError

    broker.on_attach = fail  # type: ignore[method-assign,assignment]  # a broker that fails
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        victim.publisher("one/a")
    broker.faults.clear()
    victim.hear()
    assert victim.close_error is not None
    assert victim.close_error.condition == Condition.INTERNAL_ERROR
    assert victim.finished
    publisher.send(b"goes on")
    assert consumer.bodies == [b"goes on"]


def test_a_fault_while_a_violation_is_told_keeps_to_its_connection() -> None:
    """What arrived with it is thrown away, not read again with what comes next."""
    broker = Broker()
    publisher = broker.peer().publisher("all/a")

    def fail(_link: Link, _error: object, *, closed: bool) -> None:
        raise ZeroDivisionError

    broker.on_detached = fail  # type: ignore[method-assign,assignment]  # a broker that fails
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        publisher.channel.peer.feed(b"\x00\x00\x00\x07\x02\x00\x00\x00" * 1000)
    broker.faults.clear()
    publisher.channel.peer.feed(b"\x00\x00\x00\x07\x02\x00\x00\x00" * 1000)
    assert publisher.channel.peer.wire.closed
    assert publisher.channel.peer.finished


def test_a_selector_that_fails_harms_its_consumer_only() -> None:
    broker = Broker()
    publisher = broker.peer().publisher("all/a")

    def fail(_message: bytes) -> bool:
        raise RecursionError

    broker.selector = fail
    bad = broker.peer().consumer("all/a", credit=5)
    broker.selector = None
    good = broker.peer().consumer("all/a", credit=5)
    with pytest.raises(AssertionError, match="RecursionError"):
        publisher.send(b"x")
    broker.faults.clear()
    broker.settle_down()
    assert good.bodies == [b"x"]
    assert bad.bodies == []
    assert publisher.detached is None


def test_output_that_cannot_be_handed_over_keeps_to_its_connection() -> None:
    broker = Broker()
    publisher = broker.peer().publisher("all/a")
    bad = broker.peer().consumer("all/a", credit=5)
    good = broker.peer().consumer("all/a", credit=5)

    def fail() -> None:
        raise OSError

    bad.channel.peer.wire.on_output = fail
    with pytest.raises(AssertionError, match="OSError"):
        publisher.send(b"x")
    broker.faults.clear()
    broker.settle_down()
    assert good.bodies == [b"x"]
    assert bad.channel.peer.finished


# -- an answer that is put off


class Slow(Broker):
    """It answers attaches when it is told so."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Link] = []

    def on_attach(self, link: Link, attach: Attach) -> None:
        link.carry(OutgoingLink(link.session.end, link.handle))
        link.put_off(partial(link.attach, source=attach.source, target=Target()))
        self.waiting.append(link)


def test_an_attach_may_be_answered_later() -> None:
    broker = Slow()
    peer = broker.peer()
    peer.consumer("queue/a", credit=3)
    broker.settle_down()
    assert peer.of(Attach) == []
    (link,) = broker.waiting
    link.answer()
    link.answer()
    broker.settle_down()
    assert [each.name for each in peer.of(Attach)] == [link.name]
    assert link.end is not None
    assert link.end.credit == 3


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_detach_has_the_attach_answered_first(is_ours: bool) -> None:
    broker = Slow()
    peer = broker.peer()
    consumer = peer.consumer("queue/a")
    (link,) = broker.waiting
    if is_ours:
        link.detach(AmqpError(condition=Condition.LINK_DETACH_FORCED, description="x"))
    else:
        consumer.detach()
    broker.settle_down()
    ends = [each for _, each in peer.heard if isinstance(each, (Attach, Detach))]
    assert [type(each) for each in ends] == [Attach, Detach]
    assert peer.of(End) == []
    assert not link.is_attached


def test_nothing_is_answered_on_a_connection_that_was_lost() -> None:
    broker = Slow()
    peer = broker.peer()
    peer.consumer("queue/a")
    peer.vanish()
    broker.waiting[0].answer()
    broker.settle_down()
    assert peer.of(Attach) == []
