"""The sessions on a connection: those that end here, and the sides of those that are passed on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.dataplane.link import Ending
from cogwork.dataplane.session import SessionEndpoint
from cogwork.dataplane.transport.relayed import RelayedSession

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.dataplane.connection import Connection

__all__ = ("Sessions",)


class Sessions:
    """The sessions on one connection, by the channel that this side sends on."""

    __slots__ = ("_by_channel", "_connection", "_passed")

    def __init__(self, connection: Connection) -> None:
        """Start with none.

        Args:
            connection: Carries them.
        """
        self._connection = connection
        self._by_channel: dict[int, SessionEndpoint | RelayedSession] = {}
        self._passed = (0, 0)

    def __iter__(self) -> Iterator[SessionEndpoint | RelayedSession]:
        """Go over them as they are now."""
        return iter(list(self._by_channel.values()))

    @property
    def here(self) -> list[SessionEndpoint]:
        """Those that end here, by no particular order."""
        return [each for each in self if isinstance(each, SessionEndpoint)]

    @property
    def relayed(self) -> list[RelayedSession]:
        """The sides of those that are passed on."""
        return [each for each in self if isinstance(each, RelayedSession)]

    @property
    def passed(self) -> tuple[int, int]:
        """Counts the messages that came in, and went out, in those that are passed on."""
        incoming, outgoing = self._passed
        for session in self.relayed:
            incoming += session.messages_in
            outgoing += session.messages_out
        return incoming, outgoing

    @property
    def free_channel(self) -> int:
        """The lowest channel that carries none."""
        channel = len(self._by_channel)
        if channel in self._by_channel:
            channel = next(free for free in range(channel + 1) if free not in self._by_channel)
        return channel

    def at(self, channel: int) -> SessionEndpoint | RelayedSession | None:
        """Return the session that this side sends on a channel."""
        return self._by_channel.get(channel)

    def make(self) -> SessionEndpoint:
        """Make one that ends here."""
        session = SessionEndpoint(self._connection, self.free_channel)
        self._by_channel[session.channel] = session
        return session

    def make_relayed(self) -> RelayedSession:
        """Make a side of one that is passed on."""
        session = RelayedSession(self._connection, self.free_channel)
        self._by_channel[session.channel] = session
        return session

    def forget(self, session: SessionEndpoint | RelayedSession) -> None:
        """Free the channel of one that both sides have ended."""
        self._keep_counts(self._by_channel.pop(session.channel, None))

    def lose(self, ending: Ending = Ending.LOST) -> None:
        """End all at once: there is no connection any more."""
        sessions = list(self)
        self._by_channel.clear()
        for session in sessions:
            self._keep_counts(session)
            if isinstance(session, SessionEndpoint):
                session.lose(ending)
            else:
                session.lose()

    def _keep_counts(self, session: SessionEndpoint | RelayedSession | None) -> None:
        if isinstance(session, RelayedSession):
            incoming, outgoing = self._passed
            self._passed = incoming + session.messages_in, outgoing + session.messages_out
