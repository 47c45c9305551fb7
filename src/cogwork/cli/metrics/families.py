"""Which metrics there are: the attribute of `$management` behind each, its name and its meaning.

Names and units follow Prometheus' conventions: base units, and `_total` for counters, which the
client library appends.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ("ALL_QUEUES", "CONTAINER", "EXCHANGES", "QUEUES", "STREAMS", "Metric")


class Metric(NamedTuple):
    """One metric.

    Attributes:
        attribute: Of the entity; `a.b` is an attribute of one that is a map.
        name: The metric's, without prefix and `_total`.
        help: What it is.
        is_counter: Whether it only ever increases.
        scale: What the attribute is multiplied by.
    """

    attribute: str
    name: str
    help: str
    is_counter: bool = False
    scale: float = 1


CONTAINER = (
    Metric("incarnation", "start_time_seconds", "Start of the container since 1970.", scale=1e-3),
    Metric("cpu_s", "cpu_seconds", "CPU time that the process has used.", is_counter=True),
    Metric("resident_bytes", "resident_memory_bytes", "Resident memory of the process."),
    Metric("memory.limit_bytes", "memory_limit_bytes", "Memory watermark; 0 if there is none."),
    Metric(
        "memory.are_publishers_blocked",
        "publishers_blocked",
        "1 while publishers wait, because memory is above the watermark.",
    ),
    Metric("is_draining", "draining", "1 while the container stops or leaves."),
    Metric("totals.connections", "connections", "Open connections."),
    Metric("connections_accepted", "connections_accepted", "Connections accepted.", True),
    Metric("connections_refused", "connections_refused", "Connections refused by a limit.", True),
    Metric("connections_redirected", "connections_redirected", "Clients sent elsewhere.", True),
    Metric("totals.links", "links", "Attached links, and consumers of AMQP 0-9-1."),
    Metric("totals.unsettled", "unsettled_deliveries", "Deliveries sent and not settled."),
    Metric("totals.unsent_bytes", "unsent_bytes", "Output that connections have not taken yet."),
    Metric("totals.backlog_bytes", "backlog_bytes", "Messages that wait for slow subscribers."),
    Metric("totals.held_bytes", "held_bytes", "Memory held for all connections together."),
    Metric("frames_in", "frames_received", "Frames received.", True),
    Metric("unroutable", "messages_unroutable", "Messages to addresses that nobody serves.", True),
    Metric(
        "durable_in_memory",
        "durable_messages_in_memory",
        "Durable messages that were kept in memory alone.",
        True,
    ),
    Metric(
        "certificate_days_left",
        "certificate_remaining_seconds",
        "Time until the first certificate expires.",
        scale=86_400,
    ),
    Metric("descriptors.limit", "file_descriptors_max", "File descriptors that are allowed."),
    Metric(
        "descriptors.refused",
        "connections_without_descriptor",
        "Connections refused for want of file descriptors.",
        True,
    ),
    Metric(
        "security_log.dropped", "security_events_dropped", "Lost events of the security log.", True
    ),
    Metric("cluster.is_current", "cluster_current", "1 if all declarations are known here."),
    Metric("cluster.declarations", "cluster_declarations", "Declarations of the cluster."),
    Metric("cluster.level", "cluster_feature_level", "Feature level of the cluster."),
)

QUEUES = (
    Metric("depth", "queue_messages", "Messages in the queue, delivered ones among them."),
    Metric("ready", "queue_messages_ready", "Messages that wait for a consumer."),
    Metric("unsettled", "queue_messages_unsettled", "Messages delivered and not settled."),
    Metric("in-doubt", "queue_messages_in_doubt", "Messages held by consumers that were lost."),
    Metric("delayed", "queue_messages_delayed", "Messages that are not due yet."),
    Metric("bytes", "queue_bytes", "Size of the messages."),
    Metric("consumers", "queue_consumers", "Consumers attached here."),
    Metric("in", "queue_received", "Messages taken.", True),
    Metric("out", "queue_delivered", "Deliveries to consumers.", True),
    Metric("accepted", "queue_accepted", "Messages that consumers have accepted.", True),
    Metric("redelivered", "queue_redelivered", "Deliveries of messages delivered before.", True),
    Metric("expired", "queue_expired", "Messages whose time to live was over.", True),
    Metric("rejected", "queue_rejected", "Messages that consumers have rejected.", True),
    Metric("dropped", "queue_dropped", "Messages dropped because the queue was full.", True),
    Metric("refused", "queue_refused", "Messages not taken because the queue was full.", True),
)

ALL_QUEUES = ("depth", "ready", "unsettled", "in-doubt", "bytes", "consumers")
"""What is added up over all queues, in `cogwork_queues_…`."""

STREAMS = (
    Metric("records", "stream_records", "Records kept."),
    Metric("size_bytes", "stream_bytes", "Size of the records."),
    Metric("next", "stream_next_offset", "Offset of the record that comes next."),
    Metric("behind", "stream_lag_records", "Records that the slowest reader has not read yet."),
    Metric("consumers", "stream_consumers", "Readers attached here."),
    Metric("appended", "stream_appended", "Records appended here.", True),
    Metric("rejected", "stream_rejected", "Messages rejected.", True),
    Metric("bytes_in", "stream_appended_bytes", "Size of the records appended here.", True),
)

EXCHANGES = (
    Metric("bindings", "exchange_bindings", "Bindings from the exchange."),
    Metric("delivered", "exchange_delivered", "Copies of messages that queues have got.", True),
    Metric("unroutable", "exchange_unroutable", "Messages without a matching binding.", True),
)
