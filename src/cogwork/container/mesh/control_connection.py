"""The connection on which two neighbours tell each other what they know.

Theory of operation. It has two AMQP links in each direction, one for the protocol's messages and
one for datagrams; each message is a data section. Who has logged in by a token and gets a new one
attaches a third, on which it tells that: a container that knows of none refuses the link, and goes
by the first token.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.performatives import Role
from cogwork.amqp.terminus import Target
from cogwork.container.mesh.channel import Channel
from cogwork.container.mesh.connection import MeshConnection
from cogwork.container.mesh.names import CONTROL

if TYPE_CHECKING:
    from cogwork.amqp.performatives import Attach
    from cogwork.container.mesh.connection import Owner
    from cogwork.dataplane.connection import Connection
    from cogwork.dataplane.link import Link

__all__ = ("ControlConnection",)

CONTROL_ADDRESS = "$mesh"
DATAGRAMS_ADDRESS = "$parcels"
TOKENS_ADDRESS = "$cbs"
"""What the targets on a control connection name."""

CONTROL_WINDOW = 256
"""Messages of the protocol on their way; it paces itself long before."""

DATAGRAMS_WINDOW = 1_024
"""Datagrams on their way to a neighbour."""

TOKENS_WINDOW = 4
"""Tokens on their way from a neighbour: one follows the other after minutes."""

WAITING_MAX = 10_000
"""Messages that may wait for a neighbour: it would have been silent long before."""


class ControlConnection(MeshConnection):
    """The connection on which two neighbours tell each other what they know.

    Attributes:
        send_datagram: Sends a datagram, given in parts; returns False where it is dropped, as too
            much waits already.
    """

    role = CONTROL

    def __init__(self, owner: Owner, number: int) -> None:
        super().__init__(owner, number)
        blame = partial(owner.on_fault, self)
        self._protocol = Channel(
            owner.core, CONTROL_ADDRESS, CONTROL_WINDOW, self._on_message, blame
        )
        on_datagram = partial(owner.on_datagram, self)
        self._datagrams = Channel(
            owner.core, DATAGRAMS_ADDRESS, DATAGRAMS_WINDOW, on_datagram, blame
        )
        self.send_datagram = self._datagrams.send
        on_token = partial(owner.on_token, self)
        self._tokens = Channel(owner.core, TOKENS_ADDRESS, TOKENS_WINDOW, on_token, blame)
        self._has_told_token = False
        channels = (self._protocol, self._datagrams, self._tokens)
        self._channels = {each.address: each for each in channels}

    def begin(self) -> None:
        """Attach the links on which this side sends, each in a session of its own.

        What neighbours tell each other is served first: it is little, and much depends on it.
        """
        if self.connection.transport is not None:
            self.connection.transport.prefer()
        self.connection.wire.is_never_held = True
        for channel in (self._protocol, self._datagrams):
            channel.open(self.connection.begin_session(), self.owner.id)

    def on_attach(self, link: Link, attach: Attach) -> None:
        """Take the links on which the other side sends."""
        target = attach.target
        address = target.address if isinstance(target, Target) else None
        channel = self._channels.get(address or "")
        if attach.role is not Role.SENDER or channel is None:
            link.refuse(Condition.NOT_ALLOWED, "a control connection has no other links")
            return
        channel.take(link, attach)

    def send(self, data: bytes) -> None:
        """Send a message of the protocol, as soon as the other side takes it."""
        if self._protocol.waiting >= WAITING_MAX or not self._protocol.send(data):
            self._give_up()

    def send_token(self, token: str) -> None:
        """Have a token hold in the place of the one that this side has logged in by."""
        if not self._has_told_token:
            self._has_told_token = True
            self._tokens.open(self.connection.begin_session(), self.owner.id)
        self._tokens.send(token.encode())

    def _on_message(self, data: memoryview) -> None:
        self.owner.on_message(self, bytes(data))

    def _give_up(self) -> None:
        """End a connection whose other end says hello, and take nothing."""
        error = AmqpError(
            condition=Condition.RESOURCE_LIMIT_EXCEEDED,
            description=f"{WAITING_MAX} messages of the protocol wait to be taken",
        )
        asyncio.get_running_loop().call_soon(self.connection.lose, error)

    def on_closed(self, connection: Connection, error: AmqpError | None) -> None:
        """The connection is over."""
        for channel in self._channels.values():
            channel.close()
        super().on_closed(connection, error)
