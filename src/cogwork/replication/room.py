"""Whether a container can hold one more replica."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.replication.calls import RoomIs

if TYPE_CHECKING:
    from collections.abc import Sequence, Sized

    from cogwork.log.wal import Wal
    from cogwork.replication.calls import GetRoom
    from cogwork.replication.cluster import StreamCluster

__all__ = ("Room",)


class Room:
    """What it depends on.

    Attributes:
        why_none: Why there is none for a reason that only the container knows; empty otherwise.
    """

    def __init__(self, wal: Wal | None, members: Sized) -> None:
        """Initialize it; it has room, as far as the log has.

        Args:
            wal: The container's write-ahead log; None where it keeps nothing.
            members: The replicas here, as they come and go.
        """
        self.why_none = ""
        self._wal = wal
        self._members = members

    def tell(self, call: GetRoom, cluster: StreamCluster) -> RoomIs:
        """Answer who asks, for a cluster that is to be the container's own."""
        return RoomIs(call.number, len(self._members), self._problem(call.voters, cluster.voters))

    def _problem(self, wanted: Sequence[str], voters: Sequence[str]) -> str:
        if self._wal is None:
            return "it has no data directory"
        if self._wal.is_full:
            return "its disk is full"
        if set(wanted) != set(voters):
            return f"its cluster is another one, whose primaries are {', '.join(voters)}"
        return self.why_none
