"""A queue as AMQP 0-9-1 sees it: what it was declared with, and its consumers."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cogwork.amqp.errors import Condition
from cogwork.container.amqp091.queue_arguments import MILLISECONDS
from cogwork.plugin.capabilities import Storing, replica_of
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.amqp091.types import Table
    from cogwork.cluster.topology import SharedQueue
    from cogwork.container.federation.remote_consumer import RemoteConsumer

__all__ = ("PREFIX", "Counts", "DeclaredQueue", "Owner", "QueueConsumer", "Traits", "address_of")

PREFIX = "queue/"

RESERVED_S = 3.0
"""So long a consumer of another container has to come that was told that it may."""


def address_of(name: str) -> str:
    """Return the address of a queue."""
    return PREFIX + name


class Owner(Protocol):
    """A connection that has queues for itself."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""


class QueueConsumer(Protocol):
    """A consumer, as the queue sees it.

    Attributes:
        is_active: Whether it gets messages.
        is_exclusive: Whether nobody else may take from there.
    """

    is_active: bool
    is_exclusive: bool

    @property
    def has_room(self) -> bool:
        """Whether it can take a message now."""

    def activate(self) -> None:
        """Get messages from now on."""

    def detach(self) -> None:
        """End it: its queue goes."""


@dataclass(frozen=True, slots=True)
class Traits:
    """What a declaration says of a queue besides the options of its node.

    Attributes:
        is_durable: Whether it outlives the container.
        is_auto_delete: Whether it goes with its last consumer.
        owner: The connection that has it alone; None for everybody's.
        arguments: As they were given.
        is_server_named: Whether its name was made up here.
    """

    is_durable: bool
    is_auto_delete: bool = False
    owner: Owner | None = None
    arguments: Table = field(default_factory=dict)
    is_server_named: bool = False

    @property
    def is_private(self) -> bool:
        """Whether it is a private queue: it lives and dies at its container, in a cluster, too."""
        return self.owner is not None or (self.is_server_named and not self.is_durable)

    @property
    def expires_s(self) -> float | None:
        """After how long without use it goes by its arguments; None for never."""
        value = self.arguments.get("x-expires")
        return value / MILLISECONDS if isinstance(value, int) else None


