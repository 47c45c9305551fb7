"""The other end of a move: takes the items of a container that leaves into this one's shards."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.outcomes import Rejected
from cogwork.amqp.terminus import Source, Target
from cogwork.container.federation.move_link import (
    ACCEPTED,
    ACTIVATE,
    ITEM,
    ITEM_HISTORY,
    NUMBER,
    PREPARE,
    PREPARE_WITH_HISTORY,
    REJECTED,
    RELEASED,
    TICKS,
)
from cogwork.container.mesh.names import DURABILITY, MOVE, PAST
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.encoding.codec import encode
from cogwork.dataplane.transport.incoming import IncomingLink
from cogwork.plugin.capabilities import Shareable, replica_of
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.amqp.performatives import Attach
    from cogwork.dataplane.core import Core
    from cogwork.dataplane.link import Link

__all__ = ("MoveIntake",)

WINDOW = 1000

History = tuple[float, float, int, int]
"""What an item has been through; see `cogwork.dataplane.queue.item_history`."""

KeptAside = tuple[bytes, int, History | None]
"""An item's message, and its format; its history, where that is known."""


class MoveIntake:
    """Takes the items of a container that leaves, for one virtual host."""

    def __init__(self, core: Core, is_leaving: Callable[[], bool]) -> None:
        """Initialize it; it has taken nothing.

        Args:
            core: The container's.
            is_leaving: Whether the container leaves, too: what it took now nobody would move on.
        """
        self._core = core
        self._is_leaving = is_leaving
        self._prepared: dict[tuple[str, int, str], dict[int, KeptAside]] = {}
        self._activated: dict[tuple[str, int, str], _Numbers] = {}
        self._gone: set[tuple[str, int]] = set()
        self._clocks: dict[tuple[str, int], float] = {}

    def take(self, link: Link, attach: Attach, origin: str, node: Shareable) -> None:
        """Take a link by which items come.

        Raises:
            Refused: They are more durable where they are, or belong to another container here.
        """
        properties = attach.properties or {}
        incarnation, durability = properties.get(MOVE), properties.get(DURABILITY)
        assert isinstance(incarnation, int)
        if durability == "disk" and not node.is_on_disk:
            raise Refused(
                f"keeps {node.address!r:.200} in memory, and not on disk",
                Condition.PRECONDITION_FAILED,
            )
        if _is_elsewhere(node):
            raise Refused(
                f"keeps {node.address!r:.200} on replicas, and another container owns it",
                Condition.PRECONDITION_FAILED,
            )
        key = (origin, incarnation, node.address)
        clock_s = self._clock(origin, incarnation, properties.get(PAST))
        receiver = _MoveReceiver(self._core, self, key, node, clock_s)
        end = IncomingLink(link.session.end, link.handle, receiver.entry, None, WINDOW)
        link.context = receiver
        link.attach(
            source=attach.source or Source(),
            target=Target(address=node.address),
            properties={PAST: True},
        )
        link.carry(end)
        receiver.entry.add_source(end)
        end.open_credit()

    def _clock(self, origin: str, incarnation: int, ticks: object) -> float:
        """Return how far the clock here is ahead of another container's: always the same.

        Items keep their order only where all that are moved are late by as much.
        """
        if not isinstance(ticks, int):
            return 0.0
        return self._clocks.setdefault((origin, incarnation), time.monotonic() - ticks / TICKS)

    def forget_all_but(self, lives: Mapping[str, int]) -> None:
        """Give up what was kept aside for containers that have died on their way out.

        What they did not give up is theirs, if they come back; nobody will ever ask for it here. It
        goes the second time that they are not there, and their clocks with it: one that is new is
        not known at once.

        Args:
            lives: The containers of the mesh, with the incarnations that they began with.
        """
        known = {key[:2] for key in self._prepared} | self._clocks.keys()
        gone = {life for life in known if lives.get(life[0]) != life[1]}
        over = gone & self._gone
        self._prepared = {key: each for key, each in self._prepared.items() if key[:2] not in over}
        self._clocks = {life: each for life, each in self._clocks.items() if life not in over}
        self._gone = gone

    def prepare(
        self, key: tuple[str, int, str], node: Shareable, number: int, item: KeptAside
    ) -> str | None:
        """Keep an item aside, unless it has been activated already.

        Returns:
            Why the queue can never take it: it stays where it is. None where it is kept.
        """
        if number in self._activated.get(key, ()):
            return None
        message, message_format, _ = item
        flaw = node.store.flaw_of(message, message_format)
        if flaw is None:
            self._prepared.setdefault(key, {})[number] = item
        return flaw

    def activate(self, key: tuple[str, int, str], node: Shareable, numbers: list[int]) -> int:
        """Put items into the shard.

        Returns:
            The outcome: released where the shard is full, or this container leaves, and the rest
            waits; rejected where there
            are some that have been neither prepared nor activated in this container's life.
        """
        prepared = self._prepared.setdefault(key, {})
        activated = self._activated.setdefault(key, _Numbers())
        if any(number not in prepared and number not in activated for number in numbers):
            return REJECTED
        if node.store.journal is not None and any(number in activated for number in numbers):
            self._core.hold_output()  # what was put then may not be durable yet
        for number in numbers:
            item = prepared.get(number)
            if item is not None and not self._puts(node, item):
                return RELEASED
            prepared.pop(number, None)
            activated.add(number)
        if not prepared:
            del self._prepared[key]
        return ACCEPTED

    def _puts(self, node: Shareable, item: KeptAside) -> bool:
        """Put an item into the shard, where that is this container's and takes it."""
        return not self._is_leaving() and not _is_elsewhere(node) and node.store.put(*item)


