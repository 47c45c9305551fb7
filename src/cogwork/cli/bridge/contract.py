"""What a route takes and sends, and what the two ends of it have to do.

Theory of operation. A route takes messages from a queue, sends them to another one, and settles
them where they came from once the other side has confirmed them. So a message is always at one side
at least. Each message names the routes that it has come by, so that a circle of routes is noticed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pika

from cogwork.dataplane.message.basic import pack_basic, unpack_basic
from cogwork.dataplane.message.basic_conversion import amqp_from_basic, basic_from_amqp
from cogwork.dataplane.message.messages import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = (
    "HOPS",
    "BasicCopy",
    "Copy",
    "Lost",
    "MessageCopy",
    "Source",
    "Stopped",
    "Taken",
    "Target",
)

HOPS = "cogwork-bridges"
"""The header, or application property, that names the routes a message has come by."""


class Lost(Exception):  # no mistake, but what happens to connections
    """A connection was lost, or cannot be had: it is tried again."""


class Stopped(Exception):  # no mistake, but the end of a route
    """A route cannot go on, and says why; what it holds goes back."""


class Copy(ABC):
    """A message on its way, in the form in which it was taken."""

    @property
    @abstractmethod
    def hops(self) -> list[str]:
        """The routes that it has come by."""

    @abstractmethod
    def add_hop(self, name: str) -> None:
        """Add a route to those that it has come by."""

    @abstractmethod
    def basic(self) -> BasicCopy:
        """Return it as a message of AMQP 0-9-1."""

    @abstractmethod
    def message(self) -> Message:
        """Return it as a message of AMQP 1.0."""


@dataclass(slots=True)
class BasicCopy(Copy):
    """A message of AMQP 0-9-1.

    Attributes:
        properties: Its properties, with headers.
        body: Its octets.
        exchange: What it was published to.
        key: With which routing key.
    """

    properties: pika.BasicProperties
    body: bytes
    exchange: str = ""
    key: str = ""

    @property
    def hops(self) -> list[str]:
        """The routes that it has come by."""
        return _hops_of((self.properties.headers or {}).get(HOPS))

    def add_hop(self, name: str) -> None:
        """Add a route to those that it has come by."""
        headers = dict(self.properties.headers or {})
        headers[HOPS] = ",".join([*self.hops, name])
        self.properties.headers = headers

    def basic(self) -> BasicCopy:
        """Return it as it is."""
        return self

    def message(self) -> Message:
        """Return it as containers show it to readers of AMQP 1.0."""
        octets = b"".join(self.properties.encode())
        packed = pack_basic(self.exchange.encode(), self.key.encode(), octets, self.body)
        return Message.decode(amqp_from_basic(packed))


@dataclass(slots=True)
class MessageCopy(Copy):
    """A message of AMQP 1.0.

    Attributes:
        content: The message.
    """

    content: Message

    @property
    def hops(self) -> list[str]:
        """The routes that it has come by."""
        return _hops_of(self.content.properties.get(HOPS))

    def add_hop(self, name: str) -> None:
        """Add a route to those that it has come by."""
        self.content.properties[HOPS] = ",".join([*self.hops, name])

    def basic(self) -> BasicCopy:
        """Return it as containers show it to readers of AMQP 0-9-1."""
        _, _, octets, body = unpack_basic(basic_from_amqp(self.content.encode()))
        properties = pika.BasicProperties()
        properties.decode(octets)
        return BasicCopy(properties, body)

    def message(self) -> Message:
        """Return it as it is, with no delivery behind it."""
        self.content.delivery_count = 0
        return self.content


def _hops_of(value: object) -> list[str]:
    return str(value).split(",") if isinstance(value, str) and value else []


@dataclass(slots=True)
class Taken:
    """A message that was taken, and is not settled.

    Attributes:
        copy: The message.
        handle: By what its source knows it.
    """

    copy: Copy
    handle: Any


class Source(ABC):
    """Where a route takes messages. Opened and closed once."""

    @abstractmethod
    async def open(self) -> None:
        """Connect, and ask for messages.

        Raises:
            Lost: It cannot be reached.
            Stopped: It refuses.
        """

    @abstractmethod
    async def take(self) -> list[Taken]:
        """Return what has come, at least one message.

        Raises:
            Lost: The connection is.
        """

    @abstractmethod
    async def settle(self, done: Sequence[Taken], back: Sequence[Taken]) -> None:
        """Say of messages that they are elsewhere now, or that they are to be sent again.

        Args:
            done: These have been confirmed by the target.
            back: These have not.

        Raises:
            Lost: The connection is; what was not settled comes again.
        """

    @abstractmethod
    async def close(self) -> None:
        """Ask for no more, and let go; what is not settled goes back."""


class Target(ABC):
    """Where a route sends messages. Opened and closed once."""

    @abstractmethod
    async def open(self) -> None:
        """Connect.

        Raises:
            Lost: It cannot be reached.
            Stopped: It refuses.
        """

    @abstractmethod
    async def send(self, copies: Sequence[Copy]) -> list[str]:
        """Send messages, and wait until all are confirmed.

        Returns:
            Why each of them was not taken, and has to be sent again; empty where it was.

        Raises:
            Lost: The connection is: whether they arrived is not known.
            Stopped: One will never be taken.
        """

    @abstractmethod
    async def close(self) -> None:
        """Let go."""
