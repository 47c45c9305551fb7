"""How calls are made: addresses, codec, times, what is settled beforehand, and without a hop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cogwork.amqp.loopback import is_loopback
from cogwork.client.checks import demand_seconds
from cogwork.client.connection.retry import Retry

if TYPE_CHECKING:
    import ssl

__all__ = ("Direct", "RpcOptions")

WILDCARDS = frozenset({"", "0.0.0.0", "::"})
"""Hosts that mean every address of this machine."""


@dataclass(frozen=True, slots=True)
class RpcOptions:
    """What calls and services of a client have in common.

    A message that is sent settled costs one transfer and tells nothing of its fate; one that is
    not has an outcome: nobody took it (released), or somebody did and let it go (modified).

    Attributes:
        exchange: The second level of addresses, without a `/`; keeps deployments apart that share
            a mesh.
        unicast: The prefix of what goes to one server of a topic.
        exclusive: The prefix of what goes to a certain server.
        broadcast: The prefix of what goes to every server of a topic.
        codec: What bodies are written in: `amqp`, `json`, `msgpack`, `protobuf`, or a plug-in.
        timeout_s: How long a call may take where it says nothing itself, in seconds.
        call_settled: Whether calls are sent settled.
        cast_settled: Whether casts are.
        fanout_settled: Whether fanouts are.
        reply_settled: Whether replies are.
        retry: Pauses between attempts of what is sent unsettled and released.
        tells_tracebacks: Whether services send the traceback of an exception to the caller.
    """

    exchange: str = "rpc"
    unicast: str = "unicast"
    exclusive: str = "exclusive"
    broadcast: str = "broadcast"
    codec: str = "amqp"
    timeout_s: float = 10.0
    call_settled: bool = False
    cast_settled: bool = True
    fanout_settled: bool = True
    reply_settled: bool = True
    retry: Retry = field(default_factory=Retry)
    tells_tracebacks: bool = True

    def __post_init__(self) -> None:
        demand_seconds("timeout_s", self.timeout_s)

    def one_of(self, topic: str, exchange: str | None = None) -> str:
        """Return the address at which one server of a topic is reached.

        Args:
            topic: What the servers serve.
            exchange: The second level of the address; None for the usual one.

        Raises:
            ValueError: The topic, or the exchange, is not one level of an address.
        """
        return f"{self.unicast}/{self._exchange(exchange)}/{_word('topic', topic)}"

    def server(self, topic: str, server: str, exchange: str | None = None) -> str:
        """Return the address of a certain server of a topic.

        Args:
            topic: What it serves.
            server: Its name.
            exchange: The second level of the address; None for the usual one.

        Raises:
            ValueError: One of them is not one level of an address.
        """
        prefix = f"{self.exclusive}/{self._exchange(exchange)}"
        return f"{prefix}/{_word('topic', topic)}/{_word('server', server)}"

    def every(self, topic: str, exchange: str | None = None) -> str:
        """Return the address at which all servers of a topic are reached.

        Args:
            topic: What they serve.
            exchange: The second level of the address; None for the usual one.

        Raises:
            ValueError: The topic, or the exchange, is not one level of an address.
        """
        return f"{self.broadcast}/{self._exchange(exchange)}/{_word('topic', topic)}"

    def _exchange(self, exchange: str | None) -> str:
        return _word("exchange", self.exchange if exchange is None else exchange)


@dataclass(frozen=True, slots=True)
class Direct:
    """Where a service listens, and as whom it is told to callers.

    Whoever comes needs a secret that the service makes up, and tells through the mesh only: nobody
    is anonymous. Off the loopback TLS is needed as well.

    Attributes:
        host: The name or address to listen on.
        port: The TCP port; 0 for any free one.
        tls: The service's certificate; see `cogwork.io.tls.server_context`.
        advertise: What callers connect to, a name that the certificate has; None for the host.
        spin_us: How long a caller looks for the reply to its only call before it sleeps, in
            microseconds: a fast server has answered by then. Where that does not help it is hardly
            tried any more. 0 for never.
    """

    host: str = "127.0.0.1"
    port: int = 0
    tls: ssl.SSLContext | None = None
    advertise: str | None = None
    spin_us: int = 250

    def __post_init__(self) -> None:
        """Look whether the secret stays one.

        Raises:
            ValueError: It would travel in clear, or callers would not know where to.
        """
        if self.host in WILDCARDS and self.advertise is None:
            raise ValueError(f"direct: callers cannot connect to {self.host!r}: set advertise")
        if self.tls is None and not is_loopback(self.host):
            raise ValueError(f"direct: off the loopback ({self.host}) a service needs tls")


def _word(what: str, name: str) -> str:
    """Return a name that is one level of an address.

    Raises:
        ValueError: It is none.
    """
    if not isinstance(name, str) or not name or "/" in name:
        raise ValueError(f"{what}: a name without '/' is expected, not {name!r:.80}")
    return name
