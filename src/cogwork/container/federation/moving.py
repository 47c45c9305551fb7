"""Moves a leaving container's items into the shards of others: prepare, tombstone, activate.

Theory of operation. The container that leaves puts items aside and sends them, each with a number,
to another container, which keeps them aside (prepare) and accepts. From then on the one that leaves
will not give them to anybody (tombstone: a queue on disk writes that down), and says so by their
numbers; only now the other one puts them into its own shard (activate), and accepts. Whatever is
repeated after a break is recognised by its number, so an item is never in two shards, and what was
not activated is put back. One that has been started anew meanwhile does not know the numbers, and
says so: what it was given is in doubt where it may be on its disk, and else sent once more. One
that goes just then, and stays away, keeps no other items waiting: those go to others, and what it
was given is in doubt. One that is full, or is leaving, too, says which it has; what it has not goes
to others that take it, and waits where none does.

What is delayed moves with its delay, after what is ready; a container that takes nothing with its
delay (an earlier version) gets it once it is due. A queue whose items are not ready, or that
others refuse for now, keeps no other queue waiting. Where consumers elsewhere receive from a queue,
its items are spread over their containers, batch by batch, as much to each as its consumers have
asked for. A queue with partitions goes to one container as a whole, for the order of its groups.
Items on disk go only to where the queue is on disk, too; those that nobody takes stay. An item
that the other container can never take, as its sections are malformed where more of them is read,
or no record there has room for it, is refused before it is given up: it stays, with the reason,
and the others go. A queue that is deleted meanwhile is left alone at once: what it held must not be
somewhere else afterwards, but for what had been activated there before.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from cogwork.container.federation.move_batch import (
    Batch,
    DeletedError,
    Stuck,
    Unfit,
    demand_there,
    is_there,
)
from cogwork.container.federation.move_link import (
    ForgottenError,
    FullError,
    MoveError,
    MoveWay,
    NotTakenError,
)
from cogwork.container.federation.remote_consumer import RemoteConsumer
from cogwork.container.mesh.tunnels import origin_of
from cogwork.plugin.capabilities import Partitioned, Shareable, replica_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from cogwork.container.mesh.service import MeshService
    from cogwork.container.vhost.virtual_host import VirtualHost

__all__ = ("Mover", "items_of")

BATCH, BATCH_LEAST = 500, 50
"""Items that are prepared before they are activated together; fewer where several containers take
them, so that each gets its share."""

ROUNDS = 4
"""Batches for each of several containers that take what is there now."""

RETRY_S = 0.1

STALL_S = 5.0
"""So long it is waited for what others have not taken on and may be doing by themselves."""

log = logging.getLogger("cogwork")


def items_of(node: Shareable) -> int:
    """Count a queue's items, and those of its dead that have not been accepted elsewhere."""
    return node.store.depth + node.store.counts()["leaving"]


def _queues(vhost: VirtualHost) -> dict[str, Shareable]:
    """Find the queues whose items are moved: those that nobody owns."""
    return {
        address: node
        for address, node in vhost.nodes.storing.items()
        if isinstance(node, Shareable) and replica_of(node) is None
    }


def _came(queues: Mapping[str, Shareable]) -> dict[Shareable, int]:
    """Count what each queue has ever taken in."""
    return {node: node.store.counts()["in"] for node in queues.values()}


def _is_awaited(node: Shareable) -> bool:
    """Return whether items will be ready here: what is delayed on disk may stay there."""
    depth = node.store.depth
    return depth > 0 and not (node.is_on_disk and depth == node.store.counts()["delayed"])


