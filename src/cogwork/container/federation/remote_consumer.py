"""A consumer of another container at a queue, or a shard of one, of this container.

Theory of operation. Where this container owns the queue, AMQP 0-9-1 has more to say of consumers
than their nodes know: one may have the queue alone, or they get messages one at a time. That is
decided here for those of all containers (`Standing`). A consumer whose link broke may still be
there, so its place is kept for `KEPT_S`, or until it is back.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.states import LinkState
from cogwork.dataplane.link import Ending
from cogwork.plugin.node import Departure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.dataplane.link import Link
    from cogwork.plugin.node import Node, Subscription

__all__ = ("RemoteConsumer", "Standing", "Standings")

KEPT_S = 5.0


class Standing(Protocol):
    """A queue, as it knows its consumers by AMQP 0-9-1."""

    @property
    def consumer_count(self) -> int:
        """How many it has."""

    @property
    def is_taken(self) -> bool:
        """Whether one has it alone."""

    def others(self) -> Iterable[object]:
        """List its consumers."""

    def reserve(self, ticket: int, *, is_exclusive: bool) -> bool:
        """Keep a place for a consumer of another container; return whether there is one.

        Args:
            ticket: What the consumer will name.
            is_exclusive: Whether it wants the queue alone.
        """

    def enter_far(self, consumer: RemoteConsumer) -> None:
        """Take a consumer in: it gets messages now, or in its turn.

        Raises:
            Refused: Another one has the queue alone, or this one wants to and does not.
        """

    def leave_far(self, consumer: RemoteConsumer) -> None:
        """Let a consumer go."""

    def use(self) -> None:
        """Take note that somebody uses it."""

    def note_fetching(self, count: int) -> None:
        """Count more of those that take one message and go, or fewer: they are no consumers."""


class Standings(Protocol):
    """The queues of a virtual host, as AMQP 0-9-1 knows their consumers."""

    def standing_at(self, address: str) -> Standing | None:
        """Return a queue; None where there is none."""

    def is_locked(self, address: str, connection: object) -> bool:
        """Return whether a queue is another connection's alone."""


@dataclass(slots=True, eq=False)
class RemoteConsumer:
    """A link by which a queue of this container feeds another one's consumer.

    Attributes:
        node: The queue.
        subscription: Its standing there.
        link: The link.
        standing: Who decides when it gets messages; None where it always does.
        is_exclusive: Whether nobody else may take from there.
        ticket: By what its place was reserved; 0 where none was.
        is_fetching: Whether it takes one message and goes (`basic.get`).
        is_active: Whether it gets messages.
        is_gone: Whether its link has gone.
    """

    node: Node
    subscription: Subscription
    link: Link
    standing: Standing | None = None
    is_exclusive: bool = False
    ticket: int = 0
    is_fetching: bool = False
    is_active: bool = False
    is_gone: bool = False

    @property
    def has_room(self) -> bool:
        """Whether it can take a message now."""
        return self.is_active and self.subscription.link.credit > 0

    def begin(self) -> None:
        """Get messages, now or in its turn.

        Raises:
            Refused: The queue does not take it.
        """
        if self.standing is None:
            self.activate()
            return
        if self.is_fetching:
            self.activate()
            self.standing.note_fetching(1)
            return
        for other in list(self.standing.others()):
            if isinstance(other, RemoteConsumer) and other.is_gone and other.name == self.name:
                other.give_up()
        self.standing.enter_far(self)

    @property
    def name(self) -> str:
        """What its container calls it, whatever link it has."""
        return self.subscription.remote_consumer

    def activate(self) -> None:
        """Get messages from now on, unless its link has gone."""
        if not self.is_gone:
            self.node.subscribe(self.subscription)
        self.is_active = True

    def detach(self) -> None:
        """End it: its queue goes."""
        text = f"{self.subscription.address} was deleted"
        self.link.detach(AmqpError(condition=Condition.RESOURCE_DELETED, description=text))

    def give_up(self) -> None:
        """Keep its place no longer."""
        if self.standing is not None:
            standing, self.standing = self.standing, None
            if self.is_fetching:
                standing.note_fetching(-1)
            else:
                standing.leave_far(self)

    def attached(self, link: Link) -> None:
        """Never happens: the other container attaches."""

    def stopping(self, link: Link) -> None:
        """It is about to end: by the other container, or because the way there is broken.

        Where the other container only leaves it (AMQP 1.0 §2.6.4), its consumer is still there, and
        has what it has.
        """
        # Only a link that goes with its session ends without a detach by either side.
        self.subscription.is_cut_off = link.state is LinkState.DETACHED or link.was_left
        if link.ending is Ending.CLOSED and not link.is_lost:
            self.subscription.departure = Departure.ORDERLY
        if self.is_active:
            self.node.unsubscribe(self.subscription)
        self.is_gone = True
        if self.standing is None:
            return
        if self.subscription.is_cut_off and not self.is_fetching:
            asyncio.get_running_loop().call_later(KEPT_S, self.give_up)
        else:
            self.give_up()

    def detached(self, link: Link, error: AmqpError | None) -> None:
        """Nothing is left to do."""
