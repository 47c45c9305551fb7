"""How a console reaches its container, and how it treats browsers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from cogwork.client.connection.url import Endpoint

__all__ = ("Settings",)


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for all sessions.

    Attributes:
        endpoints: Where the container is, without a user.
        tls: What the console trusts where TLS is spoken; None for the system's authorities.
        hosts: Names that browsers may call the console by, besides addresses and `localhost`.
        is_secure: Whether browsers speak HTTPS, so that the cookie goes nowhere else.
        idle_timeout_s: After so long without a page that somebody asked for, a session ends.
        lifetime_s: After so long it ends in any case.
        sessions_max: How many there may be at once.
        clock: Tells the time, in seconds, from any beginning.
    """

    endpoints: tuple[Endpoint, ...]
    tls: ssl.SSLContext | None = None
    hosts: frozenset[str] = frozenset()
    is_secure: bool = False
    idle_timeout_s: float = 30 * 60.0
    lifetime_s: float = 12 * 3600.0
    sessions_max: int = 200
    clock: Callable[[], float] = time.monotonic
