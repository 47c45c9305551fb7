"""A client, as far as it declares and deletes queues, exchanges and bindings.

It does so on a channel of AMQP 0-9-1, or by RabbitMQ 4's requests over AMQP 1.0
(`container.rabbitmq`): what may be declared, and what is refused, is the same.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

from cogwork.amqp091.errors import ProtocolError, ReplyCode
from cogwork.container.amqp091.faults import ACCESS, shown_vhost

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from cogwork.amqp091.content import Content
    from cogwork.amqp091.method import Method
    from cogwork.config.settings import Right
    from cogwork.container.amqp091.queues import BasicQueues
    from cogwork.container.connections.clients import ClientContext
    from cogwork.container.vhost.virtual_host import VirtualHost

    Work = Coroutine[object, object, None]
    """What a method's function returns that has to wait."""

__all__ = ("Declarer", "DeclaringConnection")


class DeclaringConnection(Protocol):
    """The connection of such a client: its exclusive queues go with it."""

    @property
    def identity(self) -> str | None:
        """Who the client proved to be."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""


class Declarer(ABC):
    """What the functions of methods need of who declares.

    Attributes:
        queue: The queue that it has declared last: an empty name stands for it.
    """

    queue = ""

    @property
    @abstractmethod
    def connection(self) -> DeclaringConnection:
        """Whose it is."""

    @property
    @abstractmethod
    def client(self) -> ClientContext:
        """What the container keeps with the connection."""

    @property
    @abstractmethod
    def queues(self) -> BasicQueues:
        """The queues of the virtual host, as AMQP 0-9-1 declares them."""

    @abstractmethod
    def reply(self, method: Method, content: Content | None = None) -> None:
        """Answer with a method."""

    @property
    def vhost(self) -> VirtualHost:
        """Where its queues and exchanges are."""
        return self.client.vhost

    @property
    def vhost_name(self) -> str:
        """What clients call that."""
        return shown_vhost(self.vhost.name)

    async def take_turn(self) -> None:
        """Wait until the client may make one more queue.

        Raises:
            Refused: Too many wait already.
        """
        wait_s = self.vhost.shares.wait_s(self.client.makers)
        if wait_s:
            await asyncio.sleep(wait_s)

    def demand(self, right: Right, address: str) -> None:
        """Check a permission.

        Args:
            right: Which.
            address: `queue/NAME`, `stream/NAME` or `exchange/NAME`.

        Raises:
            ProtocolError: It is missing (403).
        """
        if self.client.may(right, address):
            return
        kind, _, name = address.partition("/")
        kind = "queue" if kind == "stream" else kind
        user = self.connection.identity or "guest"
        raise ProtocolError(
            ReplyCode.ACCESS_REFUSED,
            f"{ACCESS[right]} access to {kind} '{name}' in vhost '{self.vhost_name}' refused for "
            f"user '{user}'",
        )
