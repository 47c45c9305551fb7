"""A connection as its channels see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cogwork.container.connections.peer import Peer

if TYPE_CHECKING:
    from cogwork.amqp091.content import Content
    from cogwork.amqp091.errors import ProtocolError
    from cogwork.amqp091.method import Method
    from cogwork.amqp091.types import Table
    from cogwork.container.amqp091.queues import BasicQueues
    from cogwork.container.amqp091.returns import Returns
    from cogwork.container.connections.clients import ClientContext
    from cogwork.dataplane.amqp091.wire import BasicWire

__all__ = ("ChannelOwner",)


class ChannelOwner(Peer, Protocol):
    """What a channel needs of its connection.

    Attributes:
        client_properties: What the client says of itself.
        returns: Bounds what is returned to it.
    """

    client_properties: Table
    returns: Returns

    @property
    def wire(self) -> BasicWire:
        """Its compiled half."""

    @property
    def client(self) -> ClientContext:
        """What the container keeps with it."""

    @property
    def queues(self) -> BasicQueues:
        """The queues of its virtual host."""

    @property
    def reply_prefix(self) -> str:
        """What the addresses begin with that take replies."""

    def send(self, channel: int, method: Method, content: Content | None = None) -> None:
        """Send a command."""

    def write_together(self) -> None:
        """Have all that is done now survive a crash together, or not at all."""

    def note_publish(self) -> None:
        """Take note that the client publishes."""

    def count_consumer(self) -> None:
        """Count one more consumer.

        Raises:
            ProtocolError: It is one too many.
        """

    def count_no_consumer(self) -> None:
        """Count one less."""

    def take_later(self, number: int, method: Method, content: Content | None) -> None:
        """Take a command that had to wait for another one of its channel."""

    def hold_reading(self, number: int, is_held: bool) -> None:
        """Read nothing while too much waits on a channel, or read again."""

    def note_idle(self) -> None:
        """Take note that a channel waits for nothing any more."""

    def on_fault(self, error: BaseException) -> None:
        """Something of ours failed that was done for this connection."""

    def fail_channel(self, number: int, error: ProtocolError) -> None:
        """Close a channel for what is not the answer to a method that has just come."""

    def end_channel(self, number: int) -> None:
        """Give up a channel and what it holds."""