@dataclass(slots=True, eq=False)
class DeclaredQueue:
    """A queue that is there.

    Attributes:
        name: Without the prefix of its address.
        node: What keeps its messages.
        traits: What its declaration says besides.
        consumers: Those of AMQP 0-9-1, in the order in which they came.
        is_restored: Whether others have made it, or it was on disk: then its next declaration says
            what its options do not.
        had_consumers: Whether it ever had any.
        used_s: When it was last used, by the monotonic clock.
        policy_expires_s: After how long without use it goes by its policy; None for never.
        fetching: How many of other containers take one message and go: its node feeds them, too.
        shared: What the cluster has of it; None where no cluster has it.
    """

    name: str
    node: Storing
    traits: Traits
    consumers: dict[QueueConsumer, None] = field(default_factory=dict)
    is_restored: bool = False
    had_consumers: bool = False
    shared: SharedQueue | None = None
    used_s: float = field(default_factory=time.monotonic)
    policy_expires_s: float | None = None
    fetching: int = 0
    _reservations: dict[int, tuple[float, bool]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Its address."""
        return address_of(self.name)

    @property
    def is_elsewhere(self) -> bool:
        """Whether another container has its messages: what is asked of it, is asked there."""
        replica = replica_of(self.node)
        return replica is not None and replica.epoch is None

    @property
    def is_private(self) -> bool:
        """Whether it lives and dies at its container, in a cluster, too."""
        return self.traits.is_private

    @property
    def takes_now(self) -> bool:
        """Whether nothing waits for a consumer, and one has room."""
        if self.message_count:
            return False
        active = [each for each in self.consumers if each.is_active]
        are_others = self.node.store.consumer_count > len(active)
        return are_others or any(each.has_room for each in active)

    @property
    def message_count(self) -> int:
        """Counts what waits for a consumer, if it is here."""
        return self.node.store.count_kept()

    @property
    def consumer_count(self) -> int:
        """Counts its consumers, whatever they speak, if it is here."""
        waiting = max(0, len(self.consumers) - 1) if self.has_single_active else 0
        return self.node.store.consumer_count - self.fetching + waiting

    @property
    def has_single_active(self) -> bool:
        """Whether one consumer at a time gets messages."""
        return self.traits.arguments.get("x-single-active-consumer") is True

    @property
    def is_taken(self) -> bool:
        """Whether a consumer has it alone: then it is the only one."""
        first = next(iter(self.consumers), None)
        self._forget_reservations()
        is_reserved = any(is_exclusive for _, is_exclusive in self._reservations.values())
        return is_reserved or (first is not None and first.is_exclusive)

    @property
    def reserved_count(self) -> int:
        """Counts the consumers of other containers that are about to come."""
        self._forget_reservations()
        return len(self._reservations)

    def reserve(self, ticket: int, *, is_exclusive: bool) -> bool:
        """Keep a place for a consumer of another container; return whether there is one."""
        expected = self.consumer_count + self.reserved_count
        if self.is_taken or (is_exclusive and expected):
            return False
        self._reservations[ticket] = (time.monotonic() + RESERVED_S, is_exclusive)
        return True

    def _forget_reservations(self) -> None:
        """Give the places up whose consumers have not come in time."""
        if self._reservations:
            now_s = time.monotonic()
            kept = {key: each for key, each in self._reservations.items() if each[0] > now_s}
            self._reservations = kept

    def use(self) -> None:
        """Take note that somebody uses it."""
        self.used_s = time.monotonic()

    def enter(self, consumer: QueueConsumer) -> None:
        """Take a consumer in: it gets messages now, or as soon as it is the only one.

        Raises:
            Refused: The queue does not take it.
        """
        # Of a queue elsewhere its owner decides who gets messages.
        if not self.has_single_active or not self.consumers or self.is_elsewhere:
            consumer.activate()
        self.consumers[consumer] = None
        self.had_consumers = True

    def others(self) -> Iterable[object]:
        """List its consumers."""
        return tuple(self.consumers)

    def enter_far(self, consumer: RemoteConsumer) -> None:
        """Take a consumer of another container in.

        Raises:
            Refused: Another one has the queue alone, or this one wants to and does not.
        """
        self._reservations.pop(consumer.ticket, None)
        expected = self.consumer_count + self.reserved_count
        if self.is_taken or (consumer.is_exclusive and expected):
            text = f"queue {self.name!r:.200} is in exclusive use"
            raise Refused(text, Condition.RESOURCE_LOCKED)
        self.enter(consumer)

    def note_fetching(self, count: int) -> None:
        """Count more of those that take one message and go, or fewer."""
        self.fetching += count
        self.use()

    def leave_far(self, consumer: RemoteConsumer) -> None:
        """Let a consumer of another container go."""
        if consumer in self.consumers:
            self.leave(consumer)

    def leave(self, consumer: QueueConsumer) -> None:
        """Take note that a consumer has gone: another one may get messages in its place."""
        del self.consumers[consumer]
        self.use()
        first = next(iter(self.consumers), None)
        if first is not None and not first.is_active:
            first.activate()

    @property
    def is_abandoned(self) -> bool:
        """Whether it goes, because its last consumer has: its owner knows of all of them."""
        if self.consumers or not self.traits.is_auto_delete or self.is_elsewhere:
            return False
        self.had_consumers = self.had_consumers or bool(self.consumer_count)
        return self.had_consumers and not self.consumer_count

    @property
    def is_left(self) -> bool:
        """Whether consumers here were perhaps the last ones of a queue that goes with these."""
        has_gone = self.had_consumers and not self.consumers
        return has_gone and self.is_elsewhere and self.traits.is_auto_delete

    def is_expired(self, now_s: float) -> bool:
        """Return whether nobody has used it for too long."""
        bounds_s = [each for each in (self.traits.expires_s, self.policy_expires_s) if each]
        if not bounds_s or self.is_elsewhere:
            return False
        if self.consumer_count:
            self.used_s = now_s
        return now_s - self.used_s >= min(bounds_s)


class Counts(NamedTuple):
    """What the owner of a queue counts.

    Attributes:
        messages: What waits for a consumer.
        consumers: Those at all containers.
        is_taken: Whether one of them has it alone.
        is_done: Whether a place was reserved, if that was asked for.
    """

    messages: int
    consumers: int
    is_taken: bool = False
    is_done: bool = True
