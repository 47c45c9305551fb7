"""A link by which a container that leaves moves items to another one, for one queue.

What an item has been through goes with it, where the other container says that it takes that: since
when it is there, when it is due, its attempts. Both times are by the monotonic clock of the
container that leaves, which its attach tells. How far the clocks are apart is measured once, so
what is due one after the other stays so, and no wall clock matters. A container of an earlier
version gets the message with the header that it has by now; what is delayed is not moved there.
"""

from __future__ import annotations

import asyncio
import struct
import time
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from cogwork.amqp.errors import Condition
from cogwork.amqp.kinds import composite_from
from cogwork.amqp.outcomes import Rejected
from cogwork.amqp.performatives import Role
from cogwork.amqp.terminus import Source, Target
from cogwork.amqp.types import Described, ULong
from cogwork.container.mesh.names import DURABILITY, MOVE, PAST, VHOST
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.encoding.codec import decode
from cogwork.dataplane.transport.outgoing import OutgoingLink

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping

    from cogwork.amqp.errors import AmqpError
    from cogwork.container.mesh.service import MeshService
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.link import Link
    from cogwork.plugin.capabilities import Shareable

__all__ = ("ForgottenError", "FullError", "MoveError", "MoveWay", "MovedItem", "NotTakenError")

LOST, ACCEPTED, REJECTED, RELEASED = 0x01, 0x24, 0x25, 0x26
PREPARE, PREPARE_WITH_HISTORY, ACTIVATE = b"P", b"I", b"A"
NUMBER = struct.Struct(">Q")
ITEM = struct.Struct(">QI")
"""An item's number, and its message-format."""
ITEM_HISTORY = struct.Struct(">qqII")
"""When it came, and is due, in microseconds, 0 for now; its attempts, and those that failed."""
TICKS = 1_000_000
"""Microseconds of a second."""
DUE_MAX_S = 1e12
"""Whoever asks for a longer delay means never, and its microseconds have to fit."""

T = TypeVar("T")


class MoveError(Exception):
    """The way to the container that takes the items is broken, or it takes none now."""


class NotTakenError(MoveError):
    """That container takes no such items, now or later."""


class FullError(MoveError):
    """That container takes no more of what it was to activate: it is full, or is leaving, too.

    Attributes:
        taken: How many it has nevertheless, the first ones; the others it has not, for certain.
    """

    def __init__(self, text: str, taken: int) -> None:
        super().__init__(text)
        self.taken = taken


class ForgottenError(MoveError):
    """That container knows nothing of what it was to activate: it has been started anew."""


class MovedItem(NamedTuple):
    """An item that is put aside to be moved.

    Attributes:
        format: The message's.
        message: As it would be delivered now.
        original: As it came.
        history: What it has been through since; see `cogwork.dataplane.queue.item_history`.
    """

    format: int
    message: bytes
    original: bytes
    history: tuple[float, float, int, int]

    def encoded(self, number: int, *, with_past: bool) -> bytes:
        """Return what is sent of it."""
        head = ITEM.pack(number, self.format)
        if not with_past:
            return PREPARE + head + self.message
        stored_s, due_s, attempts, failures = self.history
        ticks = (round(each * TICKS) for each in (stored_s, min(due_s, DUE_MAX_S)))
        history = ITEM_HISTORY.pack(*ticks, attempts, failures)
        return PREPARE_WITH_HISTORY + head + history + self.original