def _is_elsewhere(node: Shareable) -> bool:
    """Return whether a queue is on replicas, and owned by another container, or by none."""
    replica = replica_of(node)
    return replica is not None and replica.epoch is None


class _Numbers:
    """Numbers of items, most of which follow each other: not all that are lower are among them.

    What one container was given before it was started anew may be asked for behind what it was
    given since.
    """

    def __init__(self) -> None:
        self._ranges: list[range] = []

    def __contains__(self, number: object) -> bool:
        """Return whether a number is among them; the newest ones are found first."""
        return any(number in each for each in reversed(self._ranges))

    def add(self, number: int) -> None:
        """Add a number, which may be there."""
        if number in self:
            return
        if self._ranges and self._ranges[-1].stop == number:
            self._ranges[-1] = range(self._ranges[-1].start, number + 1)
        else:
            self._ranges.append(range(number, number + 1))


class _MoveReceiver:
    """What comes by one link."""

    def __init__(
        self,
        core: Core,
        intake: MoveIntake,
        key: tuple[str, int, str],
        node: Shareable,
        clock_s: float,
    ) -> None:
        self._clock_s = clock_s
        self._intake = intake
        self._key = key
        self._node = node
        self._port = Port(core, self)
        self.entry = AddressEntry(core, "(move)", CLOSEST_CODE, assembles=True)
        self.entry.add_outlet(self._port)

    def on_batch(self, port: Port) -> None:
        """Keep items aside, and put those into the shard that are given up elsewhere."""
        arrivals, port.arrivals = port.arrivals, []
        for data, token, source, _settled in arrivals:
            outcome, state = self._read(data)
            if source is not None:
                source.settle(token, outcome, state)

    def _read(self, data: bytes) -> tuple[int, bytes | None]:
        if data[:1] == PREPARE and len(data) > ITEM.size:
            return self._prepare(data, 1 + ITEM.size, None)
        if data[:1] == PREPARE_WITH_HISTORY and len(data) > ITEM.size + ITEM_HISTORY.size:
            stored, due, attempts, failures = ITEM_HISTORY.unpack_from(data, 1 + ITEM.size)
            history = (self._here_s(stored), self._here_s(due) if due else 0.0, attempts, failures)
            return self._prepare(data, 1 + ITEM.size + ITEM_HISTORY.size, history)
        if data[:1] == ACTIVATE and len(data) % NUMBER.size == 1:
            numbers = [each for (each,) in NUMBER.iter_unpack(data[1:])]
            return self._intake.activate(self._key, self._node, numbers), None
        return RELEASED, None

    def _prepare(self, data: bytes, at: int, history: History | None) -> tuple[int, bytes | None]:
        number, message_format = ITEM.unpack_from(data, 1)
        item = (data[at:], message_format, history)
        flaw = self._intake.prepare(self._key, self._node, number, item)
        return (ACCEPTED, None) if flaw is None else (REJECTED, _rejection(flaw))

    def _here_s(self, ticks: int) -> float:
        """Say by the clock here what the other container says by its own."""
        return ticks / TICKS + self._clock_s

    def attached(self, link: Link) -> None:
        """Never happens: the other container attaches."""

    def stopping(self, link: Link) -> None:
        """Nothing is left to do."""

    def detached(self, _link: Link, _error: AmqpError | None) -> None:
        """Give up what the link needed; what is kept aside stays for the next one."""
        self._port.close()
        self.entry.close()


def _rejection(flaw: str) -> bytes:
    error = AmqpError(condition=Condition.NOT_ALLOWED, description=flaw)
    return encode(Rejected(error=error).to_described())
