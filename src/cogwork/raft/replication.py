"""How the leader brings its members up to date (Raft §5.3, §7; dissertation §10.2).

Entries that came in one turn go out in one message to each member, ahead of the answers to those
before; members that are at the same place get the same message. The leader's own disk works at the
same time (dissertation §10.2.1). A member that has everything is told at once what is committed,
unless so much is on its way that something else is about to tell it. One that is a majority
together with the leader, as each follower among three voters, is told what is durable here: it
commits as soon as it has the same, and does not wait until its answer comes back as a commit. While
it waits for that news of entries that it has, further ones wait here to go with it, where the disk
is quick: one message then tells what would take two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.raft.entries import ENTRY_OVERHEAD_BYTES
from cogwork.raft.messages import Append, Commit, SnapshotPart
from cogwork.raft.progress import Phase

if TYPE_CHECKING:
    from cogwork.raft.core import Core
    from cogwork.raft.membership import Membership
    from cogwork.raft.messages import AppendReply, SnapshotReply
    from cogwork.raft.progress import Progress

__all__ = ("Replication",)


class Replication:
    """What goes to the members of a leader.

    Attributes:
        announced_index: So far anybody may have committed by itself.
    """

    __slots__ = ("_core", "_made", "_membership", "_progress", "_sufficing", "announced_index")

    def __init__(self, core: Core, progress: dict[str, Progress]) -> None:
        self._core = core
        self._progress = progress
        self._made: dict[tuple[int, int, int], tuple[Append, int]] = {}
        self._membership: Membership | None = None
        self._sufficing: frozenset[str] = frozenset()
        self.announced_index = 0

    def has_news(self, uncommitted_bytes: int) -> bool:
        """Return whether somebody lacks something that is not on its way.

        Args:
            uncommitted_bytes: As in `flush`.
        """
        tells = uncommitted_bytes <= self._core.settings.piggyback_bytes
        self._follow_membership()
        for member, progress in self._progress.items():
            if self._lacks(member, progress, tells=tells):
                return True
        return False

    def _lacks(self, member: str, progress: Progress, *, tells: bool) -> bool:
        durable = self._durable_for(member, progress)
        return (
            progress.next <= self._sendable(progress, durable)
            or progress.commit_sent < self._core.commit
            or progress.phase is not Phase.REPLICATE
            or (tells and progress.commit_sent < durable > progress.durable_sent)
        )

    def flush(self, uncommitted_bytes: int) -> None:
        """Send everybody what is new.

        Args:
            uncommitted_bytes: What the entries count that are on their way to be committed.
        """
        tells_commit = uncommitted_bytes <= self._core.settings.piggyback_bytes
        self._follow_membership()
        for member, progress in self._progress.items():
            self._bring(member, progress, tells_commit=tells_commit)
        self._made.clear()

    def _bring(self, member: str, progress: Progress, *, tells_commit: bool) -> None:
        core = self._core
        if progress.phase is Phase.SNAPSHOT:
            self._send_parts(member, progress)
            return
        settings = core.settings
        durable = self._durable_for(member, progress)
        if progress.phase is Phase.PROBE:
            if not progress.is_paused and progress.has_room(1, settings.window_bytes):
                self._send_entries(member, progress, core.log.last_index, durable)
            return
        last = self._sendable(progress, durable)
        while progress.next <= last and progress.phase is Phase.REPLICATE:
            if not progress.has_room(settings.window_messages, settings.window_bytes):
                return
            self._send_entries(member, progress, last, durable)
        if tells_commit and progress.phase is Phase.REPLICATE:
            self._tell(member, progress, durable)

    def _sendable(self, progress: Progress, durable: int) -> int:
        """Return up to where entries go to a member now; `durable` as of `_durable_for`.

        News of the ones before them is about to go, where these are not durable here and will be
        soon: what waits for that needs no message of its own, nor a turn of whoever takes it.
        """
        core = self._core
        sent = progress.next - 1
        has_news_coming = core.pace.is_quick and 0 < durable < sent
        return sent if has_news_coming else core.log.last_index

    def _tell(self, member: str, progress: Progress, durable: int) -> None:
        """Tell a member what is committed, or durable here, unless it knows or will by itself."""
        core = self._core
        commit = core.commit
        commit_sent = progress.commit_sent
        if commit <= commit_sent and durable <= progress.durable_sent:
            return
        known = progress.durable_sent if durable else 0
        if max(known, commit_sent) < max(durable, commit):
            core.outbox.send(member, Commit(core.term, commit, durable))
            self._announced(progress, durable)
        if commit > commit_sent:
            progress.commit_sent = commit

    def _announced(self, progress: Progress, durable: int) -> None:
        progress.durable_sent = durable
        self.announced_index = max(self.announced_index, durable)

    def _follow_membership(self) -> None:
        """Look anew who is a majority together with the leader."""
        core = self._core
        membership = core.membership
        if membership is not self._membership:
            self._membership = membership
            everyone = membership.everyone
            pairs = {each for each in everyone if membership.is_quorum((core.own, each))}
            self._sufficing = frozenset(pairs)

    def _durable_for(self, member: str, progress: Progress) -> int:
        """Return how far the log is durable here, where a member needs nobody else to count that.

        It does by the membership in its own log: 0 where it does not have the present one.
        """
        core = self._core
        if member not in self._sufficing or progress.match < core.membership_index:
            return 0
        return core.outbox.durable_index

    def _send_entries(self, member: str, progress: Progress, last: int, durable: int) -> None:
        core = self._core
        key = progress.next, last, durable
        made = self._made.get(key) or self._make(*key)
        if made is None:
            self._begin_snapshot(member, progress)
            return
        append, size_bytes = made
        last = append.prev_index + len(append.entries)
        self._announced(progress, durable)
        core.outbox.send(member, append)
        progress.sent(last, size_bytes)
        progress.sent_s = core.now_s
        if progress.phase is Phase.REPLICATE:
            progress.commit_sent = min(core.commit, last)

    def _make(self, first: int, last: int, durable: int) -> tuple[Append, int] | None:
        """Return the message with entries, of those from first to last; None: they are gone."""
        core = self._core
        log, settings = core.log, core.settings
        prev_term = log.term(first - 1)
        entries = log.between(first, last, settings.append_bytes, settings.append_entries)
        if prev_term is None or (not entries and first <= last):
            return None
        size_bytes = sum([len(entry.payload) for entry in entries])
        size_bytes += len(entries) * ENTRY_OVERHEAD_BYTES
        append = Append(core.term, first - 1, prev_term, core.commit, entries, durable)
        made = self._made[first, last, durable] = append, size_bytes
        return made

    # Answers.

    def on_reply(self, progress: Progress, reply: AppendReply) -> bool:
        """Take note of what a member has; tell whether it has more than was known."""
        if reply.rejected:
            self._on_reject(progress, reply)
            return False
        is_news = progress.accepted(reply.match)
        sending = progress.sending
        if progress.phase is Phase.PROBE or (
            sending is not None and reply.match >= sending.snapshot.index
        ):
            progress.replicate()
        return is_news

    def _on_reject(self, progress: Progress, reply: AppendReply) -> None:
        """Go back to where the logs may agree: a term at a time (Raft §5.3).

        An answer to a message that has been overtaken is passed over.
        """
        if progress.phase is Phase.REPLICATE:
            is_stale = reply.rejected <= progress.match
        else:
            is_stale = progress.phase is Phase.SNAPSHOT or reply.rejected != progress.next - 1
        if not is_stale:
            index, _ = self._core.log.agree(reply.hint_index, reply.hint_term)
            progress.probe(index + 1)

    def on_heartbeat_reply(self, member: str, progress: Progress, *, is_behind: bool) -> None:
        """Repair what the network has lost: nothing came of it between two heartbeats."""
        core = self._core
        sending = progress.sending
        if progress.phase is Phase.PROBE:
            progress.probe(progress.next)
        elif sending is not None:
            if sending.seen == sending.acked:
                progress.rewind()
            sending.seen = sending.acked
        else:
            is_stuck = progress.seen == progress.match < progress.next - 1
            progress.seen = progress.match
            if is_behind:
                progress.probe(progress.match + 1)
                return
            prev_term = core.log.term(progress.next - 1) if is_stuck else None
            if prev_term is not None:
                append = Append(core.term, progress.next - 1, prev_term, core.commit)
                core.outbox.send(member, append)

    # Snapshots.

    def _begin_snapshot(self, member: str, progress: Progress) -> None:
        snapshot = self._core.storage.snapshot()
        if snapshot is None or snapshot.index < self._core.log.compacted_index:
            progress.probe(progress.next)
            progress.is_paused = (
                True  # until the next heartbeat's answer: one may be made meanwhile
            )
            return
        progress.send_snapshot(snapshot)
        self._send_parts(member, progress)

    def _send_parts(self, member: str, progress: Progress) -> None:
        core = self._core
        sending = progress.sending
        assert sending is not None
        size_bytes = core.settings.chunk_bytes
        snapshot = sending.snapshot
        while progress.has_part_room(size_bytes, core.settings.window_chunks):
            data = core.storage.chunk(snapshot, sending.sent, size_bytes)
            if data is None:
                progress.probe(progress.next)
                return
            is_end = sending.sent == snapshot.size_bytes
            assert data or is_end, "a snapshot has as many octets as it says"
            core.outbox.send(member, SnapshotPart(core.term, snapshot, sending.sent, data))
            progress.part_sent(len(data))
            progress.sent_s = core.now_s

    def on_snapshot_reply(self, progress: Progress, reply: SnapshotReply) -> None:
        """Take note of how much of a snapshot has come; it may be less than before."""
        sending = progress.sending
        if sending is not None and reply.index == sending.snapshot.index:
            progress.part_acked(min(reply.offset, sending.snapshot.size_bytes))
