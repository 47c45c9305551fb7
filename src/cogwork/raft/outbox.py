"""What leaves a group: writes for the disk, and messages that wait for them.

Theory of operation. Writes are numbered, and become durable in order. A message must not leave
before the term and the vote that the group had when it was made are durable: a member that forgot
them in a crash could vote twice in a term (Raft §5.2, figure 2). What the member has of the log is
spoken of only as far as it is durable: `durable_index`.

A write that comes back late says nothing wrong: what was cut off the log meanwhile is cut off from
the writes under way, too. Index and term of an entry would not be enough for that: the same entry
can be cut off and come again, and the news of its first write would pass for that of its second.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from cogwork.raft.ready import HardState, Write

if TYPE_CHECKING:
    from cogwork.raft.log import Log
    from cogwork.raft.messages import Message
    from cogwork.raft.settings import Settings
    from cogwork.raft.snapshot import Snapshot

__all__ = ("Outbox",)


class Outbox:
    """Writes and messages of one group.

    Attributes:
        durable_index: So far the log is durable.
        written_index: So far the log has been handed out to be written.
        messages: That may go.
    """

    __slots__ = (
        "_durable_number",
        "_hard_number",
        "_held",
        "_held_max",
        "_hint",
        "_hint_entries",
        "_is_hard_new",
        "_last_number",
        "_snapshot",
        "_under_way",
        "durable_index",
        "messages",
        "written_index",
    )

    def __init__(self, durable_index: int, settings: Settings, hint: int = 0) -> None:
        """Start with nothing to write.

        Args:
            durable_index: So far the log is durable.
            settings: How many messages may wait, and how far the written commit index may lag.
            hint: The commit index that was written last.
        """
        self.durable_index = self.written_index = durable_index
        self.messages: list[tuple[str, Message]] = []
        self._held: deque[tuple[int, str, Message]] = deque()
        self._held_max = settings.held_messages
        self._hint = hint
        self._hint_entries = settings.hint_entries
        self._under_way: deque[tuple[int, int]] = deque()
        self._last_number = 0
        self._durable_number = 0
        self._hard_number = 0
        self._is_hard_new = False
        self._snapshot: Snapshot | None = None

    @property
    def is_hard_durable(self) -> bool:
        """Whether the present term and vote are durable."""
        return self._hard_number <= self._durable_number

    def has_news(self, last_index: int) -> bool:
        """Return whether there is something to write or to send."""
        return (
            last_index != self.written_index
            or self._is_hard_new
            or self._snapshot is not None
            or bool(self.messages)
        )

    def harden(self) -> None:
        """Note that term or vote have changed: the next write has them."""
        self._is_hard_new = True
        self._hard_number = self._last_number + 1

    def send(self, to: str, message: Message) -> None:
        """Send a message as soon as term and vote are durable."""
        if self._hard_number <= self._durable_number:
            self.messages.append((to, message))
        elif len(self._held) < self._held_max:
            self._held.append((self._hard_number, to, message))

    def cut(self, index: int) -> None:
        """Note that the log was cut off from an index on."""
        last = index - 1
        self.durable_index = min(self.durable_index, last)
        self.written_index = min(self.written_index, last)
        self._under_way = deque((number, min(upto, last)) for number, upto in self._under_way)

    def restart(self, snapshot: Snapshot) -> None:
        """Note that the log is void and begins after a snapshot: the next write has that."""
        self.cut(1)
        self._snapshot = snapshot
        self.written_index = snapshot.index

    def take_write(self, log: Log, term: int, vote: str | None, commit: int) -> Write | None:
        """Return what is to be written since the last time.

        Term and vote are there where they are new. `commit` is a hint: it is written with them, and
        where it has grown by much. A write may tear behind its hard state: `commit` must not speak
        of entries that come after it, as those that they replace would then pass for committed.
        """
        last = log.last_index
        if last == self.written_index and not self._is_hard_new and self._snapshot is None:
            return None
        entries = log.tail(self.written_index + 1) if last > self.written_index else ()
        self._last_number += 1
        commit = min(commit, self.durable_index)
        hard_state = None
        if self._is_hard_new or commit >= self._hint + self._hint_entries:
            hard_state = HardState(term, vote, commit)
            self._hint = commit
        write = Write(self._last_number, hard_state, self._snapshot, entries)
        self._under_way.append((self._last_number, last))
        self.written_index = last
        self._is_hard_new = False
        self._snapshot = None
        return write

    def persisted(self, number: int) -> None:
        """Note that all writes up to one are durable, and lets go what waited for them."""
        assert number <= self._last_number, "there was no such write"
        self._durable_number = max(self._durable_number, number)
        while self._under_way and self._under_way[0][0] <= number:
            self.durable_index = max(self.durable_index, self._under_way.popleft()[1])
        while self._held and self._held[0][0] <= self._durable_number:
            _, to, message = self._held.popleft()
            self.messages.append((to, message))

    def take_messages(self) -> list[tuple[str, Message]]:
        """Return what may go, and forget it."""
        taken, self.messages = self.messages, []
        return taken
