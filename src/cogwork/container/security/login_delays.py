"""Growing delays for who gives wrong passwords, by source address and by name.

Theory of operation. After some failures without a success each further login from that source
waits, twice as long each time, up to a few seconds. A name that is tried from many sources makes
all wait that have not logged in by it before: so an attacker that names a user is slowed wherever
it is, and the user, from where it always comes, is not. The tables forget whoever was quiet for
longest.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

__all__ = ("WAITING_MAX", "LoginDelays")

FREE = 10
"""Failures without a delay: people mistype, and clients with an old hash try SCRAM first."""

FIRST_S = 0.1
SOURCE_LONGEST_S = 4.0
NAME_LONGEST_S = 2.0
"""Less than a peer has to log in: nobody is locked out, whoever names them."""

QUIET_S = 900.0
"""After so long without a failure all is forgiven."""

ENTRIES_MAX = 4096
"""In each table."""

WAITING_MAX = 64
"""Logins of a source that wait out a delay; further ones are refused."""


class _Failures(NamedTuple):
    times: int
    last_s: float
    until_s: float


class _Table(OrderedDict[str, _Failures]):
    """Failures by key, the oldest first."""

    def __init__(self, longest_s: float) -> None:
        super().__init__()
        self._longest_s = longest_s

    def wait_s(self, key: str, now_s: float) -> float:
        """Return how long a login has to wait."""
        known = self.get(key)
        return 0.0 if known is None else max(0.0, known.until_s - now_s)

    def fail(self, key: str, now_s: float) -> None:
        """Count a failure."""
        known = self.pop(key, None)
        is_forgiven = known is None or now_s - known.last_s > QUIET_S
        count = 1 if known is None or is_forgiven else known.times + 1
        doublings = min(count - FREE, 16)
        delay_s = min(FIRST_S * 2**doublings, self._longest_s) if doublings >= 0 else 0.0
        self[key] = _Failures(count, now_s, now_s + delay_s)
        while len(self) > ENTRIES_MAX:
            self.popitem(last=False)


class LoginDelays:
    """Those of one container."""

    def __init__(self) -> None:
        """Initialize it; it knows of no failure."""
        self._sources = _Table(SOURCE_LONGEST_S)
        self._names = _Table(NAME_LONGEST_S)
        self._good: OrderedDict[tuple[str, str], None] = OrderedDict()

    def wait_s(self, source: str, name: str, now_s: float) -> float:
        """Return how long a login has to wait before it is looked at.

        Args:
            source: Where it comes from.
            name: Who it says it is.
            now_s: By any monotonic clock.
        """
        own_s = self._sources.wait_s(source, now_s)
        if (source, name) in self._good:
            return own_s
        return max(own_s, self._names.wait_s(name, now_s))

    def fail(self, source: str, name: str, now_s: float) -> None:
        """Count a wrong password, or a name that is not known."""
        self._sources.fail(source, now_s)
        self._names.fail(name[:256], now_s)

    def succeed(self, source: str, name: str) -> None:
        """Forgive the source; the name goes on to be dear for others."""
        self._sources.pop(source, None)
        self._good[source, name] = None
        self._good.move_to_end((source, name))
        while len(self._good) > ENTRIES_MAX:
            self._good.popitem(last=False)
