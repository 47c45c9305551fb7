"""Connections that other containers dialled, until they make a peer link."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError, Condition, ProtocolError
from cogwork.container.mesh.control_connection import ControlConnection
from cogwork.container.mesh.data_connection import DataConnection
from cogwork.container.mesh.names import CONTROL, DATA, INCARNATION, MESH, NUMBER, OTHER_CONTAINER
from cogwork.container.mesh.neighbour_owners import NeighbourOwners
from cogwork.container.security.revocation import login_ended

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.performatives import Open
    from cogwork.container.mesh.connection import MeshConnection
    from cogwork.container.mesh.service import MeshService
    from cogwork.dataplane.connection import Connection

__all__ = ("IncomingPeers",)

WAIT_S = 5.0
"""The connection for control follows that for data at once, or never."""

WAITING_MAX = 256
"""Connections for data that wait for the other one; a mesh has no more neighbours."""

KEPT_OUT_S = 10.0
"""How long a container that was cut off is not taken again."""

Key = tuple[str, int, int]


class IncomingPeers:
    """Takes what others dialled; a data connection waits here for the one for control.

    Attributes:
        owners: As whom those have logged in that were taken.
    """

    def __init__(self, mesh: MeshService) -> None:
        self._mesh = mesh
        self._waiting: dict[Key, tuple[DataConnection, float]] = {}
        self.owners = NeighbourOwners(mesh.is_linked)
        self._kept_out: dict[str, tuple[float, str]] = {}

    def adopt(self, connection: Connection, opened: Open) -> None:
        """Take a connection.

        Raises:
            ProtocolError: It does not say what it is for, or is not wanted.
        """
        properties = opened.properties or {}
        number, incarnation = properties.get(NUMBER), properties.get(INCARNATION)
        if not isinstance(number, int) or not isinstance(incarnation, int):
            raise ProtocolError(
                Condition.INVALID_FIELD, f"an open without {NUMBER} and {INCARNATION} of a pair"
            )
        self._demand_welcome(opened.container_id)
        key = (opened.container_id, incarnation, number)
        if properties.get(MESH) == DATA:
            self._adopt_data(connection, opened, key)
        elif properties.get(MESH) == CONTROL and key in self._waiting:
            control = ControlConnection(self._mesh, number)
            control.adopt(connection, opened)
            self._mesh.add_peer_link(control, self._waiting.pop(key)[0], None)
        elif properties.get(MESH) == CONTROL:
            raise ProtocolError(OTHER_CONTAINER, "the other connection of the pair is not here")
        else:
            raise ProtocolError(Condition.INVALID_FIELD, f"{MESH} is neither {DATA} nor {CONTROL}")

    def _adopt_data(self, connection: Connection, opened: Open, key: Key) -> None:
        if key in self._waiting or len(self._waiting) >= WAITING_MAX:
            raise ProtocolError(
                Condition.RESOURCE_LIMIT_EXCEEDED,
                f"a second data connection with one {NUMBER}, or one of too many",
            )
        data = DataConnection(self._mesh, key[2])
        self._waiting[key] = (data, time.monotonic())
        data.adopt(connection, opened)

    def _demand_welcome(self, container: str) -> None:
        until_s, why = self._kept_out.get(container, (0.0, ""))
        left_s = until_s - time.monotonic()
        if left_s > 0:
            raise ProtocolError(
                Condition.NOT_ALLOWED,
                f"container {container} was cut off ({why}), and is not taken again for "
                f"{left_s:.0f} s",
            )

    def keep_out(self, container: str, why: str) -> None:
        """Take nothing of a container for a while that has not kept to the rules."""
        self._kept_out[container] = (time.monotonic() + KEPT_OUT_S, why)

    def is_kept_out(self, container: str) -> bool:
        """Return whether a container was cut off just now."""
        return self._kept_out.get(container, (0.0, ""))[0] > time.monotonic()

    def forget(self, connection: MeshConnection) -> None:
        """Take note that a connection is over, which perhaps has waited here."""
        for key in [key for key, (data, _) in self._waiting.items() if data is connection]:
            del self._waiting[key]

    def end_unwelcome(self, why_not: Callable[[Connection], str | None]) -> None:
        """End the connections that wait and are taken no longer; `why_not` tells why."""
        for data, _ in list(self._waiting.values()):
            why = why_not(data.connection)
            if why is not None:
                self.forget(data)
                data.close(login_ended(why))
                asyncio.get_running_loop().call_soon(data.connection.lose)

    def sweep(self, now_s: float) -> None:
        """End the connections that have waited for too long."""
        for container, (until_s, _) in list(self._kept_out.items()):
            if until_s <= now_s:
                del self._kept_out[container]
        for data, since_s in list(self._waiting.values()):
            if now_s - since_s > WAIT_S:
                self.forget(data)
                data.close(
                    AmqpError(
                        condition=Condition.RESOURCE_LIMIT_EXCEEDED,
                        description=f"no connection for control came within {WAIT_S:g} s",
                    )
                )
                asyncio.get_running_loop().call_soon(data.connection.lose)
