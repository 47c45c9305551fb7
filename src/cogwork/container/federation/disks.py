"""Queues on disk over linked containers: which containers keep which of them so.

Theory of operation. Each container keeps what it accepts of a queue as the queue is declared there.
One that has a queue on disk tells the others; those that would keep it so, too, by their address
rules, answer that. So every container knows where a queue is kept otherwise than with it, and can
say so: who asked for a disk at one container is not to believe that it holds at all of them.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cogwork.container.mesh.changes import Changes
from cogwork.container.mesh.elsewhere import Elsewhere
from cogwork.plugin.capabilities import Storing, replica_of
from cogwork.plugin.node import Refused
from cogwork.plugin.node_kinds import provides
from cogwork.router.mesh.messages import Interest, InterestKind

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from cogwork.container.mesh.service import MeshService
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.plugin.node import Node

__all__ = ("Disks",)

MEMORY, DISK = "memory", "disk"

SHOWN_MAX = 5
"""Containers that a text names; of more it tells the number."""

log = logging.getLogger("cogwork")


class Disks:
    """The queues on disk of one virtual host, here and elsewhere."""

    def __init__(self, mesh: MeshService, vhost: VirtualHost) -> None:
        self._mesh = mesh
        self._vhost = vhost
        self._elsewhere = Elsewhere()
        self._told: dict[str, bool] = {}
        self._warned: set[str] = set()
        self._changes = Changes(self._settle)

    def take_interest(self, container: str, interest: Interest) -> None:
        """Take note of a container that keeps a queue on disk, or would."""
        self._elsewhere.take(container, interest)
        self.changed(interest.address)

    def lose_interest(self, container: str, interest: Interest) -> None:
        """Take note that a container keeps a queue on disk no longer."""
        self._elsewhere.lose(container, interest)
        self.changed(interest.address)

    def changed(self, address: str) -> None:
        """Have a queue looked at, at the end of the loop's turn: it may be kept otherwise now."""
        self._changes.add(address)

    def rules_changed(self) -> None:
        """Have all looked at that would be kept otherwise by other rules."""
        for address in {*self._elsewhere, *self._told}:
            self.changed(address)

    def _settle(self, changed: Set[str]) -> None:
        for address in changed:
            node = self._vhost.nodes.get(address)
            if node is None:
                self._tell(address, False if self._would_keep(address) else None)
            else:
                self._tell(address, True if self._keeps(node) else None)
            self._warn(address)

    @staticmethod
    def _keeps(node: Node) -> bool:
        """Return whether a queue that nobody owns is on disk here."""
        return isinstance(node, Storing) and node.durability == DISK and replica_of(node) is None

    def _would_keep(self, address: str) -> bool:
        """Return whether a queue that others have on disk would be so here, once it is used."""
        # Whoever only would be one to have it is no reason for anybody else to say the same.
        if not any(said.consumers for said in self._elsewhere.at(address).values()):
            return False
        try:
            rule = self._vhost.rule_of(address)[1]
        except Refused:
            return False
        return provides(rule.kind, Storing) and rule.options.get("durability") == DISK

    def _tell(self, address: str, has_it: bool | None) -> None:
        """Tell the others whether a queue is on disk here, or only would be; None is neither."""
        if has_it is self._told.get(address):
            return
        if has_it is None:
            del self._told[address]
        else:
            self._told[address] = has_it
        figures = {"consumers": int(has_it is True), "producers": int(has_it is False)}
        self._mesh.set_interest(Interest(InterestKind.DISK, self._vhost.name, address, **figures))

    def _warn(self, address: str) -> None:
        """Log, once, that a queue which is on disk elsewhere is in memory here."""
        node = self._vhost.nodes.get(address)
        others = sorted(self._elsewhere.at(address))
        is_in_memory = isinstance(node, Storing) and node.durability == MEMORY
        if not others or not is_in_memory or replica_of(node) is not None:
            self._warned.discard(address)
        elif address not in self._warned:
            self._warned.add(address)
            log.warning(
                "queue %r is in memory here but on disk at %s: its messages here are lost if this "
                "container stops; declare the queue with durability = disk here, too",
                address,
                _names(others),
            )

    def problem(self, address: str, durability: str) -> str | None:
        """Return where a queue of this container is kept otherwise; None where it is nowhere."""
        there = self._elsewhere.at(address)
        if durability == DISK:
            lacking = self._mesh.mesh.routes.next_hops.keys() - there.keys()
            return f"not on disk at {_names(sorted(lacking))}" if lacking else None
        if durability == MEMORY and there:
            return f"in memory here, on disk at {_names(sorted(there))}"
        return None


def _names(containers: Sequence[str]) -> str:
    """Name containers in a text, or the first few of many."""
    more = len(containers) - SHOWN_MAX
    shown = ", ".join(containers[:SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")
    return f"container {shown}" if len(containers) == 1 else f"containers {shown}"
