"""The browser sessions of a console: logging in, finding one by its cookie, ending it in time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from cogwork.client import connect
from cogwork.console.session import Session

if TYPE_CHECKING:
    from cogwork.console.settings import Settings

__all__ = ("Sessions", "TooManySessions")

LOGINS_MAX = 8
"""At once: each is a connection that a stranger asks for."""

CONNECT_TIMEOUT_S = 5.0
SWEEP_S = 10.0


class TooManySessions(Exception):
    """The console has as many sessions as it may have."""


class Sessions:
    """All sessions of one console."""

    def __init__(self, settings: Settings) -> None:
        """Start with none.

        Args:
            settings: Where the container is, and how long sessions last.
        """
        self._settings = settings
        self._sessions: dict[str, Session] = {}
        self._logins = asyncio.Semaphore(LOGINS_MAX)

    def __len__(self) -> int:
        return len(self._sessions)

    async def log_in(self, user: str, password: str, vhost: str) -> Session:
        """Connect as a user, and begin a session.

        Args:
            user: Who; empty for nobody.
            password: The user's.
            vhost: The virtual host; empty takes that of the console's URL.

        Raises:
            AuthenticationError: The container does not know the user so.
            ConnectError: The container cannot be reached, or refuses.
            TooManySessions: There are as many as there may be.
        """
        settings = self._settings
        places = [
            replace(each, user=user or None, password=password, vhost=vhost or each.vhost)
            for each in settings.endpoints
        ]
        async with self._logins:
            if len(self._sessions) >= settings.sessions_max:
                raise TooManySessions(f"there are {settings.sessions_max} sessions already")
            client = connect(
                places, tls=settings.tls, force=True, connect_timeout_s=CONNECT_TIMEOUT_S
            )
            await client.__aenter__()
            session = Session(client, user, settings.clock)
            self._sessions[session.token] = session
            return session

    def find(self, token: str, *, is_asked_for: bool) -> Session | None:
        """Return a session that has not ended.

        Args:
            token: What the cookie holds.
            is_asked_for: Whether somebody asked for a page; what a page fetches by itself does not
                keep a session from ending.
        """
        session = self._sessions.get(token)
        if session is None or self._is_over(session):
            return None
        if is_asked_for:
            session.used_s = self._settings.clock()
        return session

    def _is_over(self, session: Session) -> bool:
        now_s = self._settings.clock()
        return (
            now_s - session.used_s > self._settings.idle_timeout_s
            or now_s - session.began_s > self._settings.lifetime_s
        )

    async def end(self, session: Session) -> None:
        """End a session and close its connection."""
        self._sessions.pop(session.token, None)
        await session.close()

    async def sweep(self) -> None:
        """End the sessions that are over."""
        for session in [each for each in self._sessions.values() if self._is_over(each)]:
            await self.end(session)

    async def keep_swept(self) -> None:
        """Sweep until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_S)
            await self.sweep()

    async def close(self) -> None:
        """End all of them."""
        await asyncio.gather(*map(self.end, list(self._sessions.values())))
