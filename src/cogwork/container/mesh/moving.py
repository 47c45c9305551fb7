"""Moves a leaving container's items into the shards of others: prepare, tombstone, activate.

Theory of operation. The container that leaves takes items out of its queue and sends them, each
with a number, to another container, which keeps them aside (prepare) and accepts. From then on the
one that leaves will not give them to anybody (tombstone), and says so by their numbers; only now
the other one puts them into its own shard (activate), and accepts. Whatever is repeated after a
break is recognised by its number, so an item is never in two shards, and what was not activated is
put back.

Where consumers elsewhere borrow from a queue, its items are spread over their containers, batch by
batch, as much to each as its consumers have asked for. A queue with partitions goes to one
container as a whole, for the order of its groups.
"""

from __future__ import annotations

import asyncio
import logging
import struct
import time
from collections import Counter
from typing import TYPE_CHECKING

from cogwork.amqp.performatives import Role
from cogwork.amqp.terminus import Source, Target
from cogwork.container.mesh.lending import Lender
from cogwork.container.mesh.names import MOVE, VHOST
from cogwork.container.mesh.tunnels import origin_of
from cogwork.dataplane.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.incoming import IncomingLink
from cogwork.dataplane.outgoing import OutgoingLink
from cogwork.dataplane.port import Port
from cogwork.nodes.queue.node import QueueNode

if TYPE_CHECKING:
    from cogwork.amqp.errors import AmqpError
    from cogwork.amqp.performatives import Attach
    from cogwork.container.mesh.service import MeshService
    from cogwork.container.virtual_host import VirtualHost
    from cogwork.dataplane.core import Core
    from cogwork.dataplane.link import Link

__all__ = ("Intake", "Mover")

BATCH, BATCH_LEAST = 500, 50
"""Items that are prepared before they are activated together; fewer where several containers take
them, so that each gets its share."""

ROUNDS = 4
"""Batches for each of several containers that take what is there now."""

RETRY_S = 0.1
WINDOW = 1000
ACCEPTED, RELEASED = 0x24, 0x26
PREPARE, ACTIVATE = b"P", b"A"
_NUMBER = struct.Struct(">Q")

log = logging.getLogger("cogwork")


class MoveError(Exception):
    """The way to the container that takes the items is broken, or it refuses them."""