class Mover:
    """Moves the items of one virtual host out of this container.

    Attributes:
        moved: Items that others have taken over.
    """

    def __init__(self, mesh: MeshService) -> None:
        self.moved = 0
        self._mesh = mesh
        self._number = 0
        self._trouble: dict[str, str] = {}
        self._unfit: dict[str, Unfit] = {}
        self._came: dict[Shareable, int] = {}
        self._no_delays: defaultdict[str, set[str]] = defaultdict(set)
        self._patience: defaultdict[str, _Patience] = defaultdict(_Patience)
        self._stuck: list[Stuck] = []
        self._stay: list[str] = []

    @property
    def problem(self) -> str | None:
        """Why not all could be moved; None while nothing is wrong."""
        return "; ".join([*self._stay, *self._trouble.values()]) or None

    async def move_all(self, vhost: VirtualHost, deadline_s: float) -> None:
        """Move the items of every queue of its virtual host.

        Args:
            vhost: The virtual host.
            deadline_s: When to give up, by the monotonic clock.
        """
        queues = _queues(vhost)
        left = dict(queues)
        self._stay.clear()
        while left or self._stuck:
            for address, node in list(left.items()):
                if not await self._goes_on(vhost, node, deadline_s):
                    del left[address]
            if not await self._has_more_come(vhost, left.values(), deadline_s):
                break
        for address, node in queues.items():
            self._end(vhost, address, node)
        self._came = _came(queues)

    def has_more_since(self, vhost: VirtualHost) -> bool:
        """Return whether queues have taken anything in since their items were moved."""
        known = self._came
        return any(came != known.get(node, 0) for node, came in _came(_queues(vhost)).items())

    def _end(self, vhost: VirtualHost, address: str, node: Shareable) -> None:
        """Put back what can never be taken elsewhere, and say what stays of a queue."""
        unfit = self._unfit.pop(address, None)
        if not is_there(vhost, node):
            self._trouble.pop(address, None)
            return
        if unfit is not None:
            node.store.enter_again(unfit.numbers)
            self._trouble.setdefault(address, unfit.why)
        self._say_what_stays(address, node)

    async def _has_more_come(
        self, vhost: VirtualHost, left: Collection[Shareable], deadline_s: float
    ) -> bool:
        """Wait for what consumers have, what is due later, and dead letters that come to queues.

        Returns:
            Whether there is more to move.
        """
        until_s = min(deadline_s, time.monotonic() + STALL_S)
        while True:
            queues = [node for node in left if is_there(vhost, node)]
            if any(node.store.waiting or self._takes_delayed(node) for node in queues):
                return time.monotonic() < deadline_s
            is_pending = bool(self._stuck) or any(map(_is_awaited, queues))
            if time.monotonic() > (deadline_s if is_pending else until_s):
                return False
            if not is_pending and not any(node.store.counts()["leaving"] for node in queues):
                return False
            await asyncio.sleep(RETRY_S)
            await self._try_stuck(deadline_s)

    def _say_what_stays(self, address: str, node: Shareable) -> None:
        stays = items_of(node)
        if stays:
            where = "stay on disk" if node.is_on_disk else "could not be moved"
            why = self._trouble.get(address, "")
            self._stay.append(f"{stays} items of {address!r} {where}{why and ': '}{why}")
            log.warning("%s", self._stay[-1])
        self._trouble.pop(address, None)

    async def _goes_on(self, vhost: VirtualHost, node: Shareable, deadline_s: float) -> bool:
        """Do `_move_queue`; a queue at which that fails keeps no other one here."""
        try:
            return await self._move_queue(vhost, node, deadline_s)
        except Exception as error:  # whatever it is, the others' items are not to be lost
            log.exception("cannot move the items of %r", node.address)
            self._trouble[node.address] = f"moving them failed: {error!r:.200}"
            return False

    async def _move_queue(self, vhost: VirtualHost, node: Shareable, deadline_s: float) -> bool:
        """Move what is ready of a queue; return False where no more of it is going to be moved.

        What consumers have comes back, or is done with: others go on meanwhile.
        """
        given: Counter[str] = Counter()
        refused: set[str] = set()
        patience = _Patience()
        most = node.store.waiting  # what comes meanwhile has its turn after other queues
        while node.store.waiting and given.total() < most and time.monotonic() < deadline_s:
            if not is_there(vhost, node):
                return False
            if not await self._move_batch(vhost, node, given, refused, deadline_s):
                await self._try_stuck(deadline_s)
                if not node.is_on_disk:
                    break
                if not self._stuck and self._is_hopeless(node, refused, patience):
                    return False
                await asyncio.sleep(RETRY_S)
        return await self._move_delayed(vhost, node, given, deadline_s)

    async def _move_delayed(
        self, vhost: VirtualHost, node: Shareable, given: Counter[str], deadline_s: float
    ) -> bool:
        """Do the same for what is delayed."""
        no_delays = self._no_delays[node.address]
        while self._takes_delayed(node) and time.monotonic() < deadline_s:
            if not is_there(vhost, node):
                return False
            if await self._move_batch(vhost, node, given, no_delays, deadline_s, is_delayed=True):
                continue
            if node.is_on_disk and self._patience[node.address].is_over(node.store.depth):
                return False
            break
        return is_there(vhost, node) and time.monotonic() < deadline_s

    def _takes_delayed(self, node: Shareable) -> bool:
        """Return whether items are delayed that somebody may take."""
        if not node.store.counts()["delayed"]:
            return False
        return self._target(node, Counter(), set(), self._no_delays[node.address]) is not None

    def _is_hopeless(self, node: Shareable, refused: set[str], patience: _Patience) -> bool:
        """Return whether consumers elsewhere have nothing, either, and nobody has come back."""
        is_refused = bool(refused) or not self._mesh.diallers
        return (is_refused and not self._takers(node)) or patience.is_over(node.store.depth)

    async def _move_batch(
        self,
        vhost: VirtualHost,
        node: Shareable,
        given: Counter[str],
        refused: set[str],
        deadline_s: float,
        *,
        is_delayed: bool = False,
    ) -> bool:
        """Move some items; return False where there is nobody to take any.

        What has been given up here and not been activated for sure stays aside, and the others go
        on: on disk it is not lost, and in doubt when the container is started again.
        """
        batch: Batch | None = None
        failed = {each.target or "" for each in self._stuck}
        while is_there(vhost, node) and time.monotonic() < deadline_s:
            target = self._target(node, given, failed, refused)
            if target is None and (node.is_on_disk or is_delayed):
                break
            stuck: Stuck | None = None
            try:
                with MoveWay(self._mesh, vhost, node, target) as way:
                    await way.opened(deadline_s)
                    demand_there(vhost, node)
                    if is_delayed and not way.takes_past:
                        raise NotTakenError(f"container {target} takes nothing that is delayed")
                    batch = batch or self._take_batch(node, is_delayed=is_delayed)
                    unfit = await way.prepare(batch.items, deadline_s)
                    demand_there(vhost, node)
                    self._set_aside(node, batch, unfit, target)
                    node.store.tombstone(batch.numbers)
                    stuck = Stuck(vhost, node, target, batch)
                    await way.activate(batch.items, deadline_s)
                    self._arrived(stuck)
            except MoveError as error:
                self._trouble[node.address] = str(error)
                if isinstance(error, NotTakenError):
                    refused.add(target or "")
                failed.add(target or "")
                has_other = self._has_other(node, failed, refused)
                if stuck is not None:
                    self._failed(stuck, error)
                    if not await self._is_free(stuck, error, deadline_s, has_other=has_other):
                        return True
                await asyncio.sleep(RETRY_S)
                if batch is None and not has_other:
                    break  # other queues' items may be taken
                continue
            given[target or ""] += len(batch.numbers)
            return True
        if batch is not None and is_there(vhost, node):
            node.store.enter_again(batch.numbers)
        return False

    def _has_other(self, node: Shareable, failed: set[str], refused: set[str]) -> bool:
        """Return whether there is a container that has not failed to take the items."""
        target = self._target(node, Counter(), failed, refused)
        return target is not None and target not in failed

    def _arrived(self, stuck: Stuck) -> None:
        stuck.give_up(stuck.batch.numbers)
        self.moved += len(stuck.batch.numbers)
        self._trouble.pop(stuck.node.address, None)

    def _failed(self, stuck: Stuck, error: MoveError) -> None:
        """Note why items are not activated, all of them: some may be."""
        self._trouble[stuck.node.address] = str(error)
        if isinstance(error, FullError):
            first = list(stuck.batch.items)[: error.taken]
            stuck.give_up([stuck.batch.drop(each) for each in first])
            self.moved += len(first)

    # -- containers that go while they take items

    async def _is_free(
        self, stuck: Stuck, error: MoveError | None, deadline_s: float, *, has_other: bool
    ) -> bool:
        """Wait a little for the container that has to activate items; the others go on then.

        Returns:
            Whether they can go to another one: with its memory it has lost what it may have had, or
            it takes no more of them, and there is another one.
        """
        while error is not None and not isinstance(error, DeletedError | ForgottenError):
            if isinstance(error, FullError) and has_other:
                return True
            if stuck.is_over(STALL_S) or time.monotonic() > deadline_s:
                self._stuck.append(stuck)
                return False
            await asyncio.sleep(RETRY_S)
            error = await self._activate(stuck, deadline_s)
        return error is not None and not stuck.node.is_on_disk

    async def _activate(self, stuck: Stuck, deadline_s: float) -> MoveError | None:
        """Have items activated; return why they are not."""
        try:
            demand_there(stuck.vhost, stuck.node)
            with MoveWay(self._mesh, stuck.vhost, stuck.node, stuck.target) as way:
                await way.opened(deadline_s)
                demand_there(stuck.vhost, stuck.node)
                await way.activate(stuck.batch.items, deadline_s)
        except MoveError as error:
            self._failed(stuck, error)
            return error
        self._arrived(stuck)
        return None

    async def _try_stuck(self, deadline_s: float) -> None:
        """Look whether containers are back that have items to activate.

        In memory their items are moved once more where the queue delivers again what is in doubt,
        when it would; else they are waited for to the end, as nothing else can become of them. What
        one has no room for is in no doubt.
        """
        for stuck in self._stuck.copy():
            error = await self._activate(stuck, deadline_s)
            is_full = isinstance(error, FullError)
            is_over = stuck.has_waited if is_full else stuck.is_in_doubt
            is_known = error is None or isinstance(error, DeletedError | ForgottenError)
            if is_known or is_over:
                self._stuck.remove(stuck)
                if is_full or (error is not None and not stuck.node.is_on_disk):
                    stuck.put_back()

    def _set_aside(
        self, node: Shareable, batch: Batch, unfit: Mapping[int, str], target: str | None
    ) -> None:
        """Keep what another container can never take from being offered again and again."""
        for number, why in unfit.items():
            known = self._unfit.setdefault(node.address, Unfit())
            known.numbers.append(batch.drop(number))
            known.why = f"container {target} can never take them: {why}"

    def _take_batch(self, node: Shareable, *, is_delayed: bool) -> Batch:
        batch = Batch(node, self._batch(node), self._number, is_delayed=is_delayed)
        self._number += len(batch.numbers)
        return batch

    def _batch(self, node: Shareable) -> int:
        """Return how many items to move at once."""
        takers = len(self._takers(node))
        if takers < 2:
            return BATCH
        return max(BATCH_LEAST, min(BATCH, node.store.depth // (ROUNDS * takers)))

    def _takers(self, node: Shareable) -> Counter[str]:
        """Count what consumers elsewhere have asked this shard for, by their container."""
        found: Counter[str] = Counter()
        if isinstance(node, Partitioned) and node.is_partitioned:
            return found
        for connection in self._mesh.data_connections():
            for session in connection.sessions:
                for link in session.links.values():
                    if isinstance(link.context, RemoteConsumer) and link.context.node is node:
                        end = link.context.subscription.link
                        found[origin_of(session) or ""] += max(1, end.credit + end.unsettled)
        return found

    def _target(
        self, node: Shareable, given: Counter[str], failed: set[str], refused: set[str]
    ) -> str | None:
        """Choose who takes items: one whose consumers ask for them, else who is nearest.

        Workers leave together: items go to each other only where there is nobody else.

        Args:
            node: The queue.
            given: How many of its items each container has got.
            failed: The containers that have not taken these.
            refused: Those that never will.

        Returns:
            Its id; None where there is nobody.
        """
        takers = self._takers(node)
        costs = self._mesh.mesh.routes.tree.costs
        others = [
            container
            for container in costs
            if container != self._mesh.id
            and container not in refused
            and self._mesh.way_to(container) is not None
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


class _Patience:
    """How long it is waited for something to change."""

    def __init__(self) -> None:
        self._depth = -1
        self._since_s = 0.0

    def is_over(self, depth: int) -> bool:
        """Return whether nobody has got any items lately."""
        now_s = time.monotonic()
        if depth != self._depth:
            self._depth, self._since_s = depth, now_s
        return now_s - self._since_s > STALL_S
