"""What a container counts of its traffic, added up over addresses and links that come and go.

Theory of operation. Counters live with what they count: an address that nobody uses is forgotten,
a link to another container is closed when it has rested. So they are looked at now and then, and
what they have grown by is added to sums that stay. A counter that has gone is looked at one last
time where it was known; what came and went between two looks is not counted. New names may come for
as long as the container runs: where there are too many, the sums of what has gone are forgotten.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, cast

from cogwork.container.mesh.away import Away
from cogwork.container.mesh.lender import Lender
from cogwork.container.mesh.tunnels import origin_of
from cogwork.dataplane.outgoing import OutgoingLink
from cogwork.nodes.queue import QueueNode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.container.mesh.service import MeshService
    from cogwork.container.virtual_host import VirtualHost
    from cogwork.dataplane.connection import Connection
    from cogwork.dataplane.entry import AddressEntry
    from cogwork.dataplane.store import Store

__all__ = ("AddressSum", "Sums", "Traffic", "latency_of")

ADDRESSES_MAX = 10_000
"""Addresses that are looked at; more in one container are told apart by nobody."""

PAIRS_MAX = 10_000
"""Addresses, each with a container that messages went to; of more those without a link go."""

QUANTILES = {"p50": 50, "p90": 90, "p99": 99}


class Sums:
    """Counters that grow by what another counter has grown by."""

    __slots__ = ("_seen", "totals")

    def __init__(self, count: int) -> None:
        self.totals = [0] * count
        self._seen: list[int] = [0] * count

    def add(self, values: tuple[int, ...]) -> None:
        """Adds what has come since the last call."""
        for at, value in enumerate(values):
            self.totals[at] += value - self._seen[at]
            self._seen[at] = value

    def restart(self) -> None:
        """Takes note that the counter begins anew."""
        self._seen = [0] * len(self._seen)


class AddressSum(Sums):
    """An address's messages in and out, and bytes in."""

    __slots__ = ("entry",)

    def __init__(self, entry: AddressEntry) -> None:
        super().__init__(3)
        self.entry = entry


class Traffic:
    """Sums over addresses and links. Owned by the telemetry.

    Attributes:
        addresses: By virtual host and address.
        matrix: Messages and bytes that went to other containers, by address and container.
        connection_bytes: What came and went over connections: in, out.
        forgotten: Messages of the addresses that were forgotten: in, out.
    """

    def __init__(self) -> None:
        self.addresses: dict[tuple[str, str], AddressSum] = {}
        self.matrix: dict[tuple[str, str], list[int]] = {}
        self.connection_bytes = [0, 0]
        self.forgotten = [0, 0]
        self._ways: dict[OutgoingLink, tuple[tuple[str, str], int, int]] = {}
        self._connections: dict[Connection, tuple[int, int]] = {}

    def look(
        self,
        vhosts: dict[str, VirtualHost],
        mesh: MeshService,
        connections: Iterator[Connection],
    ) -> None:
        """Adds what has come since the last look."""
        if len(self.addresses) >= ADDRESSES_MAX:
            self._forget_addresses(vhosts)
        for vhost in vhosts.values():
            self._look_at_addresses(vhost)
        self.look_at_ways(mesh)
        self._look_at_connections(connections)

    def _look_at_addresses(self, vhost: VirtualHost) -> None:
        for entry in islice(_entries(vhost), ADDRESSES_MAX):
            key = (vhost.name, entry.name)
            known = self.addresses.get(key)
            if known is None:
                if len(self.addresses) >= ADDRESSES_MAX:
                    continue
                known = self.addresses[key] = AddressSum(entry)
            elif known.entry is not entry:
                known.restart()
                known.entry = entry
            # What a node hands on it counts itself.
            node = vhost.nodes.get(entry.name)
            sent = node.status().get("out", 0) if isinstance(node, QueueNode) else entry.delivered
            known.add((entry.received, cast("int", sent), entry.received_bytes))

    def _forget_addresses(self, vhosts: dict[str, VirtualHost]) -> None:
        """Gives up the sums of the addresses that have gone; they are counted, and told no more."""
        standing = {
            (name, entry.name) for name, vhost in vhosts.items() for entry in _entries(vhost)
        }
        for key in self.addresses.keys() - standing:
            came, went, _ = self.addresses.pop(key).totals
            self.forgotten[0] += came
            self.forgotten[1] += went

    def look_at_ways(self, mesh: MeshService) -> None:
        """Adds what has gone to other containers since the last look."""
        for link, key in chain(_ways(mesh), self._known_ways()):
            _, messages, size_bytes = self._ways.get(link, (key, 0, 0))
            total = self.matrix.setdefault(key, [0, 0])
            total[0] += link.deliveries - messages
            total[1] += link.sent_bytes - size_bytes
            self._ways[link] = (key, link.deliveries, link.sent_bytes)
        self._ways = {link: seen for link, seen in self._ways.items() if not link.detached}
        if len(self.matrix) > PAIRS_MAX:
            standing = {seen[0] for seen in self._ways.values()}
            self.matrix = {key: total for key, total in self.matrix.items() if key in standing}

    def _known_ways(self) -> list[tuple[OutgoingLink, tuple[str, str]]]:
        return [(link, seen[0]) for link, seen in self._ways.items()]

    def _look_at_connections(self, connections: Iterator[Connection]) -> None:
        standing = dict.fromkeys(connections)
        for connection in [*standing, *(it for it in self._connections if it not in standing)]:
            wire = connection.wire
            came, went = self._connections.get(connection, (0, 0))
            self.connection_bytes[0] += wire.bytes_in - came
            self.connection_bytes[1] += wire.bytes_out - went
            self._connections[connection] = (wire.bytes_in, wire.bytes_out)
        self._connections = {it: self._connections[it] for it in standing}


def _entries(vhost: VirtualHost) -> Iterator[AddressEntry]:
    """Lists what counts the messages of a virtual host's addresses."""
    root = vhost.space.topic_root
    return chain(() if root is None else (root,), vhost.space.entries.values())


def _ways(mesh: MeshService) -> Iterator[tuple[OutgoingLink, tuple[str, str]]]:
    """Lists the links that lead to other containers, with address and container."""
    for connection in mesh.data_connections():
        for session in connection.sessions:
            for link in session.links.values():
                end, context = link.end, link.context
                if not isinstance(end, OutgoingLink):
                    continue
                if isinstance(context, Away):
                    yield end, (_address_of(context), context.container)
                elif isinstance(context, Lender):
                    yield end, (context.subscription.address, origin_of(session) or "")


def latency_of(store: Store) -> dict[str, int] | None:
    """Tells how long items waited for their first attempt; None where it is not counted."""
    waits = store.waits
    if waits is None:
        return None
    found = {name: waits.quantile(percent) for name, percent in QUANTILES.items()}
    # The bins are counted in whole percents: what a thousandth exceeds is the largest at worst.
    return {**found, "p999": waits.maximum, "count": waits.count}


def _address_of(way: Away) -> str:
    """Names what goes over a link; one without an address is for all topics, or all replies."""
    if way.address is not None:
        return way.address
    return "topic" if way.entry is None else "_reply"
