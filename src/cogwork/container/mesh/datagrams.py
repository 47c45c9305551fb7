"""Datagrams: octets from one container to another, whoever stands between.

Theory of operation. A datagram travels on control connections, from neighbour to neighbour, on
links of its own; each container on the way passes it on by its own next hop. Datagrams between two
containers keep their order while the way stays as it is. One that finds no way, or more waiting
than is good, is dropped: whoever sends it has to know what to do then.

A datagram begins with a version, the containers it has passed, and the names of where it leads and
where it comes from, each behind its length in one octet.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from cogwork.container.mesh.names import HOPS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.container.mesh.service import MeshService

__all__ = ("Datagram", "Datagrams")

VERSION = 1


class Datagram:
    """The address label of a datagram."""

    @staticmethod
    @lru_cache(maxsize=1024)
    def label(to: str, origin: str) -> bytes:
        """Return what stands before the octets."""
        target, source = to.encode(), origin.encode()
        return b"".join((bytes((VERSION, 0, len(target))), target, bytes((len(source),)), source))

    @staticmethod
    def unpack(datagram: bytes | memoryview) -> tuple[str, str, int]:
        """Read a label.

        Returns:
            Where it leads, where it comes from, and where the octets begin.

        Raises:
            ValueError: It is none.
        """
        if len(datagram) < 3 or datagram[0] != VERSION:
            found = f"{len(datagram)} octets that begin with {datagram[:16].hex()}"
            raise ValueError(f"unknown version: {found}")
        to_end = 3 + datagram[2]
        if len(datagram) <= to_end:
            raise ValueError("a datagram that ends in its label")
        data_at = to_end + 1 + datagram[to_end]
        if len(datagram) < data_at:
            raise ValueError("a datagram that ends in its label")
        return (
            str(datagram[3:to_end], "utf-8"),
            str(datagram[to_end + 1 : data_at], "utf-8"),
            data_at,
        )

    @staticmethod
    def hop(datagram: bytes | memoryview) -> bytes | None:
        """Count one container more; None where there were too many."""
        if datagram[1] + 1 >= HOPS_MAX:
            return None
        return b"".join((bytes((VERSION, datagram[1] + 1)), datagram[2:]))


class Datagrams:
    """What this container sends to others, takes from them, and passes on.

    Attributes:
        take: Is given the origin and the octets of each datagram for this container.
        sent: Counts the datagrams that began here.
        passed: Counts those that were passed on.
        dropped: Counts those that went nowhere.
    """

    def __init__(self, mesh: MeshService) -> None:
        self._mesh = mesh
        self.take: Callable[[str, memoryview], None] | None = None
        self.sent = 0
        self.passed = 0
        self.dropped = 0

    def send(self, to: str, *parts: bytes) -> bool:
        """Send octets, given in parts, to a container.

        Returns:
            False where they are dropped at once.
        """
        self.sent += 1
        connection = self._mesh.control_to(to)
        if connection is not None:
            label = Datagram.label(to, self._mesh.id)
            if connection.send_datagram(label, *parts):
                return True
        self.dropped += 1
        return False

    def receive(self, datagram: bytes | memoryview) -> None:
        """Take what a neighbour sent.

        Raises:
            ValueError: It is no datagram.
        """
        to, origin, data_at = Datagram.unpack(datagram)
        if to != self._mesh.id:
            self.passed += 1
            further = Datagram.hop(datagram)
            connection = self._mesh.control_to(to)
            if further is None or connection is None or not connection.send_datagram(further):
                self.dropped += 1
        elif self.take is not None:
            self.take(origin, memoryview(datagram)[data_at:])
