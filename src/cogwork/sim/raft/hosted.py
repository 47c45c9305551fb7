"""One group on a `RaftHost`: as it runs in a container, with frames of octets, and with sleep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from cogwork.raft.host import RaftHost
from cogwork.raft.ready import Ready, Reported

if TYPE_CHECKING:
    from random import Random

    from cogwork.raft.core import Recovered
    from cogwork.raft.group import Group
    from cogwork.raft.membership import Membership
    from cogwork.raft.pace import Pace
    from cogwork.raft.ready import Write
    from cogwork.raft.settings import Settings
    from cogwork.raft.snapshot import Snapshot

__all__ = ("HostedGroup",)

NUMBER = 7
"""The group's."""


class HostedGroup:
    """What a `Group` offers, by way of a host.

    Attributes:
        group: The group, to look at.
    """

    def __init__(
        self,
        name: str,
        incarnation: int,
        recovered: Recovered,
        random: Random,
        now_s: float,
        *,
        settings: Settings,
        pace: Pace,
    ) -> None:
        """Open it.

        Args:
            name: The container's.
            incarnation: Of its host.
            recovered: What the disk holds.
            random: For time-outs.
            now_s: The time.
            settings: How long it waits, and how much it holds.
            pace: How quick its disk is.
        """
        self._host = RaftHost(name, incarnation, random, now_s, settings, pace=pace)
        self.group: Group = self._host.open(NUMBER, recovered, now_s)

    @property
    def wake_s(self) -> float:
        """When `tick` is needed."""
        return self._host.wake_s

    def tick(self, now_s: float) -> None:
        """Let time pass."""
        self._host.tick(now_s)

    def step(self, sender: str, frame: bytes, now_s: float) -> None:
        """Take a frame."""
        self._host.receive(sender, frame, now_s)

    def lost(self, name: str, now_s: float) -> None:
        """Learn that another replica's container is gone."""
        self._host.lost(name, now_s)

    def propose(self, payload: bytes, now_s: float) -> tuple[int, int]:
        """Append a command."""
        return self._host.propose(NUMBER, payload, now_s)

    def read_index(self, token: object, now_s: float) -> None:
        """Ask for a current read."""
        self._host.read_index(NUMBER, token, now_s)

    def transfer(self, to: str | None, now_s: float) -> None:
        """Hand the leadership over."""
        self._host.transfer(NUMBER, to, now_s)

    def change(self, membership: Membership, now_s: float) -> None:
        """Change the members."""
        self._host.change(NUMBER, membership, now_s)

    def snapshot_of(self, index: int, size_bytes: int, tag: int) -> Snapshot:
        """Name a snapshot."""
        return self.group.snapshot_of(index, size_bytes, tag)

    def compact(self, index: int) -> None:
        """Give up entries."""
        self._host.compact(NUMBER, index)

    def accept_snapshot(self, snapshot: Snapshot) -> bool:
        """Take a snapshot."""
        return self._host.accept_snapshot(NUMBER, snapshot)

    def refuse_snapshot(self, snapshot: Snapshot) -> None:
        """Refuse a snapshot."""
        self._host.refuse_snapshot(NUMBER, snapshot)

    def persisted(self, number: int, now_s: float) -> None:
        """Take note that writes are durable."""
        self._host.persisted(number, now_s)

    def ready(self) -> Ready:
        """Return what is to be done; its messages are frames."""
        taken = self._host.ready()
        for _, fault in taken.faults:
            raise fault
        ready = taken.groups[0][1] if taken.groups else Ready()
        if ready.write is not None:
            ready.write = _numbered(ready.write, taken.number)
        frames = [(to, b"".join(parts)) for to, parts in taken.frames]
        ready.messages = frames  # type: ignore[assignment]  # a carrier's, not a group's
        if taken.reports:
            ready.events = [*ready.events, *(Reported(text) for text in taken.reports)]
        return ready


def _numbered(write: Write, number: int) -> Write:
    return structs.replace(write, number=number)
