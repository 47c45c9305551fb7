"""A link by which a container that leaves moves items to another one, for one queue."""

from __future__ import annotations

import asyncio
import struct
import time
from typing import TYPE_CHECKING, Self, TypeVar

from cogwork.amqp.errors import Condition
from cogwork.amqp.performatives import Role
from cogwork.amqp.terminus import Source, Target
from cogwork.container.mesh.names import DURABILITY, MOVE, VHOST
from cogwork.dataplane.outgoing import OutgoingLink
from cogwork.dataplane.port import Port

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from cogwork.amqp.errors import AmqpError
    from cogwork.container.mesh.service import MeshService
    from cogwork.container.virtual_host import VirtualHost
    from cogwork.dataplane.link import Link
    from cogwork.nodes.queue.node import QueueNode

__all__ = ("ForgottenError", "MoveError", "MoveWay", "NotTakenError")

ACCEPTED, REJECTED, RELEASED = 0x24, 0x25, 0x26
PREPARE, ACTIVATE = b"P", b"A"
NUMBER = struct.Struct(">Q")

T = TypeVar("T")


class MoveError(Exception):
    """The way to the container that takes the items is broken, or it takes none now."""


class NotTakenError(MoveError):
    """That container takes no such items, now or later."""


class ForgottenError(MoveError):
    """That container knows nothing of what it was to activate: it has been started anew."""


class MoveWay:
    """A link by which items move to one container, for one queue."""

    def __init__(
        self, mesh: MeshService, vhost: VirtualHost, node: QueueNode, target: str | None
    ) -> None:
        session = mesh.tunnels.to(target) if target else None
        if session is None or target is None:
            raise MoveError(f"container {target or 'of any name'} cannot be reached")
        self._core = mesh.core
        self._target = target
        self._port = Port(mesh.core, self)
        self._outcomes: dict[int, asyncio.Future[int]] = {}
        self._credit = asyncio.Event()
        self._refusal: AmqpError | None = None
        self._is_open = False
        address = node.address
        link = session.open_link(f"{mesh.id}/{vhost.name}/move/{address}", Role.SENDER)
        self._link = link
        self._end = OutgoingLink(session.end, link.handle)
        self._end.feeder = self._port
        link.context = self
        link.carry(self._end)
        link.attach(
            source=Source(),
            target=Target(address=address),
            properties={
                VHOST: vhost.name,
                MOVE: mesh.incarnation,
                DURABILITY: node.options.durability,
            },
        )
        mesh.core.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._link.detach()
        self._core.flush()

    async def opened(self, deadline_s: float) -> None:
        """Waits until it is known that the other container takes the queue's items."""
        while not self._is_open:
            self._demand_link()
            self._credit.clear()
            await self._wait(self._credit.wait(), deadline_s)

    async def prepare(self, batch: dict[int, bytes], deadline_s: float) -> None:
        """Sends items, and waits until all of them are kept aside there."""
        await self._send(
            {number: PREPARE + NUMBER.pack(number) + message for number, message in batch.items()},
            deadline_s,
        )

    async def activate(self, batch: dict[int, bytes], deadline_s: float) -> None:
        """Says that items are given up here, and waits until they are in the other shard."""
        numbers = b"".join(NUMBER.pack(number) for number in batch)
        await self._send({0: ACTIVATE + numbers}, deadline_s)

    async def _send(self, letters: dict[int, bytes], deadline_s: float) -> None:
        futures = []
        for token, data in letters.items():
            self._outcomes[token] = asyncio.get_running_loop().create_future()
            futures.append(self._outcomes[token])
            while not self._end.send(self._port, token, data, False):
                self._core.flush()
                self._credit.clear()
                self._demand_link()
                await self._wait(self._credit.wait(), deadline_s)
        self._core.flush()
        outcomes = await self._wait(asyncio.gather(*futures), deadline_s)
        if REJECTED in outcomes:
            raise ForgottenError(f"container {self._target} has been started anew")
        if any(outcome != ACCEPTED for outcome in outcomes):
            self._demand_link()
            raise MoveError(f"container {self._target} does not take the items")

    async def _wait(self, what: Awaitable[T], deadline_s: float) -> T:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout_at(loop.time() + deadline_s - time.monotonic()):
                return await what
        except TimeoutError as error:
            raise MoveError(f"container {self._target} did not answer in time") from error

    def _demand_link(self) -> None:
        if self._refusal is not None and self._refusal.condition == Condition.PRECONDITION_FAILED:
            raise NotTakenError(f"container {self._target} {self._refusal.description}")
        if self._end.detached:
            raise MoveError(f"the way to container {self._target} is broken")

    def on_batch(self, port: Port) -> None:
        """Takes outcomes, and goes on where there was no credit."""
        outcomes, port.outcomes = port.outcomes, []
        port.woken.clear()
        self._credit.set()
        for token, code, _state, _settled in outcomes:
            future = self._outcomes.pop(token, None)
            if future is not None and not future.done():
                future.set_result(code)

    def attached(self, link: Link) -> None:
        """The other container answered; one that refuses names no target."""
        self._is_open = link.remote is not None and link.remote.target is not None
        self._credit.set()

    def stopping(self, link: Link) -> None:
        """The link is about to end."""

    def detached(self, link: Link, error: AmqpError | None) -> None:  # noqa: ARG002  # the contract's
        """The link is over: what has no outcome has none to expect."""
        self._refusal = error
        self._credit.set()
        for future in self._outcomes.values():
            if not future.done():
                future.set_result(RELEASED)
        self._outcomes.clear()
        self._port.close()
