"""How a client connects, and how it tries again."""

from __future__ import annotations

import os
import platform
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, get_args

from cogwork.client.call_options import RpcOptions
from cogwork.client.checks import demand_seconds
from cogwork.client.connection.retry import Retry
from cogwork.client.connection.tokens import is_token
from cogwork.dataplane.connection_settings import IDLE_TIMEOUT_S_MAX
from cogwork.sasl.mechanisms import MechanismName

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from cogwork.client.call_options import Direct
    from cogwork.client.connection.tokens import Token

__all__ = ("Options", "Retry")


def _own_name() -> str:
    return f"{platform.node() or 'client'}-{os.getpid()}-{secrets.token_hex(3)}"


@dataclass(frozen=True, slots=True)
class Options:
    """What `connect` takes besides URLs.

    Attributes:
        name: The container-id of this client; must be its own.
        hostname: What the open names as the host that is wanted; None: as the URL says.
        tls: Certificates for `amqps` and `wss`; None trusts the system's authorities.
        token: What to log in by, or what returns it for each connection; None without.
        sasl: The mechanism to use, or those that may be; None chooses the strongest that suits.
        retry: How to connect again.
        force: Whether to be connected where the URLs say and nowhere else.
        connect_timeout_s: How long one host may take to answer.
        idle_timeout_s: Silence of the container after which the connection counts as lost.
        max_frame_size_bytes: The largest frame the container may send.
        rpc: How calls are made.
        on_attempt_failed: Called whenever none of the hosts took a connection that was lost.
        direct: Where services listen for calls that come directly; None where calls do not.
    """

    name: str = field(default_factory=_own_name)
    hostname: str | None = None
    tls: ssl.SSLContext | None = None
    token: Token | None = field(default=None, repr=False)
    sasl: MechanismName | tuple[MechanismName, ...] | None = None
    retry: Retry = field(default_factory=Retry)
    force: bool = False
    connect_timeout_s: float = 10.0
    idle_timeout_s: float = 60.0
    max_frame_size_bytes: int = 65536
    rpc: RpcOptions = field(default_factory=RpcOptions)
    on_attempt_failed: Callable[[Exception], object] | None = None
    direct: Direct | None = None

    def __post_init__(self) -> None:
        unknown = [each for each in self.mechanisms or () if each not in get_args(MechanismName)]
        if unknown:
            expected = ", ".join(get_args(MechanismName))
            raise ValueError(
                f"sasl is one of {expected}, or a tuple of them, not {unknown[0]!r:.80}"
            )
        if self.token is not None and not (callable(self.token) or is_token(self.token)):
            raise ValueError(
                "token is a text of letters, digits and -._~+/=, or a function that returns one"
            )
        demand_seconds("connect_timeout_s", self.connect_timeout_s)
        demand_seconds("idle_timeout_s", self.idle_timeout_s)
        if not 0 <= self.idle_timeout_s < IDLE_TIMEOUT_S_MAX:
            raise ValueError(
                f"idle_timeout_s is a number of seconds below {IDLE_TIMEOUT_S_MAX}, or 0 for "
                f"never, not {self.idle_timeout_s!r:.80}"
            )

    @property
    def mechanisms(self) -> tuple[str, ...] | None:
        """The mechanisms that may be used; None leaves it to the client."""
        return (self.sasl,) if isinstance(self.sasl, str) else self.sasl
