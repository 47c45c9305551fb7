"""What the leader knows of one member's log, and what is on the way to it.

Three phases. *Probe*: where the logs agree is not known; one message at a time. *Replicate*:
entries go out as they come, ahead of the answers, within a window of messages and octets.
*Snapshot*: the member lacks entries that are compacted, and gets a snapshot in parts.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cogwork.raft.budget import Share
    from cogwork.raft.snapshot import Snapshot

__all__ = ("Phase", "Progress", "Sending")


class Phase(Enum):
    """How a member is brought up to date."""

    PROBE = "probe"
    REPLICATE = "replicate"
    SNAPSHOT = "snapshot"


class Sending:
    """A snapshot on its way to a member.

    Attributes:
        snapshot: Which.
        acked: So many octets have come.
        sent: So many are sent.
        seen: `acked` at the last heartbeat's answer: parts are lost where it has not grown since.
        has_begun: Whether a part has been sent.
    """

    __slots__ = ("acked", "has_begun", "seen", "sent", "snapshot")

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.acked = 0
        self.sent = 0
        self.seen = -1
        self.has_begun = False

    @property
    def is_sent(self) -> bool:
        """Whether there is nothing more to send; an empty content takes one message, too."""
        return self.has_begun and self.sent >= self.snapshot.size_bytes


class Progress:
    """One member, as the leader sees it.

    Attributes:
        phase: How it is brought up to date.
        match: So far its log is known to be durable and the leader's.
        next: The index of the entry that is sent next.
        commit_sent: The commit index that it was told last, or knows by itself.
        durable_sent: So far it was told that the leader's own log is durable.
        is_paused: A probe is on the way.
        sending: The snapshot on its way; None in other phases.
        heard_s: When the last answer came.
        sent_s: When the last entries or heartbeat were sent.
        beat_s: When the last heartbeat was sent.
        round: The latest round of heartbeats that it has answered.
        seen: `match` at the last heartbeat's answer.
    """

    __slots__ = (
        "_share",
        "_window",
        "_window_bytes",
        "beat_s",
        "commit_sent",
        "durable_sent",
        "heard_s",
        "is_paused",
        "match",
        "next",
        "phase",
        "round",
        "seen",
        "sending",
        "sent_s",
    )

    def __init__(self, next_index: int, share: Share, now_s: float) -> None:
        self.phase = Phase.PROBE
        self.match = 0
        self.next = next_index
        self.commit_sent = self.durable_sent = 0
        self.is_paused = False
        self.sending: Sending | None = None
        self.heard_s = now_s
        self.sent_s = self.beat_s = now_s
        self.round = 0
        self.seen = -1
        self._share = share
        self._window: deque[tuple[int, int]] = deque()
        self._window_bytes = 0

    def has_room(self, messages: int, size_bytes: int) -> bool:
        """Return whether the window takes one more message; an empty one takes any."""
        if len(self._window) >= messages or self._window_bytes >= size_bytes:
            return False
        return self._share.has_room()

    def sent(self, last_index: int, size_bytes: int) -> None:
        """Note that entries up to an index are on the way; a probe may have to go again."""
        if self.phase is Phase.PROBE:
            self.is_paused = True
        else:
            self.next = last_index + 1
        self._window.append((last_index, size_bytes))
        self._window_bytes += size_bytes
        self._share.take(size_bytes)

    def accepted(self, match: int) -> bool:
        """Take note that the member has the entries up to an index; tell whether that is new.

        Whatever is on the way up to `match` is not waited for, though its own answer be lost: with
        it a window of one message would stay full for ever, and nobody sees that something is
        missing.
        """
        self.is_paused = False
        is_news = match > self.match
        if is_news:
            self.match = match
            self.next = max(self.next, match + 1)
        while self._window and self._window[0][0] <= self.match:
            self._free(self._window.popleft()[1])
        return is_news

    def probe(self, next_index: int) -> None:
        """Begin to look where the logs agree."""
        self._leave(Phase.PROBE)
        self.next = max(self.match + 1, next_index)
        self.commit_sent = self.durable_sent = 0

    def forget(self, next_index: int) -> None:
        """Rely on nothing that the member was known to have."""
        self.match = 0
        self.probe(next_index)

    def replicate(self) -> None:
        """Begin to send entries as they come, behind those that a probe has on the way."""
        if self.phase is Phase.SNAPSHOT:
            self._leave(Phase.REPLICATE)
        self.phase = Phase.REPLICATE
        self.is_paused = False
        self.next = max(self.match, self._window[-1][0] if self._window else 0) + 1

    def send_snapshot(self, snapshot: Snapshot) -> None:
        """Begin to send a snapshot."""
        self._leave(Phase.SNAPSHOT)
        self.sending = Sending(snapshot)

    def has_part_room(self, size_bytes: int, parts: int) -> bool:
        """Return whether one more part of the snapshot may go."""
        sending = self.sending
        if sending is None or sending.is_sent or sending.sent - sending.acked >= size_bytes * parts:
            return False
        return self._share.has_room()

    def part_sent(self, size_bytes: int) -> None:
        """Note that a part is on the way."""
        assert self.sending is not None
        self.sending.has_begun = True
        self.sending.sent += size_bytes
        self._share.take(size_bytes)

    def part_acked(self, offset: int) -> None:
        """Note that parts have come, up to an offset; the rest goes from there on."""
        sending = self.sending
        assert sending is not None
        is_new = sending.acked < offset <= sending.sent
        if is_new:
            self._share.give(offset - sending.acked)
            sending.acked = offset
        elif offset > sending.sent or (not offset and sending.acked):
            self._share.give(sending.sent - sending.acked)
            sending.acked = sending.sent = offset
            sending.has_begun = offset > 0

    def rewind(self) -> None:
        """Send again what has not come; where all has, asks once more whether it is installed."""
        sending = self.sending
        assert sending is not None
        self._share.give(sending.sent - sending.acked)
        sending.sent = sending.acked
        sending.has_begun = False

    def release(self) -> None:
        """Give back what it holds, at the end."""
        self._leave(Phase.PROBE)

    def _leave(self, phase: Phase) -> None:
        self.phase = phase
        self.is_paused = False
        self.seen = -1
        if self.sending is not None:
            self.rewind()
            self.sending = None
        self._window.clear()
        self._free(self._window_bytes)

    def _free(self, size_bytes: int) -> None:
        self._window_bytes -= size_bytes
        self._share.give(size_bytes)
