"""Users who have too much in the queues of others: what they send waits, and nobody else's does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.container.amqp091.connection import BasicConnection
from cogwork.container.connections.shares import Holder
from cogwork.dataplane.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Set

    from cogwork.container.amqp091.peers import BasicPeers
    from cogwork.container.connections.peer import Peer
    from cogwork.container.connections.roster import Roster
    from cogwork.container.vhost.attachments import Attachments

__all__ = ("HeldPublishers",)


class HeldPublishers:
    """Their connections. Owned by the container."""

    def __init__(self, roster: Roster, attachments: Attachments, basic_peers: BasicPeers) -> None:
        """Hold nobody.

        Args:
            roster: Knows the connections.
            attachments: Has the links of those by AMQP 1.0.
            basic_peers: Has those by AMQP 0-9-1.
        """
        self._roster = roster
        self._attachments = attachments
        self._basic_peers = basic_peers
        self._held: set[Peer] = set()

    def hold(self, users: Set[Holder]) -> None:
        """Have these users send nothing; who was held before and is not among them goes on.

        Args:
            users: Who has too much.
        """
        if not users and not self._held:
            return
        found = {
            each
            for each in self._roster.connections
            if each.identity is not None and Holder("user", each.identity) in users
        }
        new = found - self._held
        for each in new:
            self._roster.client_of(each).is_held = True
            if isinstance(each, BasicConnection):
                each.block(True)
        if new:
            self._attachments.hold_credit_of_held()
        for each in self._held - found:
            self._let_go_on(each)
        self._held = found

    def _let_go_on(self, connection: Peer) -> None:
        if connection.is_over:
            return
        self._roster.client_of(connection).is_held = False
        if isinstance(connection, BasicConnection):
            connection.block(self._basic_peers.are_blocked)
        elif isinstance(connection, Connection):
            self._attachments.give_credit(connection)
