"""Turns the addresses, queues, streams and nodes of a virtual host into its address table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.config.rules import queue_options, rule_of, stream_options
from cogwork.config.security_log_settings import SECURITY_STREAM
from cogwork.config.settings import Vhost
from cogwork.router.addresses import (
    DEFAULT_RULES,
    AddressRule,
    AddressRuleError,
    AddressTable,
    Distribution,
)
from cogwork.schema import SCHEMAS

if TYPE_CHECKING:
    from cogwork.config.settings import Configuration, Node, Queue, Stream

__all__ = ("AddressingError", "schema_engine_of", "table_of", "told_streams")

TELEMETRY_RETENTION_S = 7 * 24 * 3600.0
"""Some hundred megabytes a container at most; who needs it for longer archives it."""

SECURITY_RETENTION_S = 90 * 24 * 3600.0
"""A quarter, to look back at what was noticed late."""

_BUILT_IN = AddressTable(DEFAULT_RULES)


class AddressingError(CogworkError):
    """An address rule of the configuration that the router refuses."""


def table_of(vhost: Configuration | Vhost, schema_engine: str = "orb") -> AddressTable:
    """Build a virtual host's address table.

    Args:
        vhost: One of `[[vhost]]`, or the configuration for the default one.
        schema_engine: What keeps the streams of its schemas and of its own records, unless these
            are configured.

    Raises:
        AddressingError: A rule cannot be used.
    """
    try:
        rules = [rule_of(address) for address in vhost.addresses]
        rules += [_queue_rule(queue) for queue in vhost.queues]
        rules += [_stream_rule(stream) for stream in vhost.streams]
        rules += [_node_rule(node) for node in vhost.nodes]
        known = {stream.address.removeprefix("/") for stream in vhost.streams}
        rules += [
            AddressRule(pattern=address, kind="stream", options={"engine": schema_engine, **kept})
            for address, kept in {SCHEMAS: {}, **_told(vhost)}.items()
            if address not in known
        ]
        return AddressTable.with_defaults(rules)
    except AddressRuleError as error:
        raise AddressingError(str(error)) from error


def told_streams(tables: Configuration | Vhost) -> list[str]:
    """List the addresses of the streams that the container appends its own records to."""
    return list(_told(tables))


def _told(tables: Configuration | Vhost) -> dict[str, dict[str, float]]:
    """List those streams, which are the default virtual host's, and how long they keep records."""
    if isinstance(tables, Vhost):
        return {}
    found: dict[str, dict[str, float]] = {}
    if tables.telemetry is not None:
        found[f"stream/{tables.telemetry.stream}"] = {"retention_s": TELEMETRY_RETENTION_S}
    if tables.security_log is not None and tables.security_log.to == "stream":
        found[f"stream/{SECURITY_STREAM}"] = {"retention_s": SECURITY_RETENTION_S}
    return found | {f"stream/{each.stream}": {} for each in tables.audits}


def schema_engine_of(configuration: Configuration) -> str:
    """Return what keeps the streams of schemas and records: replicas in a cluster, else memory."""
    has_cluster = configuration.cluster.primaries is not None
    return "raft" if has_cluster or configuration.data_dir is not None else "orb"


def _queue_rule(queue: Queue) -> AddressRule:
    inherited = _BUILT_IN.resolve(queue.address)
    options = {**inherited.options, **queue_options(queue)}
    return AddressRule(
        pattern=queue.address,
        distribution=Distribution.BALANCED,
        kind="queue",
        ttl_s=queue.ttl_s,
        dead_letter=queue.dead_letter,
        options=options,
    )


def _stream_rule(stream: Stream) -> AddressRule:
    return AddressRule(pattern=stream.address, kind="stream", options=stream_options(stream))


def _node_rule(node: Node) -> AddressRule:
    if node.address.endswith("/"):
        return AddressRule(prefix=node.address, kind=node.kind, options=node.options)
    return AddressRule(pattern=node.address, kind=node.kind, options=node.options)
