"""The memory of queues: who made the queues that take too much of it has to wait until they shrink.

Theory of operation. What queues hold in memory counts for who made them: a user, or a source
address where there is none. A queue that no client made, as it is configured or was on the disk,
counts for itself. What another user has sent to a queue counts for that one, and not for the maker:
each item knows the connection that it came by, and the largest queues are looked at, a sample of
each. Who has too much by that gets no credit on any of its connections. So nobody fills all memory
by queues of its own, and neither does a queue that all may send to. Ten times a second it is summed
up how much each has left, and each of its queues may grow by that. A queue that has is full: its
publishers get no credit, and consumers go on. Where all hold too much together, an equal part is
what each may have: those wait who hold more.

Sums are made only while the process is so large that somebody can be over a limit, so that it costs
nothing but then.
"""

from __future__ import annotations

import logging
from collections import Counter
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple

from cogwork.config.limits import Limits
from cogwork.container.connections.clients import ClientContext
from cogwork.container.connections.memory import resident_bytes
from cogwork.container.connections.shares import NOBODYS, Holder
from cogwork.container.connections.watermark import RELEASE_SHARE, available_bytes
from cogwork.dataplane.queue.store import NO_CEILING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cogwork.container.connections.node_shares import Makers
    from cogwork.container.connections.shares import OwnLimits
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.plugin.capabilities import Storing

__all__ = ("QueueMemory", "equal_part")

MANY = 5_000
"""Of so many queues sums are made once a second: that takes some milliseconds."""

LARGEST = 40
SAMPLED = 500
"""In so many queues so many items are looked at for who sent them: some 2 ms for all."""

USERS_KEPT = 20_000
"""Of more connections those are forgotten of which nothing was found; others come again."""

log = logging.getLogger("cogwork")


class _Queue(NamedTuple):
    """One queue.

    Attributes:
        holder: For whom its memory counts.
        node: The queue.
    """

    holder: Holder
    node: Storing


