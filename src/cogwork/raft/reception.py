"""What a message of another member does: terms are compared, then whom it concerns gets it.

Votes are for whoever holds elections, in any term. All else is of the present term, of a later one,
which the member then enters, or of none that counts any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.raft.errors import Violation
from cogwork.raft.messages import (
    Append,
    AppendReply,
    Commit,
    Heartbeat,
    HeartbeatReply,
    ReadIndex,
    ReadIndexReply,
    SnapshotPart,
    SnapshotReply,
    TimeoutNow,
    Vote,
    VoteReply,
)
from cogwork.raft.roles import Cause, Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.raft.core import Core
    from cogwork.raft.elections import Elections
    from cogwork.raft.following import Following
    from cogwork.raft.messages import Message
    from cogwork.raft.reads import FollowerReads

__all__ = ("Reception",)

_OF_LEADERS = frozenset({Append, Heartbeat, Commit, SnapshotPart, TimeoutNow, ReadIndexReply})


class Reception:
    """Takes the messages to one member of one group."""

    __slots__ = ("_core", "_elections", "_following", "_reads")

    def __init__(
        self, core: Core, following: Following, elections: Elections, reads: FollowerReads
    ) -> None:
        self._core = core
        self._following = following
        self._elections = elections
        self._reads = reads

    def take(self, sender: str, message: Message) -> None:
        """Take a message.

        Raises:
            Violation: It is what no member ever sends; it is passed over.
        """
        kind = type(message)
        if kind is Vote:
            assert isinstance(message, Vote)
            if self._core.leadership is not None:
                self._core.leadership.on_vote(sender)
            self._elections.on_vote(sender, message)
        elif kind is VoteReply:
            assert isinstance(message, VoteReply)
            self._elections.on_reply(sender, message)
        elif self._admits(sender, message):
            self._HANDLERS[kind](self, sender, message)

    def _admits(self, sender: str, message: Message) -> bool:
        """Compare terms (Raft §5.1): tell whether a message is of the present one."""
        core = self._core
        is_leader = type(message) in _OF_LEADERS
        if message.term < core.term:
            if is_leader and type(message) is not ReadIndexReply:
                # So a leader of an old term learns that it is none, where candidates are not
                # listened to by those that hear it.
                core.outbox.send(sender, AppendReply(core.term, 0))
            return False
        if message.term > core.term:
            core.enter_term(message.term)
            core.become(Cause.HIGHER_TERM)
        if is_leader:
            if core.role is Role.LEADER:
                raise Violation(f"{sender} leads in term {core.term}, which is ours")
            if core.role is not Role.FOLLOWER:
                core.become(Cause.LEADER_HEARD)
            self._following.hear(sender)
        elif core.leadership is not None and core.is_quiescent and _is_news(message):
            core.leadership.wake()
        return True

    def _on_append(self, sender: str, append: Append) -> None:
        self._following.on_append(sender, append)

    def _on_commit(self, _sender: str, commit: Commit) -> None:
        self._following.on_commit(commit)

    def _on_heartbeat(self, sender: str, heartbeat: Heartbeat) -> None:
        self._following.on_heartbeat(sender, heartbeat)

    def _on_part(self, sender: str, part: SnapshotPart) -> None:
        self._following.on_part(sender, part)

    def _on_timeout_now(self, _sender: str, _message: TimeoutNow) -> None:
        if self._core.is_voter and self._core.pace.may_lead:
            self._elections.campaign(is_transfer=True)

    def _on_read_index_reply(self, sender: str, reply: ReadIndexReply) -> None:
        self._reads.on_reply(sender, reply)

    def _on_append_reply(self, sender: str, reply: AppendReply) -> None:
        if self._core.leadership is not None:
            self._core.leadership.on_append_reply(sender, reply)

    def _on_heartbeat_reply(self, sender: str, reply: HeartbeatReply) -> None:
        if self._core.leadership is not None:
            self._core.leadership.on_heartbeat_reply(sender, reply)

    def _on_snapshot_reply(self, sender: str, reply: SnapshotReply) -> None:
        if self._core.leadership is not None:
            self._core.leadership.on_snapshot_reply(sender, reply)

    def _on_read_index(self, sender: str, read: ReadIndex) -> None:
        if self._core.leadership is not None:
            self._core.leadership.on_read_index(sender, read)

    _HANDLERS: dict[type[Message], Callable[..., None]] = {  # noqa: RUF012  # a table
        Append: _on_append,
        AppendReply: _on_append_reply,
        Commit: _on_commit,
        Heartbeat: _on_heartbeat,
        HeartbeatReply: _on_heartbeat_reply,
        ReadIndex: _on_read_index,
        ReadIndexReply: _on_read_index_reply,
        SnapshotPart: _on_part,
        SnapshotReply: _on_snapshot_reply,
        TimeoutNow: _on_timeout_now,
    }


def _is_news(message: Message) -> bool:
    """Return whether an answer says that something is missing: others are late, and wake nobody."""
    if isinstance(message, HeartbeatReply):
        return message.is_behind
    return not isinstance(message, AppendReply) or message.rejected > 0
