"""The conformance kit of nodes: what every node must do, built in or foreign.

A plug-in's own tests need no more than this:

    from cogwork.plugin.conformance.nodes import NodeConformance

    class TestShout(NodeConformance):
        factory = Shout
        options = {}

Each test makes a node on a core of its own, with in-memory links at both ends, and holds it to one
rule of the contract. `can_send` and `can_receive` say which ends the node has at all.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from cogwork.dataplane.addresses.entry import AddressEntry
from cogwork.plugin.loopback import Loopback
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.plugin.node import NodeFactory

__all__ = ("NodeConformance",)

MESSAGES = 50
"""Enough for several batches of credit."""


class NodeConformance:
    """Tests that any node passes; pytest collects them from a subclass."""

    factory: ClassVar[NodeFactory]
    options: ClassVar[Mapping[str, object]] = {}
    address: ClassVar[str] = "node/under-test"
    can_send: ClassVar[bool] = True
    can_receive: ClassVar[bool] = True

    def loopback(self) -> Loopback:
        """Makes the node with links at both ends."""
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
