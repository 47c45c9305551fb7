"""What a consumer of this container borrows from shards of others: one loan each."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cogwork.amqp.outcomes import Accepted, Rejected
from cogwork.amqp.states import LinkState
from cogwork.dataplane.queue.refusals import IN_DOUBT_STATE, STALE_STATE

if TYPE_CHECKING:
    from cogwork.amqp.errors import AmqpError
    from cogwork.amqp.outcomes import DeliveryState
    from cogwork.amqp.performatives import Attach
    from cogwork.container.federation.lending import Lending
    from cogwork.container.federation.loan_terms import LoanTerms
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.queue.borrower import Borrower
    from cogwork.dataplane.queue.loan import Loan
    from cogwork.nodes.queue.node import QueueNode
    from cogwork.plugin.node import Subscription

__all__ = ("OWNER", "Borrowing", "Consumer")

ACCEPTED, REJECTED = 0x24, 0x25

OWNER = ""
"""Stands for the container that owns a replicated queue, whichever that is now."""

log = logging.getLogger("cogwork")


@dataclass(slots=True, eq=False)
class Borrowing:
    """A loan as Python sees it: the link of one consumer to one shard.

    Attributes:
        lending: Of the virtual host.
        consumer: Whose it is.
        container: The shard's container, or `OWNER`.
        lender: The container that the link leads to.
        end: The compiled half.
        tags: What the consumer has from an earlier link.
        deliveries: How many there were when it was looked at last.
        busy_s: When it brought something last.
    """

    lending: Lending
    consumer: Consumer
    container: str
    lender: str
    end: Loan
    tags: list[bytes]
    deliveries: int = 0
    busy_s: float = field(default_factory=time.monotonic)
    link: Link = field(init=False)

    def attached(self, link: Link) -> None:
        """The shard answered: what it does not know any more is over.

        Where the loan has been ended meanwhile, it is another one's to say so.
        """
        if self.end.detached:
            return
        self.consumer.cut_off.pop(self.container, None)
        remote = link.remote
        if remote is None or remote.source is None:
            return
        known = remote.unsettled or {}
        for tag in self.tags:
            if tag in self.consumer.borrower.expected:
                self._learn(tag, known)
            elif tag not in known:
                self.consumer.borrower.close_tag(tag, REJECTED, IN_DOUBT_STATE)
            elif isinstance(known[tag], Accepted):
                self.consumer.borrower.close_tag(tag, ACCEPTED)
            elif isinstance(known[tag], Rejected):
                self.consumer.borrower.close_tag(tag, REJECTED, STALE_STATE)
            else:
                self.end.owed += 1
        self.consumer.borrower.add(self.end)
        self.lending.answered(self.consumer, self.container)

    def _learn(self, tag: bytes, known: dict[bytes, DeliveryState | None]) -> None:
        """Takes in what the shard says of an item that the client has from another container."""
        if tag in known:
            self.consumer.subscription.known[tag] = known[tag]
        if tag in known and not isinstance(known[tag], Accepted | Rejected):
            self.end.awaited += 1
        else:
            self.consumer.borrower.forget(tag)

    def stopping(self, link: Link) -> None:
        """It is about to end.

        Where that is with its session, the shard may have sent something that has not come.
        """
        self.consumer.borrower.remove(self.end)
        if self.consumer.loans.get(self.container) is self:
            del self.consumer.loans[self.container]
            if link.state is LinkState.DETACHED:
                self.consumer.cut_off[self.container] = time.monotonic()
        self.lending.lost()

    def detached(self, _link: Link, error: AmqpError | None) -> None:
        """It is over."""
        if error is not None:
            log.debug("remote items of container %s: %s", self.container, error.description)


@dataclass(slots=True, eq=False)
class Consumer:
    """A consumer of this container.

    Attributes:
        address: The queue.
        subscription: Its link, and what it asked for.
        attach: How it attached.
        terms: What shards elsewhere are told of that.
        borrower: Its side of all loans.
        keeps_order: Whether the queue's groups are kept in order.
        node: The queue here.
        loans: By the shard's container.
        name: What shards know it by, whatever link it has.
        is_kept: Whether its link has been detached and may be resumed.
        cut_off: Whose loans have ended with their sessions, and when: these shards are to hear what
            has come.
        broken_since_s: Since when it has something from a shard that cannot be reached.
        unheard: Since when a container that cannot be reached may not have heard what was settled.
        asked: Whose shards are to say what has become of items that it presents.
        asked_s: When they were asked, or told to go on.
    """

    address: str
    subscription: Subscription
    attach: Attach
    terms: LoanTerms
    borrower: Borrower
    keeps_order: bool
    node: QueueNode
    name: str
    is_kept: bool = False
    cut_off: dict[str, float] = field(default_factory=dict)
    loans: dict[str, Borrowing] = field(default_factory=dict)
    broken_since_s: float | None = None
    unheard: dict[str, float] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    asked_s: float = field(default_factory=time.monotonic)
