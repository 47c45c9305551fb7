"""What a subscriber asks of a source beyond its messages, and what it is told of that.

Theory of operation. Direct addresses and topics keep nothing for who is away, and give each
subscriber a copy. Whoever counts on more, a durable subscription or a shared one as JMS has them,
would lose messages in silence, or get them twice: it is refused, and told what there is instead.
Who sends to an address where one consumer gets each message is told if nobody is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition
from cogwork.amqp.terminus import COPY, MOVE, Durability, ExpiryPolicy
from cogwork.amqp.types import Symbol
from cogwork.plugin.node import Refused
from cogwork.router.addresses import Distribution

if TYPE_CHECKING:
    from cogwork.amqp.terminus import Source
    from cogwork.router.addresses import AddressRule

__all__ = ("demand_kept", "demand_known_mode", "expiry_of", "mode_of")

SHARED = Symbol("shared")
"""A capability by which JMS asks that consumers share a subscription."""


def demand_known_mode(source: Source) -> None:
    """Check the distribution mode.

    Raises:
        Refused: There is no such mode.
    """
    if source.distribution_mode not in (None, COPY, MOVE):
        raise Refused(
            f"the distribution mode {source.distribution_mode!r:.80} is not offered: there are "
            f"{MOVE} and {COPY}",
            Condition.NOT_IMPLEMENTED,
        )


def demand_kept(source: Source, rule: AddressRule | None) -> None:
    """Check that a subscriber does not count on what nobody keeps for it.

    Args:
        source: What it asks for.
        rule: Its address's; None for a dynamic one.

    Raises:
        Refused: It does.
    """
    if rule is None or not _keeps_nothing(rule) or _tells_senders(rule):
        return
    if source.durable is not Durability.NONE:
        asked = "durable subscriptions are not offered"
    elif SHARED in source.capabilities:
        asked = "shared subscriptions are not offered"
    else:
        return
    raise Refused(
        f"{asked}: {source.address!r:.200} keeps nothing, and each subscriber gets a copy; a queue "
        "or a stream keeps messages for who is away",
        Condition.NOT_IMPLEMENTED,
    )


def mode_of(source: Source, rule: AddressRule | None) -> Symbol:
    """Return how messages are shared out: only a queue's can be had in both ways."""
    is_copied = rule is not None and rule.distribution is Distribution.MULTICAST
    return COPY if is_copied or source.distribution_mode == COPY else MOVE


def expiry_of(source: Source, rule: AddressRule | None) -> ExpiryPolicy:
    """Return when a source goes: one that keeps nothing goes with its link."""
    if rule is not None and _keeps_nothing(rule):
        return ExpiryPolicy.LINK_DETACH
    return source.expiry_policy


def _keeps_nothing(rule: AddressRule) -> bool:
    return rule.kind in ("direct", "topic")


def _tells_senders(rule: AddressRule) -> bool:
    return rule.kind == "direct" and rule.distribution is not Distribution.MULTICAST
