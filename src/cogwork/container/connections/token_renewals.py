"""Tokens that clients put to `$cbs`: each takes the place of the one before it, or is refused.

Theory of operation. What is put on one connection is checked one after another, a check in a
turn of the event loop, as logins are: who puts many has others wait for none of them. How many
wait, the credit of the sender's link bounds.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from cogwork.amqp.errors import ProtocolError
from cogwork.container.connections.shares import Holder
from cogwork.sasl.sides import LoginBusyError, TokenError

if TYPE_CHECKING:
    from cogwork.container.connections.clients import ClientContext
    from cogwork.container.connections.roster import Roster
    from cogwork.container.security.access import Access
    from cogwork.container.vhost.link_desk import LinkDesk
    from cogwork.dataplane.connection import Connection
    from cogwork.plugin.management import OnPut

__all__ = ("TokenRenewals",)

log = logging.getLogger("cogwork")

WAITING_OF_LINK_MAX = 4

OK, UNAUTHORIZED, UNAVAILABLE = 200, 401, 503


class TokenRenewals:
    """Has tokens checked. Owned by the container."""

    def __init__(self, access: Access, roster: Roster, desk: LinkDesk) -> None:
        """Start with none.

        Args:
            access: Checks tokens.
            roster: Knows the connections.
            desk: Has their links.
        """
        self._access = access
        self._roster = roster
        self._desk = desk
        self._lines: dict[Connection, deque[tuple[str, OnPut]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def put(self, connection: Connection, token: str, on_put: OnPut) -> None:
        """Have a token checked, after those that were put before it.

        Args:
            connection: Whose token it is.
            token: As the client gave it.
            on_put: Learns what came of it, unless the connection ends before.
        """
        line = self._lines.get(connection)
        if line is not None:
            line.append((token, on_put))
            return
        self._lines[connection] = deque([(token, on_put)])
        task = asyncio.get_running_loop().create_task(self._work(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def put_for_link(self, connection: Connection, token: str) -> None:
        """Have a token checked of a container that has linked by one; one of too many is not."""
        if len(self._lines.get(connection, ())) < WAITING_OF_LINK_MAX:
            self.put(connection, token, partial(_log_refusal, connection))

    def close(self) -> None:
        """Check no more."""
        for task in self._tasks:
            task.cancel()

    async def _work(self, connection: Connection) -> None:
        line = self._lines[connection]
        try:
            while line and not connection.is_over:
                token, on_put = line.popleft()
                status, text = await self._outcome(connection, token)
                if not connection.is_over:
                    on_put(status, text)
                    connection.flush()
                await asyncio.sleep(0)
        except Exception as error:  # logged; the container goes on
            self._roster.on_fault(connection, error)
        finally:
            del self._lines[connection]

    async def _outcome(self, connection: Connection, token: str) -> tuple[int, str]:
        client = self._roster.client_of(connection)
        enter = partial(self._enter, connection, client) if client.is_counted else None
        try:
            await self._access.renew(connection, client, token, enter)
        except LoginBusyError:
            return UNAVAILABLE, "tokens cannot be checked now; try again later"
        except TokenError:
            return UNAUTHORIZED, "the token is refused; the container's log says why"
        if not connection.is_over:
            self._roster.permit(connection, client)
            self._desk.permit_anew(connection, client)
        return OK, "OK"

    def _enter(self, connection: Connection, client: ClientContext, user: str) -> None:
        """Have a connection that was nobody's be a user's from now on, with all that it has.

        Raises:
            TokenError: It is one too many for the user, or has ended.
        """
        if connection.is_over:
            raise TokenError("its connection has ended")
        connection.identity = user
        try:
            self._roster.demand_room(connection, client)
        except ProtocolError as error:
            connection.identity = None
            raise TokenError(error.description) from None
        holder = (Holder("user", user),)
        self._roster.sessions.take(holder, client.sessions)
        self._roster.links.take(holder, sum(len(each.links) for each in connection.sessions))


def _log_refusal(connection: Connection, status: int, text: str) -> None:
    if status != OK:
        log.warning(
            "a new token of container %.80r, which has linked as user %.80r, does not hold: %s",
            "" if connection.remote is None else connection.remote.container_id,
            connection.identity,
            text,
        )
