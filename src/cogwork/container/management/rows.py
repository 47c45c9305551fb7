"""How a connection, a session, a link, an address and a node look as rows of plain values."""

from __future__ import annotations

import os
import shutil
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from msgspec import structs

from cogwork import __version__
from cogwork.amqp.performatives import Role
from cogwork.container.connections.clients import peer_of
from cogwork.container.connections.memory import resident_bytes
from cogwork.container.vhost.attachments import Attachment
from cogwork.dataplane.addresses.entry import BALANCED_CODE, CLOSEST_CODE, MULTICAST_CODE
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.plugin.capabilities import Bindable, Storing
from cogwork.plugins import PLUGIN_FAULTS
from cogwork.router.exchanges.binding import EXCHANGE as EXCHANGE_KIND
from cogwork.tls.expiry import EXPIRY

if TYPE_CHECKING:
    from cogwork.config.settings import Policy
    from cogwork.container.connections.clients import ClientContext
    from cogwork.container.connections.peer import Peer
    from cogwork.container.container import Container
    from cogwork.container.vhost.declared_exchange import DeclaredExchange
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.session import SessionEndpoint
    from cogwork.dataplane.transport.incoming import IncomingLink
    from cogwork.plugin.management import Row
    from cogwork.plugin.node import Node
    from cogwork.router.exchanges.binding import Binding

__all__ = (
    "ADDRESS",
    "BACKUP",
    "CONNECTION",
    "CONTAINER",
    "LIMIT",
    "LINK",
    "NODE",
    "PERMISSION",
    "POLICY",
    "QUEUE",
    "SESSION",
    "STREAM",
    "USER",
    "VHOST",
    "address_row",
    "connection_name",
    "connection_row",
    "container_row",
    "iso_time",
    "link_row",
    "node_row",
    "session_name",
    "session_row",
    "storing_row",
    "vhost_row",
)

CONTAINER = (
    *("name", "version", "process_id", "incarnation", "since", "now", "uptime_s", "cpu_s"),
    *("resident_bytes", "memory", "disk", "is_draining", "endpoints", "vhosts"),
    "connections_accepted",
    *(
        "connections_refused",
        "connections_redirected",
        "descriptors",
        "clients",
        "frames_in",
        "unroutable",
        "durable_in_memory",
        "certificate_days_left",
        "security_log",
    ),
    *("workers", "cluster", "schemas", "gateways", "totals", "limits"),
)
CONNECTION = (
    *("name", "container", "user", "peer", "listener", "vhost", "protocol", "product"),
    *("since", "is_open"),
    *("sessions", "links", "bytes_in", "bytes_out", "frames_in", "frames_out"),
    *("unsent_bytes", "is_congested", "messages_in", "messages_out"),
    *("dynamic_addresses", "held_bytes", "cluster_id", "channels", "consumers"),
)
SESSION = (
    *("name", "connection", "channel", "links", "unsettled"),
    *("incoming_window", "outgoing_window", "held_bytes"),
)
LINK = (
    *("name", "link", "connection", "channel", "direction", "address", "credit", "unsettled"),
    *("deliveries", "backlog", "backlog_bytes", "dropped", "patterns"),
)
ADDRESS = (
    *("name", "address", "vhost", "kind", "distribution", "senders", "receivers", "in", "out"),
    *("released", "dropped", "unmatched", "expired", "invalid", "unsettled", "depth"),
)
QUEUE = (
    *("name", "address", "vhost", "depth", "ready", "unsettled", "in-doubt", "delayed"),
    *(
        "waiting-for-group",
        "leaving",
        "held",
        "groups",
        "consumers",
        "bytes",
        "memory-bytes",
        "in",
        "out",
        "accepted",
    ),
    *("released", "modified", "rejected", "redelivered", "expired", "delivery-count-exceeded"),
    *("acquisitions-exceeded", "doubted", "doubts-parked", "abandoned", "dropped", "refused"),
    *("malformed", "duplicates", "durable-in-memory"),
    *("misdirected", "stale-claims", "removed", "disorder-p50", "disorder-p99", "disorder-maximum"),
    *(
        "durability",
        "owner",
        "problem",
        "voters",
        "learners",
        "wanted",
        "wanted_learners",
        "moving",
        "options",
        "policy",
    ),
)
STREAM = (
    *("name", "address", "vhost", "state", "problem", "engine", "durability", "first", "next"),
    *("records", "size_bytes", "epoch", "leader", "voters", "learners"),
    *("wanted", "wanted_learners", "moving", "in", "appended", "rejected"),
    *("returned", "missed", "waiting", "pending_bytes", "bytes_in", "records_per_s"),
    *("bytes_per_s", "consumers", "behind", "held_bytes", "rejected-by-receivers", "readers"),
    *("is_shared", "options"),
)
NODE = ("name", "address", "vhost", "kind", "status")
EXCHANGE = (
    *("name", "address", "vhost", "exchange", "kind", "durable", "auto_delete", "internal"),
    *("arguments", "bindings", "delivered", "unroutable", "policy"),
)
BINDING = ("name", "vhost", "source", "destination", "key", "arguments")
USER = ("name", "origin", "login", "groups", "mesh", "problem")
PERMISSION = ("name", "origin", "user", "group", "vhost", "address", "rights", "deny")
VHOST = ("name", "origin", "connections", "addresses")
BACKUP = ("name", "files", "size_bytes", "age_s")
LIMIT = ("name", "origin", "value", "configured", "most", "holder")
POLICY = ("name", "vhost", "origin", "pattern", "apply_to", "priority", "definition")

