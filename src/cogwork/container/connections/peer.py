"""A connection of a client as those see it who keep connections, whatever protocol it speaks."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.amqp.errors import AmqpError
    from cogwork.amqp.sasl import SaslCode
    from cogwork.dataplane.core import Core
    from cogwork.dataplane.session import SessionEndpoint

__all__ = ("Identified", "LoginPeer", "Peer", "PeerWire")


class Identified(Protocol):
    """A connection, as far as it tells whose it is.

    Attributes:
        identity: Who the peer proved to be; None for nobody, or before it did.
        context: What the container keeps with it.
    """

    identity: str | None
    context: object


class LoginPeer(Identified, Hashable, Protocol):
    """A connection whose peer logs in, whatever protocol it speaks."""

    @property
    def is_over(self) -> bool:
        """Whether nothing may be sent any more."""

    def sasl_challenge(self, challenge: bytes) -> None:
        """Ask the client for more."""

    def sasl_done(
        self, code: SaslCode, identity: str | None = None, data: bytes | None = None
    ) -> None:
        """Say how authentication ended."""

    def on_violation(self, condition: str, description: str) -> None:
        """End the connection: what its peer said is malformed."""

    def flush(self) -> None:
        """Send what was written."""


class PeerWire(Protocol):
    """The compiled half of a connection: its figures, and what a container does with it."""

    source: str | None

    @property
    def core(self) -> Core:
        """The data plane that it belongs to."""

    @property
    def fd(self) -> int:
        """Its socket's file descriptor; -1 where a layer stands between."""

    @property
    def origin(self) -> int:
        """Its number; what comes by it bears that."""

    @property
    def bytes_in(self) -> int:
        """Counts what came."""

    @property
    def bytes_out(self) -> int:
        """Counts what went."""

    @property
    def frames_in(self) -> int:
        """Counts the frames that came."""

    @property
    def frames_out(self) -> int:
        """Counts the frames that were written."""

    @property
    def unsent_bytes(self) -> int:
        """What waits to be sent."""

    @property
    def sendable_bytes(self) -> int:
        """What of it is not held."""

    @property
    def output_bytes(self) -> int:
        """The memory that the output takes."""

    @property
    def held_bytes(self) -> int:
        """What is held of messages that came."""

    @property
    def congested(self) -> bool:
        """Whether its peer does not keep up."""

    def drop_output(self) -> None:
        """Throw away what its peer has not taken."""

    def shed(self) -> None:
        """Give back what an idle connection does not need."""


class Peer(LoginPeer, Protocol):
    """A connection: `dataplane.connection.Connection`, or one of AMQP 0-9-1.

    Attributes:
        started_s: When it was made, by the core's clock.
    """

    started_s: float

    @property
    def wire(self) -> PeerWire:
        """Its compiled half."""

    @property
    def protocol(self) -> str:
        """What it speaks."""

    @property
    def authenticated(self) -> bool:
        """Whether the peer has logged in."""

    @property
    def has_opened(self) -> bool:
        """Whether the peer has asked for a virtual host."""

    @property
    def is_open(self) -> bool:
        """Whether both sides have opened and neither has closed."""

    @property
    def container_id(self) -> str:
        """What the peer calls itself."""

    @property
    def product(self) -> str:
        """What program the peer says that it is."""

    @property
    def sessions(self) -> Sequence[SessionEndpoint]:
        """The sessions of AMQP 1.0 that end here."""

    @property
    def channel_numbers(self) -> Sequence[int]:
        """The numbers of its channels that end here."""

    @property
    def consumer_names(self) -> Sequence[str]:
        """What its consumers are called: consumer tags, or the names of links."""

    @property
    def session_count(self) -> int:
        """Counts its sessions, or channels."""

    @property
    def link_count(self) -> int:
        """Counts its links, or consumers."""

    @property
    def messages_in(self) -> int:
        """Counts what came by the links, or channels, that stand."""

    @property
    def messages_out(self) -> int:
        """Counts what went by the links, or consumers, that stand."""

    @property
    def unsettled(self) -> int:
        """Counts the deliveries that were sent and are not settled."""

    def tick(self, now_s: float) -> None:
        """Let time pass."""

    def close(self, error: AmqpError | None = None) -> None:
        """Close from this side; the peer may still answer."""

    def lose(self, error: AmqpError | None = None) -> None:
        """End at once."""
