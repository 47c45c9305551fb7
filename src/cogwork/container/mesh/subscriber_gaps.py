"""What subscribers have missed while the mesh was parted for long, and how they hear of it.

Theory of operation. A container that cannot be reached is waited for, and then given up: from then
on publishers are told `accepted` though its subscribers get nothing. Some of these may still be
there, in a part of the mesh that was cut off. So whoever gives a container up notes for which of
its patterns and addresses something went by (`SubscriberGaps`), and says so with the next link that
it attaches there. The other container then detaches the subscribers that have missed something
(`detach_stale_subscribers`): nobody stays who lacks what was accepted.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from cogwork.amqp.errors import AmqpError
from cogwork.amqp.extensions import MESSAGES_MISSED
from cogwork.container.vhost.attachments import Attachment
from cogwork.dataplane.addresses.entry import MULTICAST_CODE
from cogwork.dataplane.addresses.lost_branch import LostBranch
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.plugin.capabilities import Bindable
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cogwork.container.mesh.service import MeshService
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.link import Link

__all__ = ("Report", "SubscriberGaps", "detach_stale_subscribers", "read_gaps")

EVERYTHING = ""
"""Stands for all addresses: nobody remembers any more which of them were wanted."""

REPORT_BYTES_MAX = 8 * 1024
"""Of addresses in one attach; where there are more it says everything."""

NOTES_MAX = 1024
"""Containers of which something is noted; a mesh has no more. The oldest note goes."""

log = logging.getLogger("cogwork")


@dataclass(slots=True)
class Note:
    """What one container has missed.

    Attributes:
        life: That of it which wanted something; the next one has no subscribers of that.
        last_s: When it missed something last, by address.
        is_forgotten: Whether the mesh has forgotten what it wanted.
    """

    life: int
    last_s: dict[str, float] = field(default_factory=dict)
    is_forgotten: bool = False


class Report(NamedTuple):
    """What a container is told.

    Attributes:
        said: By address, how many milliseconds ago it missed something last.
        until_s: The notes that this is made of.
    """

    said: dict[str, int]
    until_s: dict[str, float]


class SubscriberGaps:
    """What goes by while containers are given up. Owned by the reach.

    Attributes:
        telling: Containers that are just being told.
    """

    def __init__(self, mesh: MeshService) -> None:
        self.telling: set[str] = set()
        self._mesh = mesh
        self._outlets: dict[tuple[str, str], LostBranch] = {}
        self._notes: dict[str, Note] = {}
        self._lives: dict[str, int] = {}

    def know(self, container: str) -> None:
        """Take note of which life of a container wants something."""
        self._lives[container] = self._mesh.mesh.life_of(container)

    def give_up(self, container: str, address: str) -> LostBranch:
        """Return an outlet that takes nothing for a container, and note what went by."""
        outlet = self._outlets[container, address] = LostBranch(self._mesh.core, True)
        return outlet

    def take_back(self, container: str, address: str) -> LostBranch | None:
        """Close such an outlet; return it to be taken out, None where there was none."""
        outlet = self._outlets.pop((container, address), None)
        if outlet is None:
            return None
        if outlet.missed:
            self._note_of(container).last_s[address] = outlet.missed_at_s
        outlet.close()
        return outlet

    def take_back_all(self, address: str) -> list[LostBranch]:
        """Close the outlets for all containers that want an address."""
        containers = [container for container, each in self._outlets if each == address]
        found = [self.take_back(container, address) for container in containers]
        return [outlet for outlet in found if outlet is not None]

    def forget(self, container: str) -> None:
        """Take note that nobody remembers what a container wanted, which may still be there."""
        self._note_of(container).is_forgotten = True

    def sweep(self) -> None:
        """Forget the lives of containers that the mesh has forgotten."""
        known = self._mesh.mesh.database.records
        self._lives = {each: life for each, life in self._lives.items() if each in known}

    def _note_of(self, container: str) -> Note:
        life = self._lives.get(container, 0)
        note = self._notes.get(container)
        if note is None or (life and note.life != life):
            note = self._notes[container] = Note(life)
            if len(self._notes) > NOTES_MAX:
                del self._notes[next(iter(self._notes))]
        return note

    def report(self, container: str) -> Report | None:
        """Return what a container is to be told; None where there is nothing."""
        note = self._notes.get(container)
        if note is None:
            return None
        if note.life != self._mesh.mesh.life_of(container):
            del self._notes[container]
            return None
        now_s = time.monotonic()
        until_s = dict(note.last_s)
        if note.is_forgotten:
            known_s = self._mesh.mesh.known_for_s(container, now_s)
            return Report({EVERYTHING: _milliseconds(known_s)}, until_s)
        if sum(len(address.encode()) for address in until_s) > REPORT_BYTES_MAX:
            return Report({EVERYTHING: _milliseconds(now_s - max(until_s.values()))}, until_s)
        said = {address: _milliseconds(now_s - at_s) for address, at_s in until_s.items()}
        return Report(said, until_s)

    def untold(self) -> list[str]:
        """List the containers that can be reached, and nobody is telling what they have missed."""
        reachable = self._mesh.mesh.routes.next_hops
        return [each for each in self._notes if each in reachable and each not in self.telling]

    def told(self, container: str, report: Report) -> None:
        """Take note that a container has heard what it had missed."""
        self.telling.discard(container)
        note = self._notes.get(container)
        if note is None:
            return
        note.is_forgotten = False
        for address, at_s in report.until_s.items():
            if note.last_s.get(address) == at_s:
                del note.last_s[address]
        if not note.last_s:
            del self._notes[container]


def _milliseconds(seconds: float) -> int:
    return max(0, int(1000 * seconds))


def read_gaps(said: object) -> dict[str, float]:
    """Return what another container says was missed here: by address, how many seconds ago."""
    if not isinstance(said, dict):
        return {}
    return {
        str(address): ago_ms / 1000
        for address, ago_ms in said.items()
        if isinstance(ago_ms, int) and ago_ms >= 0
    }


def detach_stale_subscribers(
    vhost: VirtualHost, container: str, missed: Mapping[str, float]
) -> None:
    """Detach the subscribers that have missed what another container was told is accepted.

    Args:
        vhost: Whose subscribers.
        container: Which had given this one up.
        missed: How many seconds ago something was missed last, by pattern or address.
    """
    now_s = time.monotonic()
    for link, ago_s in list(_losers(vhost, missed)):
        context = link.context
        if not isinstance(context, Attachment) or context.since_s > now_s - ago_s:
            continue
        log.warning(
            "detached subscriber %r: it missed messages of container %s, which could not "
            "reach this one",
            link.name,
            container,
        )
        link.detach(
            AmqpError(
                condition=MESSAGES_MISSED,
                description=f"messages that container {container} accepted while it could not "
                "reach this one have not come; subscribe again",
            )
        )


def _losers(vhost: VirtualHost, missed: Mapping[str, float]) -> Iterator[tuple[Link, float]]:
    """Yield who has missed something, and how many seconds ago that was last.

    These are the links that have one of the patterns, or receive from one of the multicast
    addresses. It looks at each link once: there may be many of them, and much may be missed.
    """
    everything_s = missed.get(EVERYTHING, math.inf)
    for node in vhost.nodes.values():
        if isinstance(node, Bindable):
            for end in node.subscribers:
                patterns = (node.root.name + pattern for pattern in node.patterns_of(end))
                agos_s = (min(missed.get(each, math.inf), everything_s) for each in patterns)
                ago_s = min(agos_s, default=math.inf)
                if ago_s < math.inf:
                    yield end.owner, ago_s
    names = [name.decode() for name in vhost.space.entries] if EVERYTHING in missed else missed
    for name in names:
        entry = vhost.space.entries.get(name.encode())
        if entry is None or entry.distribution != MULTICAST_CODE or not _is_plain(vhost, name):
            continue
        ago_s = min(missed.get(name, everything_s), everything_s)
        for outlet in entry.outlets:
            if isinstance(outlet, OutgoingLink) and not outlet.is_branch:
                yield outlet.owner, ago_s


def _is_plain(vhost: VirtualHost, address: str) -> bool:
    try:
        return vhost.rule_of(address)[1].kind == "direct"
    except Refused:
        return False
