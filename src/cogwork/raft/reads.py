"""Reads that are current without a place in the log (dissertation §6.4).

The leader notes how far anybody may have committed, hears from a majority that it still led after
that, has committed as much itself, and then answers. Reads that come meanwhile share the next round
of heartbeats. A follower asks the leader for the index, waits until it has applied that, and
answers from its own state.
"""

from __future__ import annotations

from collections import deque
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from cogwork.plugin.engine.errors import Busy, NotLeader
from cogwork.raft.messages import ReadIndex, ReadIndexReply
from cogwork.raft.ready import ReadFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.raft.core import Core

__all__ = ("FollowerReads", "LeaderReads")


class _Waiting(NamedTuple):
    round: int
    current: int
    asker: str
    token: object


class LeaderReads:
    """Reads that wait for a majority.

    Attributes:
        round: The latest round of heartbeats.
    """

    __slots__ = ("_core", "_new", "_waiting", "round")

    def __init__(self, core: Core) -> None:
        self._core = core
        self.round = 0
        self._new: list[tuple[str, object]] = []
        self._waiting: deque[_Waiting] = deque()

    @property
    def is_empty(self) -> bool:
        """Whether nobody waits."""
        return not self._new and not self._waiting

    def ask(self, asker: str, token: object) -> None:
        """Take a read of this member, or of another one."""
        core = self._core
        if len(self._new) + len(self._waiting) + len(core.reads) >= core.settings.reads:
            if asker == core.own:
                raise Busy(f"{core.settings.reads} reads wait")
            return
        self._new.append((asker, token))

    def begin_round(self, current: int) -> bool:
        """Give new reads their index; tell whether there are any, and heartbeats are needed.

        Args:
            current: So far anybody may have committed. The caller has committed an entry of its own
                term: before that it may not know.
        """
        if not self._new:
            return False
        self.round += 1
        self._waiting.extend(_Waiting(self.round, current, *read) for read in self._new)
        self._new.clear()
        return True

    def answer(self, round_of: Callable[[str], int]) -> None:
        """Answer the reads of all rounds that a majority has answered, once all is committed."""
        core = self._core
        if not self._waiting:
            return
        done = core.membership.quorum_index(round_of)
        while self._waiting:
            number, current, asker, token = self._waiting[0]
            if number > done or current > core.commit:
                break
            self._waiting.popleft()
            if asker == core.own:
                core.reads.append((current, token))
            else:
                assert isinstance(token, int)
                core.outbox.send(asker, ReadIndexReply(core.term, token, current))

    def end(self) -> None:
        """Fail what this member has asked itself."""
        core = self._core
        own = [token for asker, token in self._new if asker == core.own]
        own += [each.token for each in self._waiting if each.asker == core.own]
        core.events.extend(ReadFailed(token) for token in own)


class FollowerReads:
    """Reads that wait for the leader's index.

    Attributes:
        waiting: Token, the leader that was asked, and when the read is given up, by number.
    """

    __slots__ = ("_core", "_last", "waiting")

    def __init__(self, core: Core) -> None:
        self._core = core
        # An answer that was asked for in an earlier life must not pass for one of this.
        self._last = core.random.getrandbits(48)
        self.waiting: dict[int, tuple[object, str, float]] = {}

    @property
    def wake_s(self) -> float:
        """When the oldest one is given up."""
        return next(iter(self.waiting.values()))[2] if self.waiting else inf

    def ask(self, token: object) -> None:
        """Ask the leader."""
        core = self._core
        if core.leader is None:
            raise NotLeader
        if len(self.waiting) + len(core.reads) >= core.settings.reads:
            raise Busy(f"{core.settings.reads} reads wait")
        self._last += 1
        self.waiting[self._last] = (token, core.leader, core.now_s + core.election_s)
        core.outbox.send(core.leader, ReadIndex(core.term, self._last))

    def on_reply(self, leader: str, reply: ReadIndexReply) -> None:
        """Take the leader's index."""
        found = self.waiting.get(reply.number)
        if found is not None and found[1] == leader:
            del self.waiting[reply.number]
            self._core.reads.append((reply.index, found[0]))

    def expire(self) -> None:
        """Fail what nobody has answered in time, or what was asked of a leader that has gone."""
        core = self._core
        gone = [
            number
            for number, (_, leader, until_s) in self.waiting.items()
            if leader != core.leader or core.now_s >= until_s
        ]
        for number in gone:
            core.events.append(ReadFailed(self.waiting.pop(number)[0]))
