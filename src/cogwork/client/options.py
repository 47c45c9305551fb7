"""How a client connects, and how it tries again."""

from __future__ import annotations

import os
import platform
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

__all__ = ("Mechanism", "Options", "Retry")

Mechanism = Literal["ANONYMOUS", "PLAIN", "EXTERNAL"]


@dataclass(frozen=True, slots=True)
class Retry:
    """How long to wait between attempts to connect again.

    Attributes:
        first_s: The wait after the first attempt that failed, in seconds.
        factor: How much longer each further wait is.
        longest_s: What no wait exceeds.
        jitter: By which share a wait is made shorter at random, so that the clients of a container
            that was restarted do not all come at once.
        give_up_after_s: How long to go on; None for ever.
    """

    first_s: float = 0.05
    factor: float = 2.0
    longest_s: float = 5.0
    jitter: float = 0.5
    give_up_after_s: float | None = None

    def waits_s(self, random: Callable[[], float]) -> Iterator[float]:
        """Yields the waits, without end.

        Args:
            random: Returns numbers from 0 to 1.
        """
        wait_s = self.first_s
        while True:
            yield wait_s * (1 - self.jitter * random())
            wait_s = min(wait_s * self.factor, self.longest_s)


def _own_name() -> str:
    return f"{platform.node() or 'client'}-{os.getpid()}-{secrets.token_hex(3)}"


@dataclass(frozen=True, slots=True)
class Options:
    """What `connect` takes besides URLs.

    Attributes:
        name: The container-id of this client; must be its own.
        hostname: What the open names as the host that is wanted; None: as the URL says.
        tls: Certificates for `amqps` and `wss`; None trusts the system's authorities.
        sasl: The mechanism to use; None chooses one that suits.
        retry: How to connect again.
        force: Whether to be connected where the URLs say and nowhere else.
        connect_timeout_s: How long one host may take to answer.
        idle_timeout_s: Silence of the container after which the connection counts as lost.
        max_frame_size_bytes: The largest frame the container may send.
        on_attempt_failed: Called whenever none of the hosts took a connection that was lost.
    """

    name: str = field(default_factory=_own_name)
    hostname: str | None = None
    tls: ssl.SSLContext | None = None
    sasl: Mechanism | None = None
    retry: Retry = field(default_factory=Retry)
    force: bool = False
    connect_timeout_s: float = 10.0
    idle_timeout_s: float = 60.0
    max_frame_size_bytes: int = 65536
    on_attempt_failed: Callable[[Exception], object] | None = None