_DISTRIBUTIONS = {MULTICAST_CODE: "multicast", CLOSEST_CODE: "closest", BALANCED_CODE: "balanced"}

PATTERNS_MAX = 10
"""Of a subscriber's patterns, how many a row shows."""


def iso_time(at_s: float) -> str:
    """Write a time of the wall clock, in whole milliseconds."""
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds")


def container_row(container: Container) -> Row:
    """Make the container's own row; `totals` holds what a leak would show in."""
    totals = container.core.totals()
    now_s = time.time()
    return {
        "name": container.id,
        "version": __version__,
        "process_id": os.getpid(),
        "incarnation": container.incarnation,
        "since": iso_time(container.started_at),
        "now": iso_time(now_s),
        "uptime_s": round(now_s - container.started_at, 3),
        "cpu_s": round(time.process_time(), 3),
        "resident_bytes": resident_bytes(),
        "memory": {
            "limit_bytes": container.watermark.limit_bytes,
            "are_publishers_blocked": container.watermark.is_passed,
        },
        "disk": _disk(container.configuration.data_dir),
        "is_draining": container.peers.is_draining,
        "endpoints": container.endpoints,
        "vhosts": list(container.vhosts),
        "connections_accepted": container.peers.accepted,
        "connections_refused": container.peers.refused,
        "connections_redirected": container.peers.redirected,
        "descriptors": container.descriptors,
        "clients": container.peers.clients,
        "frames_in": container.core.frames_in,
        "unroutable": sum(vhost.space.unroutable for vhost in container.vhosts.values()),
        "durable_in_memory": durable_in_memory(container),
        "certificate_days_left": EXPIRY.days_left(),
        "security_log": container.security.facts(),
        "workers": container.workers,
        "cluster": container.replication.cluster_facts(),
        "schemas": schema_facts(container),
        "gateways": container.gateways.status(),
        "totals": {"connections": len(container.peers.connections), **totals},
        "limits": structs.asdict(container.limits),
    }


def _disk(data_dir: str | None) -> Row | None:
    """Say how much room there is where the data directory is; None without one."""
    try:
        found = shutil.disk_usage(data_dir) if data_dir is not None else None
    except OSError:  # as of a file system that has gone
        return {"total_bytes": 0, "free_bytes": 0}
    return None if found is None else {"total_bytes": found.total, "free_bytes": found.free}


