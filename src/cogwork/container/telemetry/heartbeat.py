"""The container's heartbeat in a stream: what it holds and what it has counted, again and again.

Theory of operation. The container's clock comes by; when a record is due, the counters are looked
at and one JSON object is appended by the container's own door. Where the stream does not take it,
it is counted, and said in the next record.
"""

from __future__ import annotations

import time
from heapq import nlargest
from typing import TYPE_CHECKING, Protocol, cast

import msgspec

from cogwork.container.connections.memory import resident_bytes
from cogwork.container.mesh import view as mesh_view
from cogwork.container.telemetry.appender import Appender, head_of, message_of
from cogwork.container.telemetry.traffic import AddressSum, Traffic, latency_of
from cogwork.plugin.capabilities import Storing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.config.telemetry_settings import Telemetry
    from cogwork.container.connections.peers import Peers
    from cogwork.container.vhost.virtual_host import VirtualHost

__all__ = ("Heartbeat",)

LOOK_S = 30.0
"""Addresses are forgotten after a minute without use: counters are looked at twice in that time."""

LOOK_AT_WAYS_S = 1.0
"""A link to another container may go at once with who wanted something there."""

ADDRESSES_TOLD_MAX = 250
"""Of a container's addresses the busiest are told; a record stays below some 64 KiB."""

PAIRS_TOLD_MAX = 250
"""The same of addresses with the container that messages went to."""

UNDER_WAY_MAX = 16
"""Records that wait for a stream at once; after that they are missed."""


class ClusterMember(Protocol):
    """What is told of a container's place in its cluster."""

    def cluster_facts(self) -> dict[str, object] | None:
        """Return it in plain values; None if there is no cluster."""


class ObservedContainer(mesh_view.LinkedContainer, Protocol):
    """What the heartbeat tells of."""

    @property
    def id(self) -> str:
        """Its name."""

    @property
    def incarnation(self) -> int:
        """Tells its lives apart."""

    @property
    def vhosts(self) -> dict[str, VirtualHost]:
        """Its virtual hosts by name."""

    @property
    def peers(self) -> Peers:
        """The connections of its clients."""

    @property
    def replication(self) -> ClusterMember:
        """Its part in a cluster."""


