"""What a follower does with what its leader sends (Raft §5.3, §7).

Nothing is cut off the log but what differs from the leader's, and nothing that is committed. The
leader is answered when what it sent is durable, and at once where there was nothing to write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.raft.errors import Violation
from cogwork.raft.messages import (
    AppendReply,
    HeartbeatReply,
    SnapshotReply,
)
from cogwork.raft.snapshot import Chunk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.raft.core import Core
    from cogwork.raft.entries import Entry
    from cogwork.raft.messages import Append, Commit, Heartbeat, SnapshotPart
    from cogwork.raft.snapshot import Snapshot

__all__ = ("Following",)


class Following:
    """A follower of one leader after the other."""

    __slots__ = (
        "_acked",
        "_arriving",
        "_came",
        "_core",
        "_is_asked",
        "_leader_durable",
        "_matched",
        "_term",
    )

    def __init__(self, core: Core) -> None:
        self._core = core
        self._term = core.term
        self._matched = core.commit
        self._acked = 0
        self._leader_durable = 0
        self._is_asked = False
        self._arriving: Snapshot | None = None
        self._came = 0

    def hear(self, leader: str) -> None:
        """Take note that the leader of this term is there."""
        core = self._core
        if self._term != core.term:
            self._term = core.term
            self._matched = self._acked = core.commit
            self._leader_durable = 0
            self._is_asked = False
            core.draw_timeout()
        if core.leader != leader:
            if core.leader is not None:
                raise Violation(f"{leader} and {core.leader} both lead in term {core.term}")
            core.set_leader(leader)
        core.heard_s = core.now_s
        core.is_quiescent = False

    def on_append(self, leader: str, append: Append) -> None:
        """Take entries, where the one before them is the same here as there."""
        core = self._core
        prev, entries = append.prev_index, append.entries
        if prev < core.commit:
            prev, entries = self._past_commit(append)
        elif core.log.term(prev) != append.prev_term:
            index, term = core.log.agree(prev, append.prev_term)
            core.outbox.send(leader, AppendReply(core.term, 0, prev, index, term))
            return
        if entries and not self._take(entries):
            return
        self._matched = max(self._matched, prev + len(entries))
        self._leader_durable = max(self._leader_durable, append.durable)
        self._commit(append.commit)
        if self._matched <= core.outbox.durable_index:
            self._is_asked = True
            self.count()

    def _past_commit(self, append: Append) -> tuple[int, Sequence[Entry]]:
        """Cut off what is committed here already: it is the same everywhere (Raft §5.4.3)."""
        core = self._core
        known = core.commit - append.prev_index
        if known <= len(append.entries):
            last = append.entries[known - 1]
            if last.term != core.log.term(core.commit):
                raise Violation(f"the leader has another entry {last.index} than was committed")
        return core.commit, append.entries[known:]

    def _take(self, entries: Sequence[Entry]) -> bool:
        """Append what is not in the log yet; tell whether it could."""
        core = self._core
        log = core.log
        new = 0
        while new < len(entries) and log.term(entries[new].index) == entries[new].term:
            new += 1
        if new == len(entries):
            return True
        if self._is_disk_behind():
            return False
        core.replace(entries[new:] if new else entries)
        return True

    def _is_disk_behind(self) -> bool:
        core = self._core
        log = core.log
        waiting = log.last_index - core.outbox.durable_index
        if not waiting or log.size_bytes <= core.settings.unpersisted_bytes:
            return False
        entries = log.tail(max(core.outbox.durable_index, log.base_index) + 1)
        return sum(entry.size_bytes for entry in entries) > core.settings.unpersisted_bytes

    def on_commit(self, commit: Commit) -> None:
        """Go as far as the leader has committed, and the log is known to be the leader's."""
        self._commit(commit.commit)
        self._leader_durable = max(self._leader_durable, commit.durable)
        self.count()

    def on_heartbeat(self, leader: str, heartbeat: Heartbeat) -> None:
        """Answer; falls asleep with the group, where nothing is missing here."""
        core = self._core
        self._commit(heartbeat.commit)
        if heartbeat.is_quiescing and self._is_complete(heartbeat.commit):
            core.is_quiescent = True
            return
        is_behind = heartbeat.is_quiescing or core.commit < heartbeat.commit
        core.outbox.send(leader, HeartbeatReply(core.term, heartbeat.round, is_behind))

    def _is_complete(self, commit: int) -> bool:
        core = self._core
        marks = (core.commit, core.applied, core.outbox.durable_index, core.log.last_index)
        return all(mark == commit for mark in marks)

    def _commit(self, index: int) -> None:
        core = self._core
        index = min(index, self._matched)
        if index > core.commit:
            core.commit_to(index)

    def count(self) -> None:
        """Commit what is durable here and at the leader, where these two are a majority.

        What the leader counts, its members may: an entry of its term that a majority has durable is
        in the log of every later leader (Raft §5.4.3). The membership must be the leader's, too: it
        stands before such an entry, or behind it, where nothing is of an earlier term, so that the
        leader has written it; one that came since is of no concern, as the entry comes before it.
        """
        core = self._core
        index = min(self._leader_durable, self._matched, core.outbox.durable_index)
        if index <= core.commit or core.leader is None or self._term != core.term:
            return
        suffices = core.membership.is_quorum((core.own, core.leader))
        if suffices and core.log.term(index) == core.term:
            core.commit_to(index)

    # Snapshots.

    def on_part(self, leader: str, part: SnapshotPart) -> None:
        """Take a part of a snapshot, in order; answer what is to come next."""
        core = self._core
        snapshot = part.snapshot
        if self._has(snapshot):
            self._matched = max(self._matched, snapshot.index)
            self._commit(snapshot.index)
            self._is_asked = True
            return
        if snapshot != self._arriving:
            self._arriving, self._came = snapshot, 0
            core.received = None
        if part.offset == self._came and (part.data or not snapshot.size_bytes):
            self._keep(part)
        core.outbox.send(leader, SnapshotReply(core.term, snapshot.index, self._came))

    def _keep(self, part: SnapshotPart) -> None:
        snapshot = part.snapshot
        end = part.offset + len(part.data)
        if end > snapshot.size_bytes:
            raise Violation("a snapshot's part ends behind the snapshot")
        core = self._core
        core.chunks.append(Chunk(snapshot, part.offset, part.data))
        self._came = end
        if end == snapshot.size_bytes:
            core.received = snapshot

    def accept(self, snapshot: Snapshot) -> bool:
        """Begin anew after a snapshot; one that has been overtaken changes nothing."""
        core = self._core
        if snapshot != self._arriving or self._has(snapshot):
            return False
        self._arriving, self._came = None, 0
        core.install(snapshot)
        self._matched = snapshot.index
        return True

    def _has(self, snapshot: Snapshot) -> bool:
        """Return whether the log already has what a snapshot replaces, so that it stays."""
        core = self._core
        return snapshot.index <= core.commit or core.log.term(snapshot.index) == snapshot.term

    def refuse(self, snapshot: Snapshot) -> None:
        """Let a snapshot come once more from its beginning."""
        if snapshot == self._arriving:
            self._arriving, self._came = None, 0
            if self._core.leader is not None:
                reply = SnapshotReply(self._core.term, snapshot.index, 0)
                self._core.outbox.send(self._core.leader, reply)

    # Answers.

    @property
    def has_news(self) -> bool:
        """Whether there is something to tell the leader."""
        core = self._core
        match = min(self._matched, core.outbox.durable_index)
        return self._is_asked or match > self._acked

    def flush(self) -> None:
        """Tell the leader how far this log is durable and the same as its own."""
        core = self._core
        if core.leader is None or self._term != core.term:
            return
        match = min(self._matched, core.outbox.durable_index)
        if self._is_asked or match > self._acked:
            self._is_asked = False
            self._acked = match
            core.outbox.send(core.leader, AppendReply(core.term, match))
