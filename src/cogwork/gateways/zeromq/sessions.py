"""All sessions: made, found, and ended when their lease is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.gateways.zeromq.errors import Code, Fault
from cogwork.gateways.zeromq.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cogwork.gateways.zeromq.account import Account
    from cogwork.gateways.zeromq.codec import Codec

__all__ = ("Sessions",)

ID_BYTES = 16
"""Random, so that nobody guesses another one's."""

LEASE_S_LEAST = 1.0
"""Looked at ten times in that time."""


class Sessions:
    """The sessions of a gateway, and their leases."""

    def __init__(self, token: Callable[[int], bytes], lease_s: float, most: int) -> None:
        """Start with none.

        Args:
            token: Makes secrets.
            lease_s: The longest lease, and what one is that asks for none.
            most: How many there may be at once.
        """
        self._token = token
        self._lease_s = lease_s
        self._most = most
        self._known: dict[bytes, Session] = {}
        self._due: dict[int, set[bytes]] = {}
        self._looked_at = -1
        self._slow: set[Session] = set()
        self.begun = 0
        self.dropped = 0
        self.expired = 0

    def __len__(self) -> int:
        """Count them."""
        return len(self._known)

    def __iter__(self) -> Iterator[Session]:
        """Go through them."""
        return iter(list(self._known.values()))

    def begin(
        self, account: Account, codec: Codec, *, lease_s: float | None, name: str, now_s: float
    ) -> Session:
        """Make a session.

        Raises:
            Fault: There are too many.
        """
        if len(self._known) >= self._most:
            raise Fault(Code.BUSY, f"{self._most} sessions are open, which is the limit")
        lease_s = max(min(lease_s or self._lease_s, self._lease_s), LEASE_S_LEAST)
        session_id = self._token(ID_BYTES).hex().encode()
        session = Session(session_id, account, codec, lease_s=lease_s, name=name, slow=self._slow)
        session.heard_s = now_s
        self._known[session.id] = session
        self._watch(session)
        self.begun += 1
        return session

    def find(self, session_id: bytes, account: Account) -> Session:
        """Find a session.

        Raises:
            Fault: The user has none of this id, or has none any more.
        """
        session = self._known.get(session_id)
        if session is None or session.account is not account:
            raise Fault(
                Code.UNKNOWN_SESSION, "no such session, or its lease is over: say HELLO first"
            )
        return session

    def end(self, session: Session) -> None:
        """End a session."""
        self._known.pop(session.id, None)
        self._slow.discard(session)
        self.dropped += session.dropped
        session.end()

    @property
    def outstanding(self) -> int:
        """Counts deliveries that clients have and have not answered."""
        return sum(
            registration.outstanding
            for session in self._known.values()
            for registration in session.registrations.values()
        )

    def tick(self, now_s: float) -> None:
        """Try again with slow clients, and end those whose lease is over."""
        for session in list(self._slow):
            session.send_waiting()
        now = int(now_s)
        if now == self._looked_at:
            return
        self._looked_at = now
        for second in [each for each in self._due if each < now]:
            for session_id in self._due.pop(second):
                self._look_at(session_id, now_s)

    def _look_at(self, session_id: bytes, now_s: float) -> None:
        session = self._known.get(session_id)
        if session is None:
            return
        if now_s - session.heard_s < session.lease_s:
            self._watch(session)
            return
        self.expired += 1
        self.end(session)

    def _watch(self, session: Session) -> None:
        second = int(session.heard_s + session.lease_s)
        self._due.setdefault(second, set()).add(session.id)