def durable_in_memory(container: Container) -> int:
    """Count the durable messages that its queues have kept in memory."""
    return sum(
        node.store.durable_in_memory
        for vhost in container.vhosts.values()
        for node in vhost.nodes.storing.values()
    )


def schema_facts(container: Container) -> dict[str, object] | None:
    """Return what becomes of messages that are held to schemas, by virtual host."""
    facts = {
        name: found
        for name, vhost in container.vhosts.items()
        if vhost.schemas is not None and (found := vhost.schemas.facts()) is not None
    }
    return dict(facts) or None


def connection_name(connection: Peer) -> str:
    """Name a connection: its number."""
    return str(cast("ClientContext", connection.context).number)


def connection_row(spid: str, connection: Peer) -> Row:
    """Make a connection's row; its Cluster-Id begins those of its channels and consumers.

    Args:
        spid: The container's start and id.
        connection: Which one.
    """
    cluster_id = f"{spid}/{connection_name(connection)}"
    wire, client = connection.wire, cast("ClientContext", connection.context)
    return {
        "name": str(client.number),
        "container": connection.container_id,
        "user": connection.identity or "",
        "peer": peer_of(client),
        "listener": f"{client.listen.scheme}://{client.listen.endpoint}",
        "vhost": client.vhost.name,
        "protocol": connection.protocol,
        "product": connection.product,
        "since": iso_time(client.connected_at_s),
        "is_open": connection.is_open,
        "sessions": connection.session_count,
        "links": connection.link_count,
        "bytes_in": wire.bytes_in,
        "bytes_out": wire.bytes_out,
        "frames_in": wire.frames_in,
        "frames_out": wire.frames_out,
        "unsent_bytes": wire.unsent_bytes,
        "is_congested": bool(wire.congested),
        "messages_in": connection.messages_in,
        "messages_out": connection.messages_out,
        "dynamic_addresses": client.dynamic_addresses,
        "held_bytes": wire.held_bytes,
        "cluster_id": cluster_id,
        "channels": [f"{cluster_id}/{number}" for number in connection.channel_numbers],
        "consumers": [f"{cluster_id}/{name}" for name in connection.consumer_names],
    }


def session_name(session: SessionEndpoint) -> str:
    """Name a session: its connection's number and its channel."""
    return f"{connection_name(session.connection)}.{session.channel}"


def session_row(session: SessionEndpoint) -> Row:
    """Make a session's row."""
    end = session.end
    return {
        "name": session_name(session),
        "connection": connection_name(session.connection),
        "channel": session.channel,
        "links": len(session.links),
        "unsettled": end.unsettled,
        "incoming_window": end.incoming_window,
        "outgoing_window": end.remote_window,
        "held_bytes": end.held_bytes,
    }


def link_row(link: Link) -> Row:
    """Make a link's row; its direction is seen from the container."""
    attachment = link.context
    assert isinstance(attachment, Attachment)
    end = link.end
    assert end is not None
    outgoing = end if isinstance(end, OutgoingLink) else None
    return {
        "name": attachment.link_id,
        "link": link.name,
        "connection": connection_name(link.session.connection),
        "channel": link.session.channel,
        "direction": "out" if link.role is Role.SENDER else "in",
        "address": attachment.address,
        "credit": end.credit,
        "unsettled": end.unsettled,
        "deliveries": end.deliveries,
        "backlog": outgoing.queue_count if outgoing else 0,
        "backlog_bytes": outgoing.backlog_bytes if outgoing else 0,
        "dropped": outgoing.dropped if outgoing else 0,
        "patterns": _patterns(attachment, end),
    }


def _patterns(attachment: Attachment, end: IncomingLink | OutgoingLink) -> list[str]:
    if isinstance(attachment.node, Bindable) and isinstance(end, OutgoingLink):
        return attachment.node.patterns_of(end)[:PATTERNS_MAX]
    return []


