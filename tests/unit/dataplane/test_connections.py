"""Connections: how they open, who may log in, who is given up, and faults of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from two_ends import Ends, Server
from wires import Broker

from cogwork.amqp.errors import Condition
from cogwork.amqp.frames import AMQP_HEADER, SASL_HEADER, encode_frame
from cogwork.amqp.sasl import PLAIN, SaslCode, SaslInit, encode_sasl
from cogwork.amqp.states import ConnectionState
from cogwork.dataplane.connection import Connection
from cogwork.dataplane.connection_settings import ConnectionSettings

if TYPE_CHECKING:
    from cogwork.amqp.performatives import Attach
    from cogwork.dataplane.link import Link


@pytest.mark.parametrize("with_sasl", [True, False])
def test_both_open(with_sasl: bool) -> None:
    ends = Ends(with_sasl=with_sasl)
    assert ends.near.is_open
    assert ends.far.is_open
    assert ends.client.opened[0].container_id == "broker"


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
