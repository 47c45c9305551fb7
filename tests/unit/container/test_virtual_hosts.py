"""What becomes of virtual hosts that a new configuration has no more."""

import pytest
from hosted import LISTEN, Hosted
from wires import Peer

from cogwork.amqp.frames import AMQP_HEADER
from cogwork.amqp.outcomes import Accepted, Released
from cogwork.amqp.performatives import Open
from cogwork.config.settings import Address, Configuration, Queue, Vhost
from cogwork.container.vhost.virtual_hosts import plans_of
from cogwork.dataplane.message.messages import Message


def configured(*vhosts: Vhost) -> Configuration:
    return Configuration(id="hosted", listeners=[LISTEN], vhosts=list(vhosts))


def in_blue(hosted: Hosted) -> Peer:
    peer = Peer(hosted)
    peer.feed(AMQP_HEADER)
    peer.say(Open(container_id="peer", hostname="vhost:blue"))
    peer.begin()
    return peer


def sweep(hosted: Hosted) -> None:
    hosts = hosted.container._virtual_hosts
    hosts.sweep(hosted.core.now, hosted.container.peers.connections.values())


def test_one_that_is_configured_no_more_lives_on_until_its_last_client_has_gone() -> None:
    hosted = Hosted(configured(Vhost(name="blue")))
    hosts = hosted.container._virtual_hosts
    blue = hosted.container.vhosts["blue"]
    peer = in_blue(hosted)
    consumer = peer.consumer("a", credit=10)
    assert hosts.take(plans_of(configured())) == []
    assert list(hosted.container.vhosts) == [""]
    sweep(hosted)
    peer.publisher("a").send(b"still here")
    assert consumer.bodies == [b"still here"]
    assert blue in list(hosts)
    peer.connection.lose()
    sweep(hosted)
    assert blue not in list(hosts)
    assert not blue.space.entries


def test_one_that_comes_again_is_a_new_one() -> None:
    hosted = Hosted(configured(Vhost(name="blue")))
    hosts = hosted.container._virtual_hosts
    before = hosted.container.vhosts["blue"]
    hosts.take(plans_of(configured()))
    again = configured(Vhost(name="blue", queues=[Queue(address="queue/x")]))
    assert hosts.take(plans_of(again)) == ["blue"]
    assert hosted.container.vhosts["blue"] is not before
    assert "queue/x" in hosted.container.vhosts["blue"].nodes


@pytest.mark.parametrize(
    ("prefix", "address"),
    [
        ("topic/red", "topic/red.one"),
        ("topic/red", "topic/red/one"),
        ("topic/red.one", "topic/red.one.two"),
        ("topic/red/one", "topic/red/one.two"),
    ],
)
@pytest.mark.parametrize("is_later", [False, True])
def test_a_more_specific_rule_below_topic_holds_for_anonymous_senders_too(
    prefix: str, address: str, is_later: bool
) -> None:
    """For they reach the plain topics by a shorter way."""
    rule = Address(prefix=prefix, unmatched="release")
    configuration = Configuration(id="hosted", listeners=[LISTEN], addresses=[rule])
    hosted = Hosted(configured() if is_later else configuration)
    if is_later:
        hosts = hosted.container._virtual_hosts
        assert hosts.take(plans_of(configuration)) == []
    peer = Peer(hosted).greet()
    relay = peer.publisher(None)
    others = ("topic/green.two", "topic/redder.one")
    for each, outcome in ((address, Released()), *((other, Accepted()) for other in others)):
        sent = relay.send(Message("", to=each).encode())
        assert relay.outcomes[sent] == outcome, each
        consumer = peer.consumer(each, credit=10)
        sent = relay.send(Message("", to=each).encode())
        assert relay.outcomes[sent] == Accepted(), each
        assert len(consumer.arrivals) == 1


def test_one_that_is_ended_goes_at_once_with_its_clients_and_queues() -> None:
    hosted = Hosted(configured(Vhost(name="blue", queues=[Queue(address="queue/x")])))
    container = hosted.container
    blue = container.vhosts["blue"]
    peer = in_blue(hosted)
    peer.consumer("queue/x", credit=10)
    container._end_vhost("blue")
    assert list(container.vhosts) == [""]
    assert blue not in list(container._virtual_hosts)
    assert not blue.nodes
    assert not peer.connection.is_open
    assert "blue" not in container.mesh.reaches
    assert hosted.container.faults == []
