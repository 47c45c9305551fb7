"""Who has something to send, and who waits for a time: a turn looks at these streams alone.

A thousand idle streams cost a turn nothing. One that fails when it is looked at costs the others
nothing either: what it has to append is given up, or its replica stops.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cogwork.replication.stream import settle

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.replication.member import Member
    from cogwork.replication.stream import Stream

__all__ = ("TICK_S", "ReadyQueue")

PAUSE_S = 0.01
"""How soon it is tried again to send what could not be sent."""

TICK_S = 0.05
"""How exactly the time-outs of calls are kept."""

IDLE_S = 1.0
"""The same where nobody waits for anything."""


class ReadyQueue:
    """The streams of a container that are to be looked at."""

    def __init__(self, stop: Callable[[int, Exception], None]) -> None:
        """Is empty.

        Args:
            stop: Has the replica of a group stop that fails at what it is to do.
        """
        self._stop = stop
        self._unsent: dict[Stream, None] = {}
        self._is_paused = False
        self._unanswered: dict[Stream, None] = {}
        self._awaited: dict[Member, None] = {}
        self._moving: dict[Member, None] = {}

    @property
    def pause_s(self) -> float:
        """How long there may be no turn."""
        if self._unsent and self._is_paused:
            return PAUSE_S
        return TICK_S if self._unanswered or self._awaited or self._moving else IDLE_S

    def note_unsent(self, stream: Stream) -> None:
        """Have a stream's outbox sent in the next turn, and looked after until all is answered."""
        if stream.outbox.unsent:
            self._unsent[stream] = self._unanswered[stream] = None

    def note_awaited(self, member: Member) -> None:
        """Have a replica look now and then whether the time of a read is over."""
        self._awaited[member] = None

    def note_moving(self, stream: Stream) -> None:
        """Have a stream's replica see to the group's members until they are as they are to be."""
        if stream.member is not None and not stream.placement.is_settled:
            self._moving[stream.member] = None

    def send(self, now_s: float) -> None:
        """Send what outboxes have; what has to wait is tried again.

        What waits for an answer, so as to go along with what may come until then, is sent in the
        turn of that answer: it needs no other time.
        """
        if self._unsent:
            streams, self._unsent = self._unsent, {}
            self._is_paused = False
            for stream in streams:
                try:
                    stream.send(now_s)
                except Exception as error:  # the others have something to send, too
                    stream.fail(error)
                if stream.outbox.unsent:
                    self.note_unsent(stream)
                    self._is_paused |= not stream.outbox.awaits_answer

    def tick(self, now_s: float) -> None:
        """Let time pass."""
        for stream in list(self._unanswered):
            try:
                settle(stream.outbox.tick(now_s))
            except Exception as error:  # time passes for the others
                stream.fail(error)
            self.note_unsent(stream)
            if not len(stream.outbox):
                del self._unanswered[stream]
        for member in list(self._awaited):
            self._have(member, partial(member.wake_readers, now_s))
            if not member.is_awaited:
                del self._awaited[member]
        for member in list(self._moving):
            if not self._have(member, member.moving.go_on):
                del self._moving[member]

    def _have(self, member: Member, do: Callable[[], bool | None]) -> bool | None:
        """Have a replica do something; one that fails at it stops, and do nothing more."""
        try:
            return do()
        except Exception as error:
            self._stop(member.number, error)
            return False