class MoveWay:
    """A link by which items move to one container, for one queue.

    Attributes:
        takes_past: Whether the other container takes what items have been through with them.
    """

    def __init__(
        self, mesh: MeshService, vhost: VirtualHost, node: Shareable, target: str | None
    ) -> None:
        session = mesh.tunnels.to(target) if target else None
        if session is None or target is None:
            raise MoveError(f"container {target or 'of any name'} cannot be reached")
        self._core = mesh.core
        self._target = target
        self._port = Port(mesh.core, self)
        self._outcomes: dict[int, asyncio.Future[tuple[int, str]]] = {}
        self._credit = asyncio.Event()
        self._refusal: AmqpError | None = None
        self._is_open = False
        self.takes_past = False
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
                DURABILITY: node.durability,
                PAST: ULong(time.monotonic_ns() * TICKS // 1_000_000_000),
            },
        )
        mesh.core.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._link.detach()
        self._core.flush()

    async def opened(self, deadline_s: float) -> None:
        """Wait until it is known that the other container takes the queue's items."""
        while not self._is_open:
            self._demand_link()
            self._credit.clear()
            await self._wait(self._credit.wait(), deadline_s)

    async def prepare(self, batch: Mapping[int, MovedItem], deadline_s: float) -> dict[int, str]:
        """Send items, and wait until they are kept aside there.

        Args:
            batch: The items, by number.
            deadline_s: When to give up, by the monotonic clock.

        Returns:
            Why some can never be taken there, by number.

        Raises:
            MoveError: The way is broken, or the items are not taken now.
        """
        messages = {
            number: item.encoded(number, with_past=self.takes_past)
            for number, item in batch.items()
        }
        outcomes = await self._send(messages, deadline_s)
        if any(code == RELEASED for code, _ in outcomes.values()):
            raise MoveError(f"container {self._target} does not take the items")
        return {number: why for number, (code, why) in outcomes.items() if code == REJECTED}

    async def activate(self, numbers: Iterable[int], deadline_s: float) -> None:
        """Say that items are given up here, and wait until they are in the other shard.

        Raises:
            ForgottenError: It is not known there what they are.
            FullError: Not all of them are taken there.
            MoveError: The way is broken.
        """
        left = list(numbers)
        if await self._are_taken(left, deadline_s):
            return
        # They are taken in this order, as long as there is room.
        taken, beyond = 0, len(left)
        while beyond - taken > 1:
            middle = (taken + beyond) // 2
            if await self._are_taken(left[taken:middle], deadline_s):
                taken = middle
            else:
                beyond = middle
        raise FullError(f"container {self._target} takes no more of them now", taken)

    async def _are_taken(self, numbers: Iterable[int], deadline_s: float) -> bool:
        """Have items activated; tell whether all of them are."""
        message = ACTIVATE + b"".join(map(NUMBER.pack, numbers))
        ((code, _),) = (await self._send({0: message}, deadline_s)).values()
        if code == REJECTED:
            raise ForgottenError(f"container {self._target} has been started anew")
        return code == ACCEPTED

    async def _send(
        self, messages: Mapping[int, bytes], deadline_s: float
    ) -> dict[int, tuple[int, str]]:
        futures = []
        for token, data in messages.items():
            self._outcomes[token] = asyncio.get_running_loop().create_future()
            futures.append(self._outcomes[token])
            while not self._end.send(self._port, token, data, False):
                self._core.flush()
                self._credit.clear()
                self._demand_link()
                await self._wait(self._credit.wait(), deadline_s)
        self._core.flush()
        outcomes = await self._wait(asyncio.gather(*futures), deadline_s)
        if any(code not in (ACCEPTED, REJECTED, RELEASED) for code, _ in outcomes):
            raise MoveError(f"the way to container {self._target} is broken")
        return dict(zip(messages, outcomes, strict=True))

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
            why = self._refusal.description if self._refusal is not None else None
            text = f"container {self._target} refuses: {why}" if why else None
            raise MoveError(text or f"the way to container {self._target} is broken")

    def on_batch(self, port: Port) -> None:
        """Take outcomes, and go on where there was no credit."""
        outcomes, port.outcomes = port.outcomes, []
        port.woken.clear()
        self._credit.set()
        for token, code, state, _settled in outcomes:
            future = self._outcomes.pop(token, None)
            if future is not None and not future.done():
                future.set_result((code, _reason_of(state)))

    def attached(self, link: Link) -> None:
        """The other container answered; one that refuses names no target."""
        self._is_open = link.remote is not None and link.remote.target is not None
        properties = (link.remote.properties if link.remote is not None else None) or {}
        self.takes_past = properties.get(PAST) is True
        self._credit.set()

    def stopping(self, link: Link) -> None:
        """The link is about to end."""

    def detached(self, _link: Link, error: AmqpError | None) -> None:
        """The link is over: what has no outcome has none to expect."""
        self._refusal = error
        self._credit.set()
        for future in self._outcomes.values():
            if not future.done():
                future.set_result((LOST, ""))
        self._outcomes.clear()
        self._port.close()


def _reason_of(state: bytes | None) -> str:
    """Return what a rejected outcome says to people."""
    value, _ = decode(state, 0) if state else (None, 0)
    found = composite_from(value) if isinstance(value, Described) else None
    if isinstance(found, Rejected) and found.error is not None:
        return found.error.description or ""
    return ""
