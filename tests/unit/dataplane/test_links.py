"""Links and sessions of a connection: what goes over them, how they end, and late answers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from two_ends import Ends
from wires import Broker

from cogwork.amqp.errors import AmqpError, Condition, ProtocolError
from cogwork.amqp.performatives import Attach, Detach, End
from cogwork.amqp.terminus import Target
from cogwork.dataplane.transport.incoming import IncomingLink
from cogwork.dataplane.transport.outgoing import OutgoingLink

if TYPE_CHECKING:
    from cogwork.dataplane.link import Link


def outgoing(link: Link) -> OutgoingLink:
    assert isinstance(link.end, OutgoingLink)
    return link.end


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
