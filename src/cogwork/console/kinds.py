"""What the console lists: each type of entity, its columns, and what can be done from the list."""

from __future__ import annotations

from cogwork.console.listing import Column, Kind

__all__ = ("KINDS",)

QUEUES = Kind(
    "queues",
    "queue",
    "Queues",
    "queue",
    (
        Column("address", "address", "name"),
        Column("depth", "depth", "count"),
        Column("ready", "ready", "count"),
        Column("unsettled", "unsettled", "count"),
        Column("in-doubt", "in doubt", "count"),
        Column("consumers", "consumers", "count"),
        Column("bytes", "size", "bytes"),
        Column("disorder-p99", "disorder p99", "count"),
        Column("durability", "durability"),
        Column("problem", "problem"),
    ),
    ("address", "policy", "problem", "durability"),
    actions=("queue.declare",),
    page="/queue",
)
STREAMS = Kind(
    "streams",
    "stream",
    "Streams",
    "stream",
    (
        Column("address", "address", "name"),
        Column("state", "state"),
        Column("engine", "engine"),
        Column("first", "first", "count"),
        Column("next", "next", "count"),
        Column("size_bytes", "size", "bytes"),
        Column("records_per_s", "records/s", "count"),
        Column("consumers", "readers", "count"),
        Column("behind", "behind", "count"),
        Column("problem", "problem"),
    ),
    ("address", "state", "engine", "problem"),
    actions=("stream.create",),
    page="/stream",
)
EXCHANGES = Kind(
    "exchanges",
    "exchange",
    "Exchanges",
    "exchange",
    (
        Column("exchange", "exchange", "name"),
        Column("kind", "type"),
        Column("bindings", "bindings", "count"),
        Column("delivered", "delivered", "count"),
        Column("unroutable", "unroutable", "count"),
        Column("durable", "durable", "flag"),
        Column("internal", "internal", "flag"),
        Column("policy", "policy"),
    ),
    ("exchange", "kind", "policy"),
    actions=("exchange.declare",),
    page="/exchange",
)
BINDINGS = Kind(
    "bindings",
    "binding",
    "Bindings",
    "binding",
    (
        Column("source", "exchange", "name"),
        Column("destination", "destination", "name"),
        Column("key", "key", "name"),
        Column("arguments", "arguments"),
    ),
    ("source", "destination", "key"),
    also=("source", "destination"),
    actions=("exchange.bind", "exchange.unbind"),
)
ADDRESSES = Kind(
    "addresses",
    "address",
    "Addresses",
    "address",
    (
        Column("address", "address", "name"),
        Column("kind", "kind"),
        Column("in", "in", "count"),
        Column("out", "out", "count"),
        Column("depth", "waiting", "count"),
        Column("senders", "senders", "count"),
        Column("receivers", "receivers", "count"),
        Column("dropped", "dropped", "count"),
        Column("unmatched", "unmatched", "count"),
        Column("invalid", "invalid", "count"),
    ),
    ("address", "kind"),
    page="/address",
)
CONNECTIONS = Kind(
    "connections",
    "connection",
    "Connections",
    "connection",
    (
        Column("container", "client", "name"),
        Column("user", "user", "name"),
        Column("peer", "from"),
        Column("protocol", "protocol"),
        Column("product", "product", "name"),
        Column("links", "links", "count"),
        Column("messages_in", "messages in", "count"),
        Column("messages_out", "messages out", "count"),
        Column("unsent_bytes", "unsent", "bytes"),
        Column("is_congested", "slow", "flag"),
        Column("since", "since", "time"),
    ),
    ("name", "container", "user", "peer", "protocol", "product", "vhost"),
    page="/connection",
)
LINKS = Kind(
    "links",
    "link",
    "Links",
    "link",
    (
        Column("link", "link", "name"),
        Column("direction", "direction"),
        Column("address", "address", "name"),
        Column("credit", "credit", "count"),
        Column("unsettled", "unsettled", "count"),
        Column("deliveries", "deliveries", "count"),
        Column("backlog", "backlog", "count"),
        Column("dropped", "dropped", "count"),
    ),
    ("link", "address", "direction"),
    also=("connection", "address"),
    page="/link",
)
PEERS = Kind(
    "peers",
    "org.cogwork.link",
    "Links between containers",
    "link",
    (
        Column("url", "URL", "name"),
        Column("direction", "direction"),
        Column("state", "state"),
        Column("neighbour", "neighbour", "name"),
        Column("cost", "cost", "count"),
        Column("messages_in", "messages in", "count"),
        Column("messages_out", "messages out", "count"),
        Column("since", "since", "time"),
        Column("error", "error"),
    ),
    ("url", "neighbour", "state", "error"),
    actions=("peer.add",),
    page="/peer",
)
USERS = Kind(
    "users",
    "org.cogwork.user",
    "Users",
    "user",
    (
        Column("name", "user", "name"),
        Column("origin", "origin"),
        Column("login", "login"),
        Column("groups", "groups"),
        Column("mesh", "may link", "flag"),
        Column("problem", "problem"),
    ),
    ("name", "groups", "origin"),
    actions=("user.add",),
    page="/user",
)
PERMISSIONS = Kind(
    "permissions",
    "org.cogwork.permission",
    "Permissions",
    "permission",
    (
        Column("name", "permission", "name"),
        Column("user", "user", "name"),
        Column("group", "group", "name"),
        Column("address", "address", "name"),
        Column("rights", "rights"),
        Column("deny", "denied", "flag"),
        Column("vhost", "virtual host"),
        Column("origin", "origin"),
    ),
    ("name", "user", "group", "address"),
    actions=("permission.add",),
    page="/permission",
)
VHOSTS = Kind(
    "vhosts",
    "org.cogwork.vhost",
    "Virtual hosts",
    "virtual host",
    (
        Column("name", "virtual host", "name"),
        Column("origin", "origin"),
        Column("connections", "connections", "count"),
        Column("addresses", "addresses", "count"),
    ),
    ("name",),
    actions=("vhost.add",),
    page="/vhost",
)
LIMITS = Kind(
    "limits",
    "org.cogwork.limit",
    "Limits",
    "limit",
    (
        Column("name", "limit", "name"),
        Column("value", "value", "count"),
        Column("most", "most now", "count"),
        Column("holder", "of whom", "name"),
        Column("origin", "origin"),
        Column("configured", "in the file", "count"),
    ),
    ("name", "holder"),
    actions=("limit.set",),
    page="/limit",
)
POLICIES = Kind(
    "policies",
    "org.cogwork.policy",
    "Policies",
    "policy",
    (
        Column("name", "policy", "name"),
        Column("pattern", "pattern", "name"),
        Column("apply_to", "applies to"),
        Column("priority", "priority", "count"),
        Column("definition", "definition"),
        Column("origin", "origin"),
    ),
    ("name", "pattern"),
    actions=("policy.set",),
    page="/policy",
)
NODES = Kind(
    "nodes",
    "node",
    "Nodes",
    "node",
    (
        Column("address", "address", "name"),
        Column("kind", "kind"),
        Column("status", "status"),
    ),
    ("address", "kind"),
)
READERS = Kind(
    "readers",
    "org.cogwork.consumer",
    "Readers without a link",
    "reader",
    (
        Column("name", "reader", "name"),
        Column("address", "stream", "name"),
        Column("kind", "kind"),
        Column("query", "query", "name"),
        Column("position", "position", "count"),
        Column("behind", "behind", "count"),
        Column("records_per_s", "records/s", "count"),
        Column("reported_s", "reported ago", "seconds"),
    ),
    ("name", "address", "query"),
)

KINDS = {
    each.path: each
    for each in (
        QUEUES,
        STREAMS,
        EXCHANGES,
        BINDINGS,
        ADDRESSES,
        CONNECTIONS,
        LINKS,
        PEERS,
        USERS,
        PERMISSIONS,
        VHOSTS,
        LIMITS,
        POLICIES,
        NODES,
        READERS,
    )
}
"""Each kind by the path of its list."""
