"""What a container says in its open: what it offers, whose addresses hold, and that it refuses."""

from __future__ import annotations

import pytest
from hosted import LISTEN, Hosted
from wires import Peer

from cogwork.amqp.errors import Condition
from cogwork.amqp.frames import AMQP_HEADER
from cogwork.amqp.performatives import Attach, Begin, Close, Detach, Open, Role
from cogwork.amqp.redirect import Host, Redirect
from cogwork.amqp.terminus import Source, Target
from cogwork.amqp.types import Symbol
from cogwork.config.limits import Limits
from cogwork.config.settings import Configuration, Vhost

FAILED = Symbol("amqp:connection-establishment-failed")
LIMITS = Limits(connections=2)


@pytest.fixture
def hosted() -> Hosted:
    vhosts = [Vhost(name="nova")]
    return Hosted(Configuration(id="h", listeners=[LISTEN], limits=LIMITS, vhosts=vhosts))


def opened(hosted: Hosted, hostname: str | None = None) -> Peer:
    peer = Peer(hosted)
    peer.feed(AMQP_HEADER)
    peer.say(Open(container_id="peer", hostname=hostname))
    return peer


def is_refused(peer: Peer, condition: Symbol) -> bool:
    """Tell whether an open says that a close follows, and the close says why."""
    (_, answer), (_, close) = peer.heard
    assert isinstance(answer, Open)
    assert isinstance(close, Close)
    assert close.error is not None
    return close.error.condition == condition and (answer.properties or {}).get(FAILED) is True


def test_delayed_delivery_is_offered(hosted: Hosted) -> None:
    (answer,) = opened(hosted).of(Open)
    assert Symbol("DELAYED_DELIVERY") in answer.offered_capabilities
    assert FAILED not in (answer.properties or {})


def test_a_virtual_host_that_is_not_there(hosted: Hosted) -> None:
    assert is_refused(opened(hosted, "vhost:gone"), Condition.NOT_FOUND)


def test_a_connection_too_many(hosted: Hosted) -> None:
    opened(hosted), opened(hosted)
    assert is_refused(opened(hosted), Condition.RESOURCE_LIMIT_EXCEEDED)


def test_a_newcomer_that_has_to_go_elsewhere(hosted: Hosted) -> None:
    elsewhere = Redirect(Host("b.example", 5672))
    hosted.container.peers.redirect = lambda _newcomer: elsewhere
    assert is_refused(opened(hosted), Condition.CONNECTION_REDIRECT)


def test_what_should_have_been_an_open(hosted: Hosted) -> None:
    peer = Peer(hosted)
    peer.feed(AMQP_HEADER)
    peer.say(Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1))
    assert [type(said) for _, said in peer.heard] == [Open, Close]
    assert (peer.of(Open)[0].properties or {}).get(FAILED) is True


@pytest.mark.parametrize(
    ("hostname", "vhost"),
    [("nova", "nova"), ("vhost:nova", "nova"), ("localhost", ""), ("nova.example", ""), (None, "")],
)
def test_a_name_means_the_virtual_host_that_has_it(
    hosted: Hosted, hostname: str | None, vhost: str
) -> None:
    opened(hosted, hostname)
    (client,) = hosted.container.peers.connections.values()
    assert client.vhost.name == vhost


def test_a_subscription_that_nobody_has_is_not_found(hosted: Hosted) -> None:
    """JMS looks one up by its name, with a link that has no source, before it deletes it."""
    peer = opened(hosted)
    peer.begin(1)
    del peer.channels[1]
    peer.say(Attach(name="mine", handle=0, role=Role.RECEIVER, target=Target()), b"", 1)
    assert peer.of(Attach)[0].source is None
    error = peer.of(Detach)[0].error
    assert error is not None
    assert error.condition == Condition.NOT_FOUND
    assert "no subscription 'mine'" in str(error.description)


def test_a_source_without_an_address_is_a_mistake(hosted: Hosted) -> None:
    peer = opened(hosted)
    peer.begin(1)
    del peer.channels[1]
    peer.say(
        Attach(name="m", handle=0, role=Role.RECEIVER, source=Source(), target=Target()), b"", 1
    )
    error = peer.of(Detach)[0].error
    assert error is not None
    assert error.condition == Condition.INVALID_FIELD
