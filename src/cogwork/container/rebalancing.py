"""Clients that stand are moved to where there is less to do: a few at a time, each in order.

Theory of operation. A client that is to go is given no more credit to send by. What it has sent by
then comes within a moment, and is answered; then its connection is closed with a redirect. One
whose messages are not answered soon stays, and sends again. Items that it was given and has not
settled stay its own, as where a connection breaks: it claims them on the next one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cogwork.container.connections.balance import Balance
    from cogwork.container.connections.clients import ClientContext
    from cogwork.container.vhost.attachments import Attachments
    from cogwork.dataplane.connection import Connection
    from cogwork.dataplane.core import Core

__all__ = ("Rebalancing",)

UNDER_WAY_S = 0.1
"""What a client has sent before it hears that it has no credit any more comes within it."""

ANSWERS_S = 2.0
"""So long the answers to what it has sent may take."""

LOOK_S = 0.01

MOST_AT_ONCE = 100


class Rebalancing:
    """Owned by the container."""

    def __init__(self, balance: Balance, attachments: Attachments, core: Core) -> None:
        """Move nobody yet.

        Args:
            balance: Knows who is to go, and where to.
            attachments: Give credit to those that send.
            core: Sends what is to be sent.
        """
        self._balance = balance
        self._attachments = attachments
        self._core = core
        self._moving: set[Connection] = set()

    async def move(self, most: int) -> dict[str, object]:
        """Move some of the clients that are more than this container's share.

        Args:
            most: How many at most; with 0 nobody is moved.

        Returns:
            `usage`, `surplus` (the clients beyond its share, before), `movable` (those that can be
            moved) and `moved`.
        """
        surplus = self._balance.surplus
        movable = [each for each in self._balance.movable() if each[0] not in self._moving]
        chosen = movable[: min(most, surplus, MOST_AT_ONCE)]
        moved = await asyncio.gather(*(self._move(*each) for each in chosen))
        return {
            "usage": round(self._balance.usage, 3),
            "surplus": surplus,
            "movable": len(movable),
            "moved": sum(moved),
        }

    async def _move(self, connection: Connection, client: ClientContext) -> bool:
        self._moving.add(connection)
        try:
            self._attachments.hold_credit(connection)
            self._core.flush()
            await asyncio.sleep(UNDER_WAY_S)
            loop = asyncio.get_running_loop()
            deadline_s = loop.time() + ANSWERS_S
            while self._attachments.unanswered_of(connection) and loop.time() < deadline_s:
                await asyncio.sleep(LOOK_S)
            if connection.is_over:
                return False
            is_answered = not self._attachments.unanswered_of(connection)
            if is_answered and self._balance.move(connection, client):
                self._core.flush()
                return True
            self._attachments.give_credit(connection)
            self._core.flush()
            return False
        finally:
            self._moving.discard(connection)
