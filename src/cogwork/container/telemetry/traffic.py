"""What a container counts of its traffic, added up over addresses and links that come and go.

Theory of operation. Counters live with what they count: an address that nobody uses is forgotten,
a link to another container is closed when it has rested. So they are looked at now and then, and
what they have grown by is added to sums that stay. A counter that has gone, or has another one in
its place, is looked at one last time where it was known; what came and went between two looks is
not counted. New names may come for as long as the container runs: where there are too many, the
sums of what has gone are forgotten.

What comes from other containers has entries of its own, which lead to this container's receivers
alone. It was counted as coming in where it came into the mesh; here its deliveries count.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING

from cogwork.container.federation.remote_consumer import RemoteConsumer
from cogwork.container.mesh.away import Away
from cogwork.container.mesh.tunnels import origin_of
from cogwork.dataplane.queue.histogram import Histogram
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.plugin.capabilities import Storing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.container.connections.peer import Peer
    from cogwork.container.mesh.service import MeshService
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.dataplane.queue.store import Store

__all__ = ("AddressSum", "Traffic", "latency_of")

ADDRESSES_MAX = 10_000
"""Addresses that are looked at; more in one container are told apart by nobody."""

PAIRS_MAX = 10_000
"""Addresses, each with a container that messages went to; of more those without a link go."""

WAITS_KEPT_S = 120.0
"""Two periods of the histogram: a queue that was quiet for as long has no latency."""

QUANTILES = {"p50": 50, "p90": 90, "p99": 99}


class _Place:
    """What counts the messages of an address: it may be another one at the next look.

    Attributes:
        entry: For what comes to this container; None where nothing does.
        near: For what other containers send, where that has an entry of its own.
        queue: Whose attempts are the deliveries of both.
    """

    __slots__ = ("entry", "near", "queue")

    def __init__(self, vhost: VirtualHost, name: str) -> None:
        self.entry, self.near = _entries_of(vhost, name)
        node = None if self.entry is None else vhost.nodes.get(name)
        self.queue = node if isinstance(node, Storing) else None
        if self.queue is not None or self.near is self.entry:
            self.near = None

    def counts_like(self, before: _Place) -> bool:
        """Return whether what `own` tells goes on from what it told before."""
        return self.entry is before.entry and self.queue is before.queue

    def own(self) -> tuple[int, int, int, int]:
        """Count messages in and out, bytes in, and first attempts."""
        entry = self.entry
        if entry is None:
            return (0, 0, 0, 0)
        out, firsts = entry.delivered, 0
        if self.queue is not None:
            # What a node hands on it counts itself.
            counts = self.queue.store.counts()
            out, firsts = counts["out"], counts["out"] - counts["redelivered"]
        return (entry.received, out, entry.received_bytes, firsts)

    @property
    def delivered(self) -> int:
        """Counts deliveries of what other containers sent."""
        return 0 if self.near is None else self.near.delivered


class AddressSum:
    """An address's messages in and out, and bytes in, of all that has ever counted them.

    Attributes:
        totals: In, out, bytes in.
    """

    __slots__ = ("_delivered", "_firsts_s", "_place", "_seen", "totals")

    def __init__(self) -> None:
        self.totals = [0, 0, 0]
        self._place: _Place | None = None
        self._seen = (0, 0, 0, 0)
        self._delivered = 0
        self._firsts_s = 0.0

    def follows(self, near: AddressEntry) -> bool:
        """Return whether an entry for what other containers send is looked at."""
        place = self._place
        return place is not None and near in (place.near, place.entry)

    def look(self, place: _Place | None, now_s: float) -> None:
        """Add what has come since the last call.

        Args:
            place: What counts now; None where there is nothing any more.
            now_s: The monotonic clock.
        """
        before, self._place = self._place, place
        if before is not None:
            self._part(before, place, now_s)
        if place is not None:
            self._add(place, now_s)
            self._forget_waits(place, now_s)

    def _part(self, before: _Place, place: _Place | None, now_s: float) -> None:
        """Look one last time at what counts no more, and begin anew with what does."""
        is_own = place is not None and place.counts_like(before)
        is_near = place is not None and place.near is before.near
        if not (is_own and is_near):
            self._add(before, now_s)
        if not is_own:
            self._seen = (0, 0, 0, 0)
        if not is_near:
            self._delivered = 0

    def _add(self, place: _Place, now_s: float) -> None:
        values, delivered = place.own(), place.delivered
        for at in range(len(self.totals)):
            self.totals[at] += values[at] - self._seen[at]
        self.totals[1] += delivered - self._delivered
        if values[3] != self._seen[3]:
            self._firsts_s = now_s
        self._seen, self._delivered = values, delivered

    def _forget_waits(self, place: _Place, now_s: float) -> None:
        """Begin a queue's latencies anew after a rest: histograms keep old ones."""
        if place.queue is None or now_s - self._firsts_s < WAITS_KEPT_S:
            return
        waits = place.queue.store.waits
        if waits is not None and waits.count:
            place.queue.store.waits = Histogram()


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
        self._connections: dict[Peer, tuple[int, int]] = {}

    def look(
        self,
        vhosts: dict[str, VirtualHost],
        mesh: MeshService,
        connections: Iterator[Peer],
        now_s: float,
    ) -> None:
        """Add what has come since the last look; the clock is the monotonic one."""
        if len(self.addresses) >= ADDRESSES_MAX:
            self._forget_addresses(vhosts, now_s)
        for key, known in self.addresses.items():
            known.look(_place_of(vhosts, key), now_s)
        for vhost in vhosts.values():
            self._look_for_addresses(vhost, now_s)
        self.look_at_ways(mesh)
        self._look_at_connections(connections)

    def _look_for_addresses(self, vhost: VirtualHost, now_s: float) -> None:
        for name in islice(_names(vhost), ADDRESSES_MAX):
            if len(self.addresses) >= ADDRESSES_MAX:
                return
            if (vhost.name, name) not in self.addresses:
                self._look_at(vhost, name, now_s)

    def look_at_near(self, vhosts: dict[str, VirtualHost], now_s: float) -> None:
        """Get to know what counts other containers' messages; that goes with their links.

        Once it is known it is looked at a last time, too.
        """
        for vhost in vhosts.values():
            for entry in islice(vhost.near.entries.values(), ADDRESSES_MAX):
                known = self.addresses.get((vhost.name, entry.name))
                if known is None or not known.follows(entry):
                    self._look_at(vhost, entry.name, now_s)

    def _look_at(self, vhost: VirtualHost, name: str, now_s: float) -> None:
        known = self.addresses.get((vhost.name, name))
        if known is None:
            if len(self.addresses) >= ADDRESSES_MAX:
                return
            known = self.addresses[vhost.name, name] = AddressSum()
        known.look(_Place(vhost, name), now_s)

    def _forget_addresses(self, vhosts: dict[str, VirtualHost], now_s: float) -> None:
        """Give up the sums of the addresses that have gone; they are counted, and told no more."""
        gone = [key for key in self.addresses if _place_of(vhosts, key) is None]
        for key in gone:
            known = self.addresses.pop(key)
            known.look(None, now_s)
            came, went, _ = known.totals
            self.forgotten[0] += came
            self.forgotten[1] += went

    def look_at_ways(self, mesh: MeshService) -> None:
        """Add what has gone to other containers since the last look."""
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

    def _look_at_connections(self, connections: Iterator[Peer]) -> None:
        standing = dict.fromkeys(connections)
        for connection in [*standing, *(it for it in self._connections if it not in standing)]:
            wire = connection.wire
            came, went = self._connections.get(connection, (0, 0))
            self.connection_bytes[0] += wire.bytes_in - came
            self.connection_bytes[1] += wire.bytes_out - went
            self._connections[connection] = (wire.bytes_in, wire.bytes_out)
        self._connections = {it: self._connections[it] for it in standing}


