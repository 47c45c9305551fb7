"""The queues that may go by themselves: those of auto-delete, and those that expire.

Theory of operation. The last consumer that leaves a queue by AMQP 0-9-1 ends it at once. All other
ends (consumers of other protocols, expiry, owners elsewhere) are found by looking: a tick looks at
a tenth of these queues, so that each has its turn once a second however many there are.
"""

from __future__ import annotations

import asyncio
import logging
import time
from itertools import islice
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.amqp091.errors import ProtocolError
from cogwork.container.amqp091.declared_queue import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.container.amqp091.declared_queue import DeclaredQueue
    from cogwork.container.amqp091.queues import BasicQueues
    from cogwork.container.vhost.virtual_host import VirtualHost

__all__ = ("MortalQueues",)

TICKS_A_ROUND = 10
"""In so many ticks, a second, each queue is looked at."""

LOOKED_AT_LEAST = 100
"""So many queues are looked at in each tick: their end is not late at all."""

log = logging.getLogger("cogwork")


class MortalQueues:
    """Those of one virtual host."""

    def __init__(self, queues: BasicQueues, vhost: VirtualHost) -> None:
        """Know of none yet.

        Args:
            queues: All queues of the virtual host.
            vhost: The virtual host.
        """
        self._queues = queues
        self._vhost = vhost
        self._all: dict[str, DeclaredQueue] = {}
        self._round: Iterator[DeclaredQueue] = iter(())
        self._ending: dict[str, asyncio.Task[None]] = {}
        self._has_looked = False
        self._looked_at = (0, 0)

    def note(self, queue: DeclaredQueue) -> None:
        """Look at a queue from now on if it may go by itself."""
        queue.policy_expires_s = self._vhost.policies.expires_s(queue.address)
        expires = queue.policy_expires_s or "x-expires" in queue.traits.arguments
        if expires or queue.traits.is_auto_delete:
            self._all[queue.name] = queue

    def tick(self, now_s: float) -> None:
        """Give up what has expired, or has nobody left."""
        if not self._has_looked:
            self._look_for_kept()
        self._look_for_policies()
        count = max(LOOKED_AT_LEAST, len(self._all) // TICKS_A_ROUND)
        turns = list(islice(self._round, count))
        if len(turns) < count:
            self._round = iter(list(self._all.values()))
        for queue in turns:
            self._look(queue, now_s)

    def _look(self, queue: DeclaredQueue, now_s: float) -> None:
        if self._all.get(queue.name) is not queue:
            return  # another one has its name
        if self._queues.find(queue.name) is not queue:
            del self._all[queue.name]
        elif queue.is_abandoned or queue.is_expired(now_s):
            self.end(queue)
        elif queue.is_left:
            self._end_for_all(queue)

    def end(self, queue: DeclaredQueue) -> None:
        """Give up a queue that goes by itself: one that the cluster has goes everywhere."""
        if queue.shared is None:
            self._queues.delete(queue)
        else:
            self._end_for_all(queue)

    def _end_for_all(self, queue: DeclaredQueue) -> None:
        """Have the cluster delete a queue; where it does not, the next look tries again."""
        if queue.name not in self._ending:
            task = asyncio.get_running_loop().create_task(self._delete_for_all(queue))
            self._ending[queue.name] = task

    async def _delete_for_all(self, queue: DeclaredQueue) -> None:
        """Delete a queue of the cluster, unless its last consumer was here and others are not."""
        topology = self._vhost.topology
        try:
            is_left = queue.is_left and not (await self._queues.counts(queue)).consumers
            has_ended = queue.is_abandoned or queue.is_expired(time.monotonic())
            if topology is not None and (has_ended or (is_left and queue.is_left)):
                await topology.delete_queue(queue.name)
        except (ProtocolError, CogworkError) as error:
            log.debug("%s stays for now: %s", self._queues.place(queue.name), error)
        finally:
            del self._ending[queue.name]

    def _look_for_kept(self) -> None:
        """Know of the queues that were declared before a restart, as some of them expire."""
        self._has_looked = True
        kept = self._vhost.kept_queues
        for name in () if kept is None else kept.names():
            self._queues.find(name)

    def _look_for_policies(self) -> None:
        """Have the queues expire that policies let expire now, whoever has made them."""
        policies, nodes = self._vhost.policies, self._vhost.nodes
        looked_at = (policies.version, nodes.changes if policies.let_expire else 0)
        if looked_at == self._looked_at:
            return
        are_others, self._looked_at = looked_at[0] != self._looked_at[0], looked_at
        names = [each.removeprefix(PREFIX) for each in nodes.storing if each.startswith(PREFIX)]
        # What is known has been looked at by these policies: there may be thousands of queues.
        is_known = self._queues.is_known
        for name in names if are_others else [each for each in names if not is_known(each)]:
            queue = self._queues.find(name)
            if queue is not None:
                self.note(queue)
