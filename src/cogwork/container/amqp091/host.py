"""What a connection by AMQP 0-9-1 needs of its surroundings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.errors import AmqpError
    from cogwork.amqp.sasl import SaslInit, SaslResponse
    from cogwork.amqp.types import Symbol
    from cogwork.config.amqp091_settings import Amqp091Options
    from cogwork.config.limits import Limits
    from cogwork.container.amqp091.connection import BasicConnection
    from cogwork.container.amqp091.queues import BasicQueues
    from cogwork.container.vhost.virtual_host import VirtualHost

__all__ = ("BasicHost",)


class BasicHost(Protocol):
    """What a connection asks, and tells."""

    options: Amqp091Options
    reply_prefix: str
    why_blocked: str

    @property
    def container_id(self) -> str:
        """The container's."""

    @property
    def limits(self) -> Limits:
        """What peers may not exceed."""

    def has_guest(self) -> bool:
        """Return whether a user is called `guest`."""

    def sasl_mechanisms(self, connection: BasicConnection) -> tuple[Symbol, ...]:
        """List what the connection's listener offers."""

    def authenticate(self, connection: BasicConnection, frame: SaslInit | SaslResponse) -> None:
        """Have the login checked; answered by `sasl_challenge` or `sasl_done`, now or later."""

    def renew(self, connection: BasicConnection, secret: bytes) -> None:
        """Have a new token checked; answered by `secret_done` later."""

    def on_open(self, connection: BasicConnection, vhost: str) -> None:
        """Let a client into a virtual host.

        Raises:
            ProtocolError: It may not go there.
        """

    def hold(self, connection: BasicConnection, go_on: Callable[[], None]) -> bool:
        """Have a newcomer wait that has connected, if clients wait now; tell whether it does."""

    def write_together(self) -> None:
        """Have all that is done in this turn survive a crash together, or not at all."""

    def queues_of(self, vhost: VirtualHost) -> BasicQueues:
        """Return the queues of a virtual host."""

    def on_channel(self, connection: BasicConnection) -> None:
        """Count one more channel.

        Raises:
            ProtocolError: It is one too many.
        """

    def on_channel_ended(self, connection: BasicConnection) -> None:
        """Count one less."""

    def on_consumer(self, connection: BasicConnection) -> None:
        """Count one more consumer.

        Raises:
            ProtocolError: It is one too many.
        """

    def on_consumer_ended(self, connection: BasicConnection) -> None:
        """Count one less."""

    def on_closed(self, connection: BasicConnection, error: AmqpError | None) -> None:
        """Forget the connection."""

    def on_fault(self, connection: BasicConnection, error: BaseException) -> None:
        """Log our own fault."""
