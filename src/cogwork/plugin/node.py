"""What a node is: an addressable place that takes messages, gives them out, or both.

Theory of operation. A container has one node for each address (or for all addresses below a
prefix) whose kind is not plain routing. The node is asked when links attach, and gets messages and
settlements in batches and the time in ticks; what it wants done it returns as effects. It never
touches a socket, a file or a clock. Storing nodes build on the compiled `Store` and see no single
message at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Protocol

from cogwork.amqp.errors import CogworkError, Condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cogwork.amqp.outcomes import DeliveryState
    from cogwork.amqp.terminus import Source
    from cogwork.amqp.types import Symbol
    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.dataplane.core import Core
    from cogwork.dataplane.transport.outgoing import OutgoingLink
    from cogwork.plugin.audits import Audits
    from cogwork.plugin.effects import Effect
    from cogwork.plugin.engine.engines import Engines
    from cogwork.plugin.journals import Journals
    from cogwork.plugin.management import ContainerView

__all__ = ("Departure", "Node", "NodeContext", "NodeFactory", "Refused", "Subscription")


class Refused(CogworkError):
    """A node does not take a link.

    Attributes:
        condition: The error condition for the peer.
        description: What was wrong, and what would be right.
    """

    def __init__(self, description: str, condition: Symbol = Condition.NOT_ALLOWED) -> None:
        super().__init__(description)
        self.condition = condition
        self.description = description


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What a node is made with.

    Attributes:
        core: For the compiled primitives: entries, stores, ports.
        address: The node's address, or the prefix it serves.
        is_prefix: Whether it serves every address below `address`.
        options: From the configuration, by name.
        container_id: Whose node it is.
        emit: Has effects carried out now, where they do not come out of a call.
        container: For the node that manages the container; None for all others.
        shard: The container's number among those that have a part of the same queue.
        reach: Tells other containers what is wanted here; None where there is nobody to tell.
        engines: Opens streams; None where there are none.
        journals: Keep queues on disk; None where nothing does.
        audits: Follow queues; None where nobody does.
        policy: Options that hold in the place of `options`, until `Governed.govern` is called.
    """

    core: Core
    address: str
    is_prefix: bool
    options: Mapping[str, object]
    container_id: str
    emit: Emit
    container: ContainerView | None = None
    shard: int = 0
    reach: Subscriptions | None = None
    engines: Engines | None = None
    journals: Journals | None = None
    audits: Audits | None = None
    policy: Mapping[str, Any] = field(default_factory=dict)


class Subscriptions(Protocol):
    """Tells other containers what subscribers of this one want."""

    def subscribe(self, address: str) -> None:
        """Count a subscription to a multicast address, which may hold wildcards."""

    def unsubscribe(self, address: str) -> None:
        """Count one less."""


class Emit(Protocol):
    """Carries out effects."""

    def __call__(self, effects: Iterable[Effect]) -> None:
        """Carry out `effects`, in order."""


class Departure(Enum):
    """How a consumer has gone."""

    LOST = auto()
    """It may still have what it got: its connection broke, or the container ended its link."""
    ORDERLY = auto()
    """It will settle nothing more: its items get its source's default outcome (AMQP 1.0 §3.5.3)."""
    KEPT = auto()
    """It may resume its link: its items stay its own until `unsubscribe` is called again."""


@dataclass(slots=True, eq=False)
class Subscription:
    """A consumer's link at a node.

    Attributes:
        link: The compiled end; messages go out on it.
        address: What it attached to, as normalised.
        source: What the consumer asked for: distribution mode, filters.
        desired: The capabilities that it desires of this end.
        marks_received: Whether the client says `received` when it hands an item to its application.
        is_far: Whether it is another container's, for what none of this one's consumers can take.
        federated: Names such a one, whatever link it has; empty where it has no name.
        is_cut_off: Whether such a one may still be there, although its link has gone.
        departure: How the consumer has gone; meaningless while it has not.
        unsettled: Delivery-tags the consumer still holds from an earlier link.
        handed: Those of them that its application has, as another container says of a far one.
        known: What the node says of them: None for one that goes on and is sent again, an outcome
            for one that is over; a tag that is left out is nobody's, or somebody else's.
        link_id: Unique in the container; names the link in `$management`.
        is_put_off: Whether the node calls `answer` once it knows where the consumer stands: its
            attach is not answered before.
        context: Whatever the node keeps with it.
    """

    link: OutgoingLink
    address: str
    source: Source
    desired: frozenset[Symbol] = frozenset()
    marks_received: bool = False
    is_far: bool = False
    remote_consumer: str = ""
    is_cut_off: bool = False
    departure: Departure = Departure.LOST
    unsettled: tuple[bytes, ...] = ()
    handed: frozenset[bytes] = frozenset()
    known: dict[bytes, DeliveryState | None] = field(default_factory=dict)
    link_id: str = ""
    is_put_off: bool = False
    context: object = field(default=None, repr=False)

    def answer(self) -> None:
        """Answer the attach that was put off; without effect where that has been done.

        Within `subscribe` it is enough: the attach is answered after that.
        """
        if self.is_put_off:
            self.is_put_off = False
            if self.link.owner is not None:
                self.link.owner.answer()


class Node(Protocol):
    """An addressable source or sink. Built-in and foreign nodes follow the same rules.

    One that has an attribute `is_idle`, and it is true, gets no ticks until it is false again: a
    thousand nodes where nothing happens cost nothing. One that has an attribute `due_s` gets none
    before that time, by the clock of `tick`.
    """

    def entry(self, address: str) -> AddressEntry:
        """Return where messages sent to `address` go.

        Raises:
            Refused: Nothing can be sent there.
        """

    def subscribe(self, subscription: Subscription) -> None:
        """Take a consumer's link.

        Raises:
            Refused: Nothing can be received there.
        """

    def unsubscribe(self, subscription: Subscription) -> None:
        """Let a consumer's link go; called once for each that was taken."""

    def tick(self, now_s: float) -> Iterable[Effect]:
        """Let time pass; called about ten times a second, with the monotonic clock."""

    def status(self) -> Mapping[str, object]:
        """Return figures for people and for `$management`."""

    def close(self) -> None:
        """Give up what it holds."""


class NodeFactory(Protocol):
    """Makes a node: what an entry point of the group `cogwork.nodes` names."""

    def __call__(self, context: NodeContext) -> Node:
        """Make a node for one address.

        Raises:
            ConfigurationError: An option is wrong.
        """