class Mover:
    """Moves items out of this container.

    Attributes:
        moved: Items that others have taken over.
        problem: Why not all could be moved; None while nothing is wrong.
    """

    def __init__(self, mesh: MeshService) -> None:
        self.moved = 0
        self.problem: str | None = None
        self._mesh = mesh
        self._number = 0

    async def move_all(self, vhost: VirtualHost, deadline_s: float) -> None:
        """Moves the items of every queue of a virtual host.

        Args:
            vhost: The virtual host.
            deadline_s: When to give up, by the monotonic clock.
        """
        for address, node in list(vhost.nodes.items()):
            if isinstance(node, QueueNode) and node.replica is None:
                await self._move_queue(vhost, address, node, deadline_s)

    async def _move_queue(
        self, vhost: VirtualHost, address: str, node: QueueNode, deadline_s: float
    ) -> None:
        given: Counter[str] = Counter()
        while node.store.depth and time.monotonic() < deadline_s:
            taken: list[int] = []
            messages = node.store.take_ready(self._batch(node), taken)
            if not messages:  # what consumers have comes back, or is done with
                await asyncio.sleep(RETRY_S)
                continue
            batch: dict[int, bytes] = {}
            for message in messages:
                self._number += 1
                batch[self._number] = message
            await self._move_batch(vhost, node, batch, given, deadline_s)
            node.store.moved(taken)
        if node.store.depth:
            self.problem = f"{node.store.depth} items of {address!r} could not be moved"

    async def _move_batch(
        self,
        vhost: VirtualHost,
        node: QueueNode,
        batch: dict[int, bytes],
        given: Counter[str],
        deadline_s: float,
    ) -> None:
        """Moves items; what has not been activated for sure is put back, if that can be said."""
        target = ""
        failed: set[str] = set()
        is_tombstoned = False
        while time.monotonic() < deadline_s:
            if not is_tombstoned:
                target = self._target(node, given, failed) or target
            try:
                with _Way(self._mesh, vhost, node.address, target) as way:
                    if not is_tombstoned:
                        await way.prepare(batch, deadline_s)
                        is_tombstoned = True
                    await way.activate(batch, deadline_s)
            except MoveError as error:
                failed.add(target)
                self.problem = str(error)
                await asyncio.sleep(RETRY_S)
                continue
            self.moved += len(batch)
            given[target] += len(batch)
            self.problem = None
            return
        if is_tombstoned:
            log.error("%d items of %r are at %s, or lost", len(batch), node.address, target)
            return
        for message in batch.values():
            node.store.put(message)

    def _batch(self, node: QueueNode) -> int:
        """Says how many items to move at once."""
        takers = len(self._takers(node))
        if takers < 2:
            return BATCH
        return max(BATCH_LEAST, min(BATCH, node.store.depth // (ROUNDS * takers)))

    def _takers(self, node: QueueNode) -> Counter[str]:
        """Counts what consumers elsewhere have asked this shard for, by their container."""
        found: Counter[str] = Counter()
        if node.is_partitioned:
            return found
        for connection in self._mesh.data_connections():
            for session in connection.sessions:
                for link in session.links.values():
                    if isinstance(link.context, Lender) and link.context.node is node:
                        end = link.context.subscription.link
                        found[origin_of(session) or ""] += max(1, end.credit + end.unsettled)
        return found

    def _target(self, node: QueueNode, given: Counter[str], failed: set[str]) -> str | None:
        """Chooses who takes items: one whose consumers ask for them, else who is nearest.

        Workers leave together: items go to each other only where there is nobody else.

        Args:
            node: The queue.
            given: How many of its items each container has got.
            failed: The containers that have not taken these.
        """
        takers = self._takers(node)
        costs = self._mesh.mesh.routes.tree.costs
        others = [
            container
            for container in costs
            if container != self._mesh.id and self._mesh.way_to(container) is not None
        ]
        return min(
            others,
            key=lambda each: (
                each in failed,
                each in self._mesh.siblings,
                each not in takers,
                given[each] / takers[each] if each in takers else 0.0,
                costs[each],
                each,
            ),
            default=None,
        )


class _Way:
    """A link by which items move to one container, for one queue."""

    def __init__(self, mesh: MeshService, vhost: VirtualHost, address: str, target: str) -> None:
        session = mesh.tunnels.to(target) if target else None
        if session is None:
            raise MoveError(f"container {target or 'of any name'} cannot be reached")
        self._core = mesh.core
        self._target = target
        self._port = Port(mesh.core, self)
        self._outcomes: dict[int, asyncio.Future[int]] = {}
        self._credit = asyncio.Event()
        link = session.open_link(f"{mesh.id}/{vhost.name}/move/{address}", Role.SENDER)
        self._link = link
        self._end = OutgoingLink(session.end, link.handle)
        self._end.feeder = self._port
        link.context = self
        link.carry(self._end)
        link.attach(
            source=Source(),
            target=Target(address=address),
            properties={VHOST: vhost.name, MOVE: mesh.incarnation},
        )
        mesh.core.flush()

    def __enter__(self) -> _Way:
        return self

    def __exit__(self, *_: object) -> None:
        self._link.detach()
        self._core.flush()

    async def prepare(self, batch: dict[int, bytes], deadline_s: float) -> None:
        """Sends items, and waits until all of them are kept aside there."""
        await self._send(
            {number: PREPARE + _NUMBER.pack(number) + message for number, message in batch.items()},
            deadline_s,
        )

    async def activate(self, batch: dict[int, bytes], deadline_s: float) -> None:
        """Says that items are given up here, and waits until they are in the other shard."""
        numbers = b"".join(_NUMBER.pack(number) for number in batch)
        await self._send({0: ACTIVATE + numbers}, deadline_s)

    async def _send(self, letters: dict[int, bytes], deadline_s: float) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout_at(loop.time() + deadline_s - time.monotonic()):
                futures = []
                for token, data in letters.items():
                    self._outcomes[token] = loop.create_future()
                    futures.append(self._outcomes[token])
                    while not self._end.send(self._port, token, data, False):
                        self._core.flush()
                        self._credit.clear()
                        self._demand_link()
                        await self._credit.wait()
                self._core.flush()
                outcomes = await asyncio.gather(*futures)
        except TimeoutError as error:
            raise MoveError(f"container {self._target} did not answer in time") from error
        if any(outcome != ACCEPTED for outcome in outcomes):
            raise MoveError(f"container {self._target} does not take the items")

    def _demand_link(self) -> None:
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
        """The other container answered."""

    def stopping(self, link: Link) -> None:
        """The link is about to end."""

    def detached(self, link: Link, error: AmqpError | None) -> None:  # noqa: ARG002  # the contract's
        """The link is over: what has no outcome has none to expect."""
        self._credit.set()
        for future in self._outcomes.values():
            if not future.done():
                future.set_result(RELEASED)
        self._outcomes.clear()
        self._port.close()


class Intake:
    """Takes the items of a container that leaves, for one virtual host."""

    def __init__(self, core: Core, vhost: VirtualHost) -> None:
        self._core = core
        self._vhost = vhost
        self._prepared: dict[tuple[str, int, str], dict[int, bytes]] = {}
        self._activated: dict[tuple[str, int, str], int] = {}

    def take(self, link: Link, attach: Attach, origin: str, node: QueueNode) -> None:
        """Takes a link by which items come."""
        incarnation = (attach.properties or {}).get(MOVE)
        assert isinstance(incarnation, int)
        key = (origin, incarnation, node.address)
        letters = _Letters(self._core, self, key, node)
        end = IncomingLink(link.session.end, link.handle, letters.entry, None, WINDOW)
        link.context = letters
        link.attach(source=attach.source or Source(), target=Target(address=node.address))
        link.carry(end)
        letters.entry.add_source(end)
        end.open_credit()

    def prepare(self, key: tuple[str, int, str], number: int, message: bytes) -> None:
        """Keeps an item aside, unless it has been activated already."""
        if number > self._activated.get(key, 0):
            self._prepared.setdefault(key, {})[number] = message

    def activate(self, key: tuple[str, int, str], node: QueueNode, numbers: list[int]) -> bool:
        """Puts items into the shard; False where that is full: then the rest waits."""
        prepared = self._prepared.setdefault(key, {})
        for number in numbers:
            message = prepared.get(number)
            if message is not None and not node.store.put(message):
                return False
            prepared.pop(number, None)
            self._activated[key] = max(number, self._activated.get(key, 0))
        if not prepared:
            del self._prepared[key]
        return True


class _Letters:
    """What comes by one link."""

    def __init__(
        self, core: Core, intake: Intake, key: tuple[str, int, str], node: QueueNode
    ) -> None:
        self._intake = intake
        self._key = key
        self._node = node
        self._port = Port(core, self)
        self.entry = AddressEntry(core, "(move)", CLOSEST_CODE, assembles=True)
        self.entry.add_outlet(self._port)

    def on_batch(self, port: Port) -> None:
        """Keeps items aside, and puts those into the shard that are given up elsewhere."""
        arrivals, port.arrivals = port.arrivals, []
        for data, token, source, _settled in arrivals:
            outcome = ACCEPTED if self._read(data) else RELEASED
            if source is not None:
                source.settle(token, outcome)

    def _read(self, data: bytes) -> bool:
        if data[:1] == PREPARE and len(data) > _NUMBER.size:
            (number,) = _NUMBER.unpack_from(data, 1)
            self._intake.prepare(self._key, number, data[1 + _NUMBER.size :])
            return True
        if data[:1] == ACTIVATE and len(data) % _NUMBER.size == 1:
            numbers = [each for (each,) in _NUMBER.iter_unpack(data[1:])]
            return self._intake.activate(self._key, self._node, numbers)
        return False

    def attached(self, link: Link) -> None:
        """Never happens: the other container attaches."""

    def stopping(self, link: Link) -> None:
        """Nothing is left to do."""

    def detached(self, link: Link, error: AmqpError | None) -> None:  # noqa: ARG002  # the contract's
        """Gives up what the link needed; what is kept aside stays for the next one."""
        self._port.close()
        self.entry.close()
