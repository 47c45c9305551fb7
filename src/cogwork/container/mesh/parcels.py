"""Parcels: octets from one container to another, whoever stands between.

Theory of operation. A parcel travels on control connections, from neighbour to neighbour, on links
of its own; each container on the way passes it on by its own next hop. Parcels between two
containers keep their order while the way stays as it is. One that finds no way, or more waiting
than is good, is dropped: whoever sends it has to know what to do then.

A parcel begins with a version, the containers it has passed, and the names of where it leads and
where it comes from, each behind its length in one octet.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from cogwork.container.mesh.names import HOPS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.container.mesh.service import MeshService

__all__ = ("Parcel", "Parcels")

VERSION = 1


class Parcel:
    """The address label of a parcel."""

    @staticmethod
    @lru_cache(maxsize=1024)
    def label(to: str, origin: str) -> bytes:
        """Returns what stands before the octets."""
        target, source = to.encode(), origin.encode()
        return b"".join((bytes((VERSION, 0, len(target))), target, bytes((len(source),)), source))

    @staticmethod
    def unpack(parcel: bytes | memoryview) -> tuple[str, str, int]:
        """Reads a label.

        Returns:
            Where it leads, where it comes from, and where the octets begin.

        Raises:
            ValueError: It is none.
        """
        if len(parcel) < 3 or parcel[0] != VERSION:
            found = f"{len(parcel)} octets that begin with {parcel[:16].hex()}"
            raise ValueError(f"unknown version: {found}")
        to_end = 3 + parcel[2]
        if len(parcel) <= to_end:
            raise ValueError("a parcel that ends in its label")
        data_at = to_end + 1 + parcel[to_end]
        if len(parcel) < data_at:
            raise ValueError("a parcel that ends in its label")
        return str(parcel[3:to_end], "utf-8"), str(parcel[to_end + 1 : data_at], "utf-8"), data_at

    @staticmethod
    def hop(parcel: bytes | memoryview) -> bytes | None:
        """Counts one container more; None where there were too many."""
        if parcel[1] + 1 >= HOPS_MAX:
            return None
        return b"".join((bytes((VERSION, parcel[1] + 1)), parcel[2:]))


class Parcels:
    """What this container sends to others, takes from them, and passes on.

    Attributes:
        take: Is given the origin and the octets of each parcel for this container.
        sent: Counts the parcels that began here.
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
        """Sends octets, given in parts, to a container.

        Returns:
            False where they are dropped at once.
        """
        self.sent += 1
        connection = self._mesh.control_to(to)
        if connection is not None:
            label = Parcel.label(to, self._mesh.id)
            if connection.send_parcel(label, *parts):
                return True
        self.dropped += 1
        return False

    def receive(self, parcel: bytes | memoryview) -> None:
        """Takes what a neighbour sent.

        Raises:
            ValueError: It is no parcel.
        """
        to, origin, data_at = Parcel.unpack(parcel)
        if to != self._mesh.id:
            self.passed += 1
            further = Parcel.hop(parcel)
            connection = self._mesh.control_to(to)
            if further is None or connection is None or not connection.send_parcel(further):
                self.dropped += 1
        elif self.take is not None:
            self.take(origin, memoryview(parcel)[data_at:])