def address_row(vhost: VirtualHost, entry: AddressEntry) -> Row:
    """Make an address's row; what a storing node holds counts as its depth."""
    name = entry.name
    node = vhost.nodes.get(name)
    stored = _status(node) if node is not None else {}
    return {
        "name": name,
        "address": name,
        "vhost": vhost.name,
        "kind": vhost.rule_of(name)[1].kind,
        "distribution": _DISTRIBUTIONS[entry.distribution],
        "senders": len(entry.sources),
        "receivers": stored.get("consumers", len(entry.outlets) if node is None else 0),
        "in": entry.received,
        "out": stored.get("out", entry.delivered),
        "released": entry.released,
        "dropped": entry.dropped,
        "unmatched": entry.unmatched,
        "expired": stored.get("expired", entry.expired),
        "invalid": vhost.schemas.checker.invalid.get(name, 0) if vhost.schemas else 0,
        "unsettled": stored.get("unsettled", _unsettled(entry)),
        "depth": cast("int", stored.get("depth", 0)) + entry.held,
    }


def _unsettled(entry: AddressEntry) -> int:
    """Count what its senders wait for, or what its receivers hold where that is more."""
    waiting = sum(source.unsettled for source in entry.sources)
    if entry.distribution == MULTICAST_CODE:
        return waiting
    held = sum(outlet.unsettled for outlet in entry.outlets if isinstance(outlet, OutgoingLink))
    return max(waiting, held)


def storing_row(vhost: VirtualHost, address: str, node: Node) -> Row:
    """Make a queue's or a stream's row: what its node says, and the options it was made with."""
    row = {"name": address, "address": address, "vhost": vhost.name, **node.status()}
    if isinstance(node, Storing) and vhost.reach is not None and row["problem"] is None:
        row["problem"] = vhost.reach.disks.problem(address, node.durability)
    if isinstance(node, Storing):
        row["policy"] = _name_of(vhost.policies.of_queue(address))
    return row


def vhost_row(container: Container, name: str) -> Row:
    """Make a virtual host's row."""
    vhost = container.vhosts.get(name)
    clients = container.peers.connections.values()
    return {
        "name": name,
        "origin": container.cluster_settings.origin_of_vhost(name),
        "connections": sum(client.vhost is vhost for client in clients),
        "addresses": 0 if vhost is None else len(vhost.space.entries),
    }


def exchange_row(vhost: VirtualHost, exchange: DeclaredExchange) -> Row:
    """Make an exchange's row."""
    address = vhost.exchanges.address(exchange.name)
    return {
        "name": address,
        "address": address,
        "vhost": vhost.name,
        "exchange": exchange.name,
        "kind": exchange.kind,
        "durable": exchange.durable,
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "arguments": dict(exchange.arguments),
        "bindings": len(vhost.exchanges.bindings(exchange.name)),
        **vhost.exchanges.figures(exchange.name),
        "policy": _name_of(vhost.policies.of_exchange(exchange.name)),
    }


def _name_of(policy: Policy | None) -> str | None:
    return None if policy is None else policy.name


def binding_row(vhost: VirtualHost, source: str, binding: Binding) -> Row:
    """Make a binding's row; it is known by the address of the exchange that it leads from."""
    kind, name = binding.destination
    address = vhost.exchanges.address(source)
    return {
        "name": address,
        "vhost": vhost.name,
        "source": address,
        "destination": vhost.exchanges.address(name) if kind == EXCHANGE_KIND else f"{kind}/{name}",
        "key": binding.key.decode(errors="backslashreplace"),
        "arguments": dict(binding.arguments),
    }


def node_row(vhost: VirtualHost, address: str, node: Node) -> Row:
    """Make a node's row."""
    return {
        "name": address,
        "address": address,
        "vhost": vhost.name,
        "kind": vhost.nodes.kind_at(address),
        "status": _status(node),
    }


def _status(node: Node) -> Row:
    """Ask a node of somebody else how it is: what it raises is told in place of that."""
    try:
        return dict(node.status())
    except PLUGIN_FAULTS as error:
        return {"problem": f"its status cannot be told: {error!r:.300}"}
