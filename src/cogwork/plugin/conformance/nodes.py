"""The conformance kit of nodes: what every node must do, built in or foreign.

A plug-in's own tests need no more than this:

    from cogwork.plugin.conformance.nodes import NodeConformance

    class TestShout(NodeConformance):
        factory = Shout
        options = {}

Each test makes a node on a core of its own, with in-memory links at both ends, and holds it to one
rule of the contract. `can_send` and `can_receive` say which ends the node has at all. What a node
has of the capabilities in `cogwork.plugin.capabilities` is held to their rules, too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from cogwork.dataplane.addresses.drain import Drain
from cogwork.dataplane.addresses.entry import MULTICAST_CODE, AddressEntry
from cogwork.plugin.capabilities import (
    CAPABILITIES,
    Bindable,
    Capturing,
    Partitioned,
    Removable,
    Resumable,
    Shareable,
    Storing,
    Streaming,
)
from cogwork.plugin.loopback import Loopback
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.plugin.node import NodeFactory

__all__ = ("NodeConformance",)

MESSAGES = 50
"""Enough for several batches of credit."""

STATES = frozenset({"opening", "open", "away", "failed"})
DURABILITIES = frozenset({"memory", "auto", "disk", "replicated"})


class NodeConformance:
    """Tests that any node passes; pytest collects them from a subclass."""

    factory: ClassVar[NodeFactory]
    options: ClassVar[Mapping[str, object]] = {}
    address: ClassVar[str] = "node/under-test"
    can_send: ClassVar[bool] = True
    can_receive: ClassVar[bool] = True

    def loopback(self) -> Loopback:
        """Make the node with links at both ends."""
        return Loopback(type(self).factory, self.address, self.options)

    def test_it_says_where_messages_go_or_refuses(self) -> None:
        """An entry of its own for a sender, or `Refused` with a reason."""
        with self.loopback() as loop:
            refusal = ""
            entry = None
            try:
                entry = loop.node.entry(self.address)
            except Refused as refused:
                refusal = refused.description
            assert isinstance(entry, AddressEntry) == self.can_send, refusal
            assert (refusal != "") == (entry is None)

    def test_every_message_is_answered(self) -> None:
        """Each unsettled message gets exactly one outcome, whether anybody receives or not."""
        if not self.can_send:
            return
        with self.loopback() as loop:
            sent = loop.send(MESSAGES)
            loop.run(ticks=20)
            assert sorted(loop.outcomes) == sorted(sent)

    def test_receivers_come_and_go(self) -> None:
        """A receiver can attach, get what there is, and leave; nothing reaches it afterwards."""
        if not self.can_receive:
            return
        with self.loopback() as loop:
            receiver = loop.receive(credit=MESSAGES)
            if self.can_send:
                loop.send(MESSAGES)
            loop.run(ticks=5)
            loop.leave(receiver)
            count = receiver.deliveries
            if self.can_send:
                loop.send(MESSAGES)
            loop.run(ticks=5)
            assert receiver.deliveries == count

    def test_credit_is_never_overrun(self) -> None:
        """No more is sent to a receiver than it gave credit for."""
        if not (self.can_receive and self.can_send):
            return
        with self.loopback() as loop:
            receiver = loop.receive(credit=3)
            loop.send(MESSAGES)
            loop.run(ticks=5)
            assert receiver.deliveries <= 3

    def test_its_status_is_data(self) -> None:
        """The status can be written as JSON."""
        with self.loopback() as loop:
            status: Any = loop.node.status()
            json.dumps(dict(status))

    def test_it_can_be_closed_with_everything_attached(self) -> None:
        """Closing does not raise, whatever is attached."""
        loop = self.loopback()
        if self.can_receive:
            loop.receive(credit=1)
        if self.can_send:
            loop.send(2)
        loop.close()

    # -- capabilities

    def test_it_has_the_attributes_of_its_capabilities(self) -> None:
        """Each attribute that a capability names is there once the node is made."""
        with self.loopback() as loop:
            has = [each for each in CAPABILITIES if isinstance(loop.node, each)]
            names = {name for each in has for name in vars(each).get("__annotations__", {})}
            assert [name for name in names if not hasattr(loop.node, name)] == []

    def test_what_it_stores_is_in_its_store(self) -> None:
        """Items that nobody receives wait there; one that was moved elsewhere is given up."""
        with self.loopback() as loop:
            node = loop.node
            if not isinstance(node, Storing):
                return
            assert node.durability in DURABILITIES
            loop.send(MESSAGES)
            assert node.store.depth == MESSAGES
            numbers: list[int] = []
            node.store.take_ready(1, numbers)
            kept: list[int] = []
            node.give_up(numbers[0], kept.append)
            loop.run(ticks=2)
            assert (node.store.depth, kept) == (MESSAGES - 1, [])

    def test_a_consumer_that_may_resume_keeps_what_it_holds(self) -> None:
        """Nobody else gets it before the node hears that the link is given up."""
        with self.loopback() as loop:
            node = loop.node
            if not isinstance(node, Resumable):
                return
            assert node.in_doubt_timeout_s >= 0
            loop.send(3)
            first = loop.receive(credit=2)
            subscription = loop.keep(first)
            assert node.keeps(subscription)
            second = loop.receive(credit=3)
            assert second.deliveries == 1
            loop.leave(first)
            loop.run(ticks=2)
            assert second.deliveries == 3
            assert not node.keeps(subscription)

    def test_it_ends_its_links_when_it_is_removed(self) -> None:
        """Every receiver is detached, and the reason is passed on."""
        with self.loopback() as loop:
            node = loop.node
            if not isinstance(node, Removable):
                return
            link = loop.receive(credit=1)
            node.end_links("has gone")
            node.delete()
            ended = {each.link: each.description for each in loop.detached}
            assert "has gone" in ended[link]

    def test_what_other_containers_send_is_stored(self) -> None:
        """It comes in by an entry for that, whoever owns the partitions."""
        with self.loopback() as loop:
            node = loop.node
            if not isinstance(node, Shareable):
                return
            if isinstance(node, Partitioned) and node.is_partitioned:
                inlet = node.share()
                assert node.inlet is inlet
                inlet.set_owners([node.store] * inlet.count)
            loop.send(2, entry=node.near_entry())
            loop.send(1)
            assert node.store.depth == 3
            assert not node.end_credit()  # the test's messages come by no link

    def test_outlets_get_what_their_patterns_match(self) -> None:
        """One elsewhere gets what is sent here, and not what other containers send."""
        with self.loopback() as loop:
            node = loop.node
            if not isinstance(node, Bindable):
                return
            link, far = loop.receive(credit=MESSAGES), Drain(loop.core)
            subject = node.subject_of(self.address)
            assert link in node.subscribers
            assert subject.decode() in node.patterns_of(link)
            assert not node.bind(link, subject)
            node.bind_far(subject, far)
            loop.send(1)
            loop.send(1, entry=node.near_entry(self.address))
            assert (link.deliveries, far.messages) == (2, 1)
            node.unbind_far(subject, far)
            assert node.unbind(link, subject)
            loop.send(1)
            assert (link.deliveries, far.messages) == (2, 1)

    def test_it_takes_the_copies_of_what_it_captures(self) -> None:
        """Each is accepted, and comes settled or not."""
        with self.loopback() as loop:
            node = loop.node
            if not isinstance(node, Capturing):
                return
            assert all(isinstance(each, str) for each in node.captured)
            entry = AddressEntry(loop.core, "topic/captured", MULTICAST_CODE)
            entry.add_outlet(node.capture)
            sent = loop.send(2, entry=entry)
            loop.run(ticks=2)
            assert sorted(loop.outcomes) == sorted(sent)
            entry.remove_outlet(node.capture)
            entry.close()

    def test_it_says_how_its_stream_is(self) -> None:
        """A stream that has failed says why, and takes no links."""
        with self.loopback() as loop:
            node = loop.node
            if not isinstance(node, Streaming):
                return
            assert node.state in STATES
            assert (node.problem is not None) == (node.state == "failed")
            if node.state != "failed":
                node.demand_prospects()
            node.give_back()