class Heartbeat:
    """Appends the records of one container. Owned by it."""

    def __init__(self, container: ObservedContainer, options: Telemetry) -> None:
        """Append nothing before the first `tick`.

        Args:
            container: Whose figures are told.
            options: As configured.
        """
        self._container = container
        self._every_s = options.every_s
        self._traffic = Traffic()
        self._view = mesh_view.View(container)
        self._head = head_of("heartbeat")
        address = f"stream/{options.stream}"
        vhost = container.vhosts[""]
        self._appender = Appender(vhost, address, UNDER_WAY_MAX)
        self._due_s = 0.0
        self._look_s = 0.0
        self._ways_s = 0.0
        self._told_s = 0.0
        self._sequence = 0

    def tick(self, now_s: float) -> None:
        """Let time pass: called about ten times a second.

        Args:
            now_s: The monotonic clock.
        """
        if not self._due_s:
            self._due_s = now_s + min(self._every_s, 1.0)
            self._told_s = now_s
        if now_s >= self._look_s or now_s >= self._due_s:
            self._look_s = now_s + LOOK_S
            self._look(now_s)
        if now_s >= self._ways_s:
            self._ways_s = now_s + LOOK_AT_WAYS_S
            self._traffic.look_at_ways(self._container.mesh)
            self._traffic.look_at_near(self._container.vhosts, now_s)
        if now_s >= self._due_s:
            self._sequence += 1
            record = self._record(now_s)
            self._due_s = max(self._due_s + self._every_s, now_s + self._every_s / 2)
            self._told_s = now_s
            self._appender.append([message_of(self._head, msgspec.json.encode(record))])

    def _look(self, now_s: float) -> None:
        container = self._container
        connections = [*container.peers.connections]
        for peer_link in container.mesh.peer_links:
            connections += (peer_link.control.connection, peer_link.data.connection)
        self._traffic.look(container.vhosts, container.mesh, iter(connections), now_s)

    # -- the record

    def _record(self, now_s: float) -> dict[str, object]:
        container, traffic = self._container, self._traffic
        exchanges = [vhost.exchanges for vhost in container.vhosts.values()]
        cluster = container.replication.cluster_facts()
        sums = traffic.addresses.values()
        return {
            "kind": "heartbeat",
            "container": container.id,
            "incarnation": container.incarnation,
            "sequence": self._sequence,
            "time_us": time.time_ns() // 1000,
            "interval_s": round(now_s - self._told_s, 3),
            "connections": len(container.peers.connections),
            "messages_in": traffic.forgotten[0] + sum(each.totals[0] for each in sums),
            "messages_out": traffic.forgotten[1] + sum(each.totals[1] for each in sums),
            "bytes_in": traffic.connection_bytes[0],
            "bytes_out": traffic.connection_bytes[1],
            "memory_bytes": resident_bytes(),
            "cpu_s": round(time.process_time(), 3),
            "exchanges": sum(map(len, exchanges)),
            "bindings": sum(each.binding_count for each in exchanges),
            "queues": self._count("queue"),
            "streams": self._count("stream"),
            "peers": sorted(container.mesh.mesh.neighbours.active),
            "primary": _is_primary(cluster, container.id),
            "root": None if cluster is None else cluster["leader"],
            "missed": self._appender.missed,
            "addresses": self._addresses(),
            "links": self._links(),
            "matrix": self._matrix(),
        }

    def _count(self, kind: str) -> int:
        vhosts = self._container.vhosts.values()
        return sum(rule.kind == kind for vhost in vhosts for rule in vhost.nodes.rules.values())

    def _addresses(self) -> list[dict[str, object]]:
        busiest = nlargest(
            ADDRESSES_TOLD_MAX,
            self._traffic.addresses.items(),
            key=lambda item: item[1].totals[0] + item[1].totals[1],
        )
        return [self._address(*key, known) for key, known in busiest]

    def _address(self, vhost_name: str, name: str, known: AddressSum) -> dict[str, object]:
        vhost = self._container.vhosts.get(vhost_name)
        node = None if vhost is None else vhost.nodes.get(name)
        came, went, size_bytes = known.totals
        return {
            "address": name,
            "vhost": vhost_name,
            "kind": "direct" if vhost is None else vhost.rule_of(name)[1].kind,
            "in": came,
            "out": went,
            "bytes_in": size_bytes,
            "bytes_out": None,
            "depth": node.store.depth if isinstance(node, Storing) else None,
            "latency_us": latency_of(node.store) if isinstance(node, Storing) else None,
        }

    def _matrix(self) -> list[dict[str, object]]:
        pairs = self._traffic.matrix.items()
        return [
            {"address": address, "to": to, "messages": messages, "bytes": size_bytes}
            for (address, to), (messages, size_bytes) in nlargest(
                PAIRS_TOLD_MAX, pairs, key=lambda item: item[1][0]
            )
            if messages
        ]

    def _links(self) -> list[dict[str, object]]:
        found: dict[str, list[int]] = {}
        for link in self._view.links():
            if link.state == "up" and link.neighbour is not None:
                counts = (link.messages_in, link.messages_out, link.bytes_in, link.bytes_out)
                sums = found.setdefault(link.neighbour, [0] * len(counts))
                found[link.neighbour] = [
                    one + other for one, other in zip(sums, counts, strict=True)
                ]
        names = ("in", "out", "bytes_in", "bytes_out")
        return [{"to": to, **dict(zip(names, sums, strict=True))} for to, sums in found.items()]


def _is_primary(cluster: Mapping[str, object] | None, container_id: str) -> bool | None:
    """Return whether a container votes; None where there is no cluster."""
    return None if cluster is None else container_id in cast("list[str]", cluster["voters"])
