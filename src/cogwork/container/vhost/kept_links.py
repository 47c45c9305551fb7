"""Consumers' links that have ended, and what becomes of the items that they had not settled.

Theory of operation. A consumer that closes its link, or ends its session or connection in order,
says by that that it will settle nothing more: what it has goes back at once. One that detaches its
link without closing it may resume it (AMQP 1.0 §2.6.5): its items are kept as long as its source's
expiry-policy and timeout say (§3.5.6). The timeout begins when the link is detached, the session
ends or the connection closes, by the policy. It is at most what the queue grants a consumer whose
connection was lost, and so is the time of a source that never expires: items are not withheld from
others for longer than that on behalf of somebody who is not connected.

A link is resumed by one of the same name from the same container and user. What that one does not
present as unsettled goes back at once. A connection that is lost leaves what it had in doubt, also
what was kept for links on it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cogwork.amqp.terminus import ExpiryPolicy
from cogwork.dataplane.link import Ending
from cogwork.plugin.node import Departure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cogwork.amqp.terminus import Source
    from cogwork.dataplane.connection import Connection
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.session import SessionEndpoint

__all__ = ("KeptLink", "KeptLinks", "agreed_expiry", "kept_s", "key_of")

Key = tuple[str, str | None, str, str]

_ORDER = (Ending.DETACHED, Ending.SESSION_ENDED, Ending.CONNECTION_CLOSED)
_EXPIRES_AFTER = {
    ExpiryPolicy.LINK_DETACH: Ending.DETACHED,
    ExpiryPolicy.SESSION_END: Ending.SESSION_ENDED,
    ExpiryPolicy.CONNECTION_CLOSE: Ending.CONNECTION_CLOSED,
    ExpiryPolicy.NEVER: Ending.CONNECTION_CLOSED,
}
"""From when on a source's timeout runs; one that never expires has the longest that there is."""


def kept_s(source: Source, ending: Ending, max_s: float) -> float | None:
    """Return for how long the items of a link that has ended in order are kept.

    Args:
        source: As the consumer attached it.
        ending: How the link ended, or its session or connection after it.
        max_s: The longest timeout.

    Returns:
        Seconds from now on; 0 where they go back at once, None until the next such ending.
    """
    if ending is Ending.CLOSED:
        return 0.0
    if _ORDER.index(ending) < _ORDER.index(_EXPIRES_AFTER[source.expiry_policy]):
        return None
    return _timeout_s(source, max_s)


def _timeout_s(source: Source, max_s: float) -> float:
    return max_s if source.expiry_policy is ExpiryPolicy.NEVER else min(source.timeout, max_s)


def agreed_expiry(source: Source, max_s: float) -> tuple[ExpiryPolicy, int]:
    """Return the expiry-policy and timeout that hold for a consumer of a queue."""
    policy = source.expiry_policy
    if policy is ExpiryPolicy.NEVER:
        policy = ExpiryPolicy.CONNECTION_CLOSE
    return policy, int(_timeout_s(source, max_s))


def key_of(link: Link, vhost: str) -> Key:
    """Return what a consumer's link is known by when it is resumed."""
    connection = link.session.connection
    opened = connection.remote
    return vhost, connection.identity, opened.container_id if opened else "", link.name


@dataclass(slots=True, eq=False)
class KeptLink:
    """A link that has been detached and may be resumed.

    Attributes:
        key: What it is known by.
        session: It was attached on.
        source: As the consumer attached it.
        max_s: The longest timeout.
        give_up: Gives back what it has, or leaves it in doubt.
        due_s: When its time is over, by the monotonic clock; None while that does not run.
    """

    key: Key
    session: SessionEndpoint
    source: Source
    max_s: float
    give_up: Callable[[Departure], None]
    due_s: float | None = None


class KeptLinks:
    """The links of a container's consumers that may be resumed."""

    def __init__(self) -> None:
        """Start with none."""
        self._links: dict[KeptLink, None] = {}
        self._by_key: dict[Key, KeptLink] = {}

    def __len__(self) -> int:
        return len(self._links)

    def keep(self, kept: KeptLink, ending: Ending) -> None:
        """Wait for a link to be resumed; one of the same name that is kept already is given up."""
        self.give_up(self._by_key.get(kept.key))
        self._links[kept] = None
        self._by_key[kept.key] = kept
        self._go_on(kept, ending)

    def find(self, key: Key) -> KeptLink | None:
        """Return the link that is kept under a key."""
        return self._by_key.get(key)

    def give_up(self, kept: KeptLink | None, departure: Departure = Departure.ORDERLY) -> None:
        """Keep a link no longer; without effect on one that is not kept."""
        if kept is None or kept not in self._links:
            return
        del self._links[kept]
        if self._by_key.get(kept.key) is kept:
            del self._by_key[kept.key]
        kept.give_up(departure)

    def end_session(self, session: SessionEndpoint) -> None:
        """Take note that a session has ended."""
        self._end([each for each in self._links if each.session is session], session.ending)

    def end_connection(self, connection: Connection) -> None:
        """Take note that a connection has ended."""
        kept = [each for each in self._links if each.session.connection is connection]
        self._end(kept, connection.ending)

    def _end(self, kept: Iterable[KeptLink], ending: Ending) -> None:
        for each in kept:
            if each.due_s is not None:
                continue  # its time runs already, whatever comes after
            if ending is Ending.LOST:
                self.give_up(each, Departure.LOST)
            else:
                self._go_on(each, ending)

    def _go_on(self, kept: KeptLink, ending: Ending) -> None:
        left_s = kept_s(kept.source, ending, kept.max_s)
        if left_s == 0:
            self.give_up(kept)
        elif left_s is not None:
            kept.due_s = time.monotonic() + left_s

    def tick(self, now_s: float) -> None:
        """Give up the links whose time is over."""
        for kept in [each for each in self._links if each.due_s is not None]:
            if kept.due_s is not None and kept.due_s <= now_s:
                self.give_up(kept)
