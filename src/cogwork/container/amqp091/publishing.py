"""What a channel publishes: confirms, returns, transactions (§1.8.3.7, §1.9; RabbitMQ's confirms).

Theory of operation. Whoever is to be told of a message's fate has it published under a token, and
its outcome comes back under that, at the end of a batch: accepted once every queue has it as
durable as it is, rejected or modified where a queue refuses it, released where nobody took it.
Released and mandatory or immediate, it is returned; either way the client is told that it was dealt
with. The compiled channel numbers what is to be confirmed and writes the confirms, because it takes
plain messages itself.

In a transaction nothing is published or acknowledged before the commit, which is answered once all
of it has its outcome. What it does to queues on this container's disk is written in one turn, and
so that after a crash all of it is there, or nothing. One that touches queues in several places is
refused before anything of it is done (`transaction_places`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.amqp091.methods import BasicReturn, TxCommitOk
from cogwork.amqp091.strings import octets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cogwork.amqp091.content import Content
    from cogwork.amqp091.methods import BasicPublish
    from cogwork.container.amqp091.channel import Channel
    from cogwork.dataplane.addresses.entry import AddressEntry

__all__ = ("ACCEPTED", "Collected", "Publishing", "Settlement", "unknown_tag")

ACCEPTED, REJECTED, RELEASED = 0x24, 0x25, 0x26
"""Outcomes, as AMQP 1.0 numbers them (§3.4)."""

UNNUMBERED = 1 << 31
"""From here on tokens are those of messages that the client does not count; of others the token is
the number."""


class _Published(NamedTuple):
    """A message whose outcome is awaited.

    Attributes:
        number: What the client counts it as; 0 where it has not asked for confirms.
        returnable: What is returned if nobody takes it; None for nothing.
    """

    number: int
    returnable: tuple[BasicPublish, Content] | None


class Collected(NamedTuple):
    """What a commit would do.

    Attributes:
        messages: What is published.
        tags: The deliveries that are settled.
    """

    messages: list[tuple[BasicPublish, Content]]
    tags: tuple[int, ...]


class _Publish(NamedTuple):
    """A message that waits for its commit."""

    entry: AddressEntry
    method: BasicPublish
    content: Content


Settlement = tuple[int, bool, int | None]
"""A delivery-tag, whether it stands for all before it, and the outcome; None to requeue."""


def unknown_tag(tag: int) -> ProtocolError:
    """Return the error of an acknowledgement of what a channel does not have (406)."""
    return ProtocolError(ReplyCode.PRECONDITION_FAILED, f"unknown delivery tag {tag}")


@dataclass(slots=True)
class _Transaction:
    """What waits for its commit."""

    publishes: list[_Publish] = field(default_factory=list)
    settlements: dict[int, int | None] = field(default_factory=dict)
    """By delivery-tag, the outcome; None to requeue."""


class Publishing:
    """That of one channel.

    Attributes:
        is_confirming: Whether the client is told of each message's fate.
        is_committing: Whether a commit is waited for.
    """

    def __init__(self, channel: Channel) -> None:
        """Begin without confirms or transactions."""
        self.is_confirming = False
        self.is_committing = False
        self._channel = channel
        self._transaction: _Transaction | None = None
        self._token = 0
        self._open: dict[int, _Published] = {}
        self._is_failed = False

    @property
    def is_transactional(self) -> bool:
        """Whether the channel collects what it publishes and acknowledges."""
        return self._transaction is not None

    def select_confirms(self) -> None:
        """Tell the client of each message's fate from now on.

        Raises:
            ProtocolError: The channel is transactional (406).
        """
        if self.is_transactional:
            raise ProtocolError(
                ReplyCode.PRECONDITION_FAILED, "cannot switch from tx to confirm mode"
            )
        if not self.is_confirming:
            self.is_confirming = True
            self._channel.end.start_confirms()

    def select_transactions(self) -> None:
        """Collect from now on.

        Raises:
            ProtocolError: The channel has confirms (406).
        """
        if self.is_confirming:
            raise ProtocolError(
                ReplyCode.PRECONDITION_FAILED, "cannot switch from confirm to tx mode"
            )
        self._transaction = self._transaction or _Transaction()
        self._channel.end.is_direct = False

    # -- messages

    def publish(self, entry: AddressEntry, method: BasicPublish, content: Content) -> None:
        """Publish a message, now or with the commit."""
        if self._transaction is not None:
            self._transaction.publishes.append(_Publish(entry, method, content))
            return
        number = self._channel.end.count_published() if self.is_confirming else 0
        self._send(entry, method, content, number)

    def _send(
        self, entry: AddressEntry, method: BasicPublish, content: Content, number: int
    ) -> None:
        token = 0
        is_returnable = method.mandatory or method.immediate
        if number or is_returnable or self.is_committing:
            token = number or self._next_token()
            returnable = (method, content) if is_returnable else None
            self._open[token] = _Published(number, returnable)
        self._channel.end.publish(
            entry,
            octets_of(method.exchange),
            octets_of(method.routing_key),
            content.property_octets,
            content.body,
            token=token,
        )

    def _next_token(self) -> int:
        self._token = (self._token + 1) % UNNUMBERED
        return UNNUMBERED + self._token

    def on_outcomes(self, outcomes: Iterable[tuple[int, int, bytes | None]]) -> None:
        """Return what nobody took, and tell the client what has become of the rest."""
        for token, code, _ in outcomes:
            published = self._open.pop(token, None)
            if published is None:
                continue
            is_taken = code in (ACCEPTED, RELEASED)
            self._is_failed = self._is_failed or not is_taken
            if code == RELEASED and published.returnable is not None:
                self._return(*published.returnable)
            if published.number:
                self._channel.end.confirm(published.number, is_taken)
        if self.is_committing and not self._open:
            self._end_commit()

    def _return(self, method: BasicPublish, content: Content) -> None:
        returns = self._channel.connection.returns
        if not returns.admit():
            return
        code = ReplyCode.NO_CONSUMERS if method.immediate else ReplyCode.NO_ROUTE
        returned = BasicReturn(
            reply_code=code,
            reply_text=code.name,
            exchange=method.exchange,
            routing_key=method.routing_key,
        )
        self._channel.reply(returned, content)
        returns.note()

    # -- transactions

    def settle_later(self, settlement: Settlement) -> None:
        """Have deliveries acknowledged with the commit; that they are there is seen at once.

        Raises:
            ProtocolError: The channel is not transactional, or has no such delivery (406).
        """
        tag, is_multiple, outcome = settlement
        settled = self._demand_transaction().settlements
        tags = [tag] if tag and not is_multiple else self.unacknowledged(tag)
        is_known = self._channel.end.holds(tag) and tag not in settled
        if not is_known and not (is_multiple and tag == 0):
            raise unknown_tag(tag)
        settled.update(dict.fromkeys(tags, outcome))

    def unacknowledged(self, last_tag: int = 0) -> list[int]:
        """Return the delivery-tags up to one, or all, that are not acknowledged with the commit."""
        settled = self._transaction.settlements if self._transaction is not None else {}
        tags = self._channel.end.unacknowledged_tags(last_tag)
        return [tag for tag in tags if tag not in settled]

    def collected(self) -> Collected:
        """Return what waits for the commit.

        Raises:
            ProtocolError: The channel is not transactional (406).
        """
        transaction = self._demand_transaction()
        messages = [(each.method, each.content) for each in transaction.publishes]
        return Collected(messages, tuple(transaction.settlements))

    def commit(self, apply: Callable[[Settlement], None]) -> None:
        """Do all that was collected; answered once it has its outcome.

        Raises:
            ProtocolError: The channel is not transactional, or does not have what it acknowledges.
        """
        transaction = self._demand_transaction()
        self._transaction = _Transaction()
        self._is_failed = False
        self.is_committing = True
        self._channel.connection.write_together()
        for each in transaction.publishes:
            self._send(*each, 0)
        for tag, outcome in transaction.settlements.items():
            apply((tag, False, outcome))
        if not self._open:
            self._end_commit()

    def _end_commit(self) -> None:
        self.is_committing = False
        if self._is_failed:
            error = ProtocolError(ReplyCode.PRECONDITION_FAILED, "partial tx completion")
            self._channel.fail(error)
            return
        self._channel.reply(TxCommitOk())
        self._channel.go_on()

    def rollback(self) -> None:
        """Forget what was collected.

        Raises:
            ProtocolError: The channel is not transactional (406).
        """
        self._demand_transaction()
        self._transaction = _Transaction()

    def _demand_transaction(self) -> _Transaction:
        if self._transaction is None:
            raise ProtocolError(ReplyCode.PRECONDITION_FAILED, "channel is not transactional")
        return self._transaction

    def close(self) -> None:
        """Await nothing any more."""
        self._open.clear()
        self._transaction = None
        self.is_committing = False
