"""Who keeps others waiting for too long: slow subscribers, and publishers in mid-delivery."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, cast

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.config.settings import BLOCK_TIMEOUT_S
from cogwork.router.addresses import SlowSubscriber

if TYPE_CHECKING:
    from cogwork.container.vhost.selection import DearSelectorError
    from cogwork.dataplane.core import Core
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.transport.incoming import IncomingLink
    from cogwork.dataplane.transport.outgoing import OutgoingLink

__all__ = ("POLICY_CODES", "detach_dear", "detach_overdue")

POLICY_CODES = {
    SlowSubscriber.BLOCK: 0,
    SlowSubscriber.DROP_OLDEST: 1,
    SlowSubscriber.DETACH: 2,
}
"""What the data plane calls them."""

log = logging.getLogger("cogwork")


def detach_overdue(core: Core) -> None:
    """Detach the subscribers that are too slow for their address's policy.

    Not those for whom a publisher's unfinished delivery keeps everything back: then it is that
    publisher who goes. Consumers of one message each may take their time. Nor links to other
    containers: one of the subscribers there is slow, and that container has to deal with it.
    """
    overdue, core.overdue = core.overdue, []
    for end in overdue:
        publisher = end.waits_for
        if publisher is not None:
            end.pardon()
            _detach_unfinished(publisher)
        elif end.is_branch and end.backlog_bytes <= core.held_bytes_max // 2:
            end.pardon()
        else:
            _detach_slow(end, "its backlog is full")
    for end in core.blocked_links():
        _look_at_blocked(end, core.now)


def detach_dear(end: OutgoingLink, error: DearSelectorError) -> None:
    """Detach a receiver whose selector takes too long."""
    link = cast("Link", end.owner)
    if link.is_attached:
        log.warning("detached receiver %r: %s", link.name, error)
        _detach(link, str(error))


def _look_at_blocked(end: OutgoingLink, now_s: float) -> None:
    rule = getattr(end.owner.context, "rule", None)
    limit_s = rule.block_timeout_s if rule is not None else BLOCK_TIMEOUT_S
    if now_s - end.blocked_since_s <= limit_s or end.is_unjudged:
        return
    publisher = end.waits_for
    takes_its_time = end.is_branch or end.feeder is not None or not end.backlog_bytes
    if publisher is not None:
        _detach_unfinished(publisher)
    elif takes_its_time:
        return
    elif _may_not_wait(end):
        _detach_slow(end, f"it accepted nothing for {limit_s:g} s")
    else:
        end.drop_unsettled()


def _may_not_wait(end: OutgoingLink) -> bool:
    """Return whether a subscriber's policy has it detached: a dropping one only in mid-delivery."""
    return end.policy != POLICY_CODES[SlowSubscriber.DROP_OLDEST] or end.is_midway


def _detach_unfinished(end: IncomingLink) -> None:
    link = cast("Link", end.owner)
    if not link.is_attached:
        return
    log.warning("detached publisher %r: it left a delivery unfinished", link.name)
    _detach(link, "a delivery was left unfinished while others waited behind it")


def _detach_slow(end: OutgoingLink, reason: str) -> None:
    link = cast("Link", end.owner)
    if not link.is_attached:
        return
    log.warning("detached slow subscriber %r: %s", link.name, reason)
    _detach(link, f"the subscriber is too slow: {reason}")


def _detach(link: Link, description: str) -> None:
    link.detach(AmqpError(condition=Condition.RESOURCE_LIMIT_EXCEEDED, description=description))