class QueueMemory:
    """That of one container's queues.

    Attributes:
        held: How many bytes each holder's queues have, by the last sums.
        sent: How many bytes each user has in the queues of others, by the last sums.
        over: The users who have too much by what they sent to others' queues.
    """

    def __init__(self) -> None:
        """Nobody waits."""
        self.held: Counter[Holder] = Counter()
        self.sent: Counter[Holder] = Counter()
        self.over: set[Holder] = set()
        self._users: dict[int, Holder] = {}
        self._waiting: set[Holder] = set()
        self._limits = Limits()
        self._own: dict[Holder, float] = {}
        self._has_ceilings = False
        self._available_bytes = available_bytes()
        self._left_out = 0

    def look(
        self,
        vhosts: Iterable[VirtualHost],
        limits: Limits,
        own: OwnLimits = NOBODYS,
        users: Callable[[], Mapping[int, Holder]] = dict,
    ) -> None:
        """Compare, ten times a second.

        Args:
            vhosts: Where the queues are.
            limits: How much of the memory they may take.
            own: Those of single users, by their names.
            users: Tells whose the connections are that stand, by the origins of what they send.
        """
        self._limits = limits
        self._own = {
            Holder("user", name): each.queue_memory
            for name, each in own.items()
            if each.queue_memory is not None
        }
        least = min(limits.queue_memory, limits.queue_memory_per_user, *self._own.values())
        is_large = 2 * resident_bytes() >= self._available_bytes * least
        if not is_large and not self._has_ceilings and not self.over:
            self.held.clear()
            self.sent.clear()
            self._users.clear()
        elif self._left_out:
            self._left_out -= 1
        else:
            self._users |= users()
            self._compare([each for vhost in vhosts for each in _queues_of(vhost)])

    def _compare(self, queues: list[_Queue]) -> None:
        self._left_out = 9 if len(queues) > MANY else 0
        self._sum_up(queues)
        part_bytes = equal_part(self.held, int(self._available_bytes * self._limits.queue_memory))
        shares = {each: min(part_bytes, self._share_of(each)) for each in {*self.held, *self.sent}}
        self._has_ceilings = False
        for holder, node in queues:
            self._bound(node, shares[holder], self.held[holder] + self.sent[holder])
        self._tell(shares)
        self._note_over(shares)

    def _sum_up(self, queues: list[_Queue]) -> None:
        self.held.clear()
        self.sent.clear()
        for holder, node in queues:
            self.held[holder] += _size_bytes(node)
        found: set[int] = set()
        for holder, node in nlargest(LARGEST, queues, key=lambda each: _size_bytes(each.node)):
            for origin, size_bytes in node.store.items.origins(SAMPLED).items():
                found.add(origin)
                user = self._users.get(origin)
                if user is not None and user != holder:
                    self.sent[user] += size_bytes
                    if holder.kind != "queue":  # what nobody made is bounded as a whole, too
                        self.held[holder] -= size_bytes
        if len(self._users) > USERS_KEPT:
            self._users = {each: user for each, user in self._users.items() if each in found}

    def _note_over(self, shares: Mapping[Holder, int]) -> None:
        for each in self.over | set(self.sent):
            has_bytes, share_bytes = self.held[each] + self.sent[each], shares.get(each, 1)
            if each not in self.over and self.sent[each] and has_bytes >= share_bytes:
                self.over.add(each)
                log.warning(
                    "%s gets no credit: what it sent takes %d bytes of memory in queues, of %d "
                    "(limits.queue_memory, limits.queue_memory_per_user)",
                    each,
                    has_bytes,
                    share_bytes,
                )
            elif each in self.over and has_bytes < RELEASE_SHARE * share_bytes:
                self.over.remove(each)
                log.warning("%s gets credit again", each)

    def _share_of(self, holder: Holder) -> int:
        share = self._own.get(holder, self._limits.queue_memory_per_user)
        return int(self._available_bytes * share)

    def _bound(self, node: Storing, share_bytes: int, held_bytes: int) -> None:
        """Say how much a queue may grow; it matters before its holder has its whole share."""
        store, before = node.store, node.store.is_held_up
        if 2 * held_bytes < share_bytes:
            store.ceiling_bytes = NO_CEILING
        else:
            self._has_ceilings = True
            store.ceiling_bytes = max(0, _size_bytes(node) + share_bytes - held_bytes)
        if before and not store.is_held_up:
            store.reopen()

    def _tell(self, shares: Mapping[Holder, int]) -> None:
        for each, held_bytes in self.held.items():
            share_bytes = shares[each]
            if held_bytes >= share_bytes and each not in self._waiting:
                self._waiting.add(each)
                log.warning(
                    "the queues of %s take no messages: they hold %d bytes of memory, of %d "
                    "(limits.queue_memory, limits.queue_memory_per_user)",
                    each,
                    held_bytes,
                    share_bytes,
                )
        for each in list(self._waiting):
            if self.held[each] >= RELEASE_SHARE * shares.get(each, 1):
                continue
            self._waiting.remove(each)
            log.warning("the queues of %s take messages again", each)


def equal_part(held: Mapping[Holder, int], most_bytes: int) -> int:
    """Return how much each may have: an equal part where all have too much together.

    Args:
        held: How much each has.
        most_bytes: What all may have together.
    """
    if sum(held.values()) < most_bytes:
        return most_bytes
    return most_bytes // max(1, sum(map(bool, held.values())))


def _size_bytes(node: Storing) -> int:
    return node.store.items.memory_bytes


def _queues_of(vhost: VirtualHost) -> Iterator[_Queue]:
    above = f"{vhost.name}/" if vhost.name else ""
    for key, node in vhost.nodes.storing.items():
        yield _Queue(_holder_of(vhost.nodes.makers_of(key), above + key), node)
    for address, each in vhost.temporary.items():
        client = each.owner.context
        if each.queue is not None and isinstance(client, ClientContext):
            yield _Queue(_holder_of(client.makers, above + address), each.queue)


def _holder_of(makers: Makers, queue: str) -> Holder:
    """Return for whom a queue counts."""
    by_kind = {each.kind: each for each in makers}
    return by_kind.get("user") or by_kind.get("source") or Holder("queue", queue)
