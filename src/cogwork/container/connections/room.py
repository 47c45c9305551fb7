"""Room in the data plane: where all hold too much together, who holds most has to go.

Theory of operation. A connection holds what it has sent and nobody has taken yet, deliveries that
are not finished among it, and what it was sent and has not read. Windows close and senders wait
before that is more than `limits.held_bytes`; what was promised before may still come. If it comes
to too much, the source address that holds most is at fault, of its users the one that holds most,
and of that one's connections. Nothing is counted for it beforehand: it is added up then.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.container.connections.shares import Holder
from cogwork.container.gateways.inside import Inside

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.container.connections.peer import Peer
    from cogwork.container.connections.peers import Peers
    from cogwork.dataplane.core import Core

__all__ = ("detach_unfinished", "make_room")

UNREAD_BYTES = 64 * 1024
"""A peer that leaves more unread than this reads no error either: its socket is just closed."""

ROOM_BYTES = 4 * 1024 * 1024
"""So much room is made at once, so that it is not looked for again and again."""

log = logging.getLogger("cogwork")


class _Load(NamedTuple):
    """What one connection holds."""

    connection: Peer
    source: Holder
    user: Holder
    size_bytes: int


def make_room(core: Core, peers: Peers, limit_bytes: int) -> bool:
    """Close the connections of who holds most until there is room; tell whether there is.

    Args:
        core: The data plane, which holds too much.
        peers: Its clients; links to other containers stay, whatever they hold.
        limit_bytes: What all may hold together.
    """
    loads = _loads(peers)
    made_bytes = 0
    while loads and (core.is_short or 0 < made_bytes < ROOM_BYTES):
        theirs = _of_largest(_of_largest(loads, lambda it: it.source), lambda it: it.user)
        load = max(theirs, key=lambda it: it.size_bytes)
        total = sum(each.size_bytes for each in theirs)
        text = (
            f"{load.user if load.user.name else load.source} holds {total} bytes of messages that "
            "are under way or unread, more than any other, and there is no room for so many "
            f"(limits.held_bytes = {limit_bytes})"
        )
        _close(load, peers.client_of(load.connection).number, text)
        loads.remove(load)
        made_bytes += load.size_bytes
    return not core.is_short


def _loads(peers: Peers) -> list[_Load]:
    found = []
    for connection, client in peers.connections.items():
        size_bytes = connection.wire.held_bytes + connection.wire.output_bytes
        if size_bytes and not isinstance(client.listen, Inside):
            user = Holder("user", connection.identity or "")
            found.append(_Load(connection, client.source, user, size_bytes))
    return found


def _of_largest(loads: list[_Load], key: Callable[[_Load], Holder]) -> list[_Load]:
    """Return those of the holder that holds most."""
    sums: Counter[Holder] = Counter()
    for each in loads:
        sums[key(each)] += each.size_bytes
    largest = max(sums, key=sums.__getitem__)
    return [each for each in loads if key(each) == largest]


def _close(load: _Load, number: int, text: str) -> None:
    log.warning("connection %d: closed, because %s", number, text)
    connection = load.connection
    error = AmqpError(condition=Condition.RESOURCE_LIMIT_EXCEEDED, description=text)
    if connection.wire.unsent_bytes > UNREAD_BYTES:
        connection.wire.drop_output()
    else:
        connection.close(error)
    connection.lose(error)


def detach_unfinished(core: Core, peers: Peers, limit_s: float) -> None:
    """Detach the clients' links on which one delivery has been coming for too long.

    Args:
        core: The data plane.
        peers: The clients; a link to another container waits for a client there, and that
            container sees to it.
        limit_s: For how long one may.
    """
    text = f"a delivery has not ended within {limit_s:g} s (limits.delivery_timeout_s)"
    for end in core.unfinished(limit_s):
        link = end.owner
        if link is not None and link.session.connection.host is peers and link.is_attached:
            log.warning("detached publisher %r: %s", link.name, text)
            link.detach(AmqpError(condition=Condition.RESOURCE_LIMIT_EXCEEDED, description=text))