def _names(vhost: VirtualHost) -> Iterator[str]:
    """List the addresses of a virtual host at which something counts."""
    root, space, near = vhost.space.topic_root, vhost.space.entries, vhost.near.entries
    yield from () if root is None else (root.name,)
    yield from (entry.name for entry in space.values())
    yield from (entry.name for address, entry in near.items() if address not in space)


def _entries_of(vhost: VirtualHost, name: str) -> tuple[AddressEntry | None, AddressEntry | None]:
    """Find an address's entry, and the one for what other containers send."""
    root = vhost.space.topic_root
    if root is not None and name == root.name:
        return root, vhost.near.topic_root
    address = name.encode()
    return vhost.space.entries.get(address), vhost.near.entries.get(address)


def _place_of(vhosts: dict[str, VirtualHost], key: tuple[str, str]) -> _Place | None:
    """Find what counts an address's messages; None where it has gone."""
    vhost = vhosts.get(key[0])
    place = None if vhost is None else _Place(vhost, key[1])
    if place is None or (place.entry is None and place.near is None):
        return None
    return place


def _ways(mesh: MeshService) -> Iterator[tuple[OutgoingLink, tuple[str, str]]]:
    """List the links that lead to other containers, with address and container."""
    for connection in mesh.data_connections():
        for session in connection.sessions:
            for link in session.links.values():
                end, context = link.end, link.context
                if not isinstance(end, OutgoingLink):
                    continue
                if isinstance(context, Away):
                    yield end, (_address_of(context), context.container)
                elif isinstance(context, RemoteConsumer):
                    yield end, (context.subscription.address, origin_of(session) or "")


def latency_of(store: Store) -> dict[str, int] | None:
    """Return how long items waited for their first attempt; None where none did, or none counts."""
    waits = store.waits
    if waits is None or not waits.count:
        return None
    found = {name: waits.quantile(percent) for name, percent in QUANTILES.items()}
    # The bins are counted in whole percents: what a thousandth exceeds is the largest at worst.
    return {**found, "p999": waits.maximum, "count": waits.count}


def _address_of(way: Away) -> str:
    """Name what goes over a link; one without an address is for all topics, or all replies."""
    if way.address is not None:
        return way.address
    return "topic" if way.entry is None else "_reply"
