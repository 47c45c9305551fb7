"""Turns the configuration's tables of addresses into the router's rules.

Theory of operation. A rule in the file says what is different about some addresses. What it leaves
open is taken from the built-in rule that held for them: `prefix = "work/"` with a dead-letter
address is still a table of queues whose doubtful items are parked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from cogwork.amqp.errors import CogworkError
from cogwork.container.settings import QueueOptions
from cogwork.router.addresses import (
    DEFAULT_RULES,
    AddressRule,
    AddressRuleError,
    AddressTable,
    parse_rule,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.container.settings import Address, Node, Queue

__all__ = ("AddressingError", "table_of")

_BUILT_IN = AddressTable()
_DISTRIBUTION_KEYS = ("distribution", "fanout", "bias")
_ADDRESS_KEYS = (
    *("prefix", "pattern", *_DISTRIBUTION_KEYS),
    *("slow_subscriber", "block_timeout_s", "block_bytes", "unmatched"),
    *("ttl_s", "dead_letter"),
)


class AddressingError(CogworkError):
    """An address rule of the configuration that the router refuses."""


def table_of(
    addresses: Iterable[Address], queues: Iterable[Queue], nodes: Iterable[Node]
) -> AddressTable:
    """Builds a virtual host's address table.

    Args:
        addresses: `[[address]]`.
        queues: `[[queue]]`; each is an exact name.
        nodes: `[[node]]`; an exact name, or a prefix that ends in `/`.

    Raises:
        AddressingError: A rule cannot be used.
    """
    try:
        rules = [_address_rule(address) for address in addresses]
        rules += [_queue_rule(queue) for queue in queues]
        rules += [_node_rule(node) for node in nodes]
        return AddressTable.with_defaults(rules)
    except AddressRuleError as error:
        raise AddressingError(str(error)) from error


def _address_rule(address: Address) -> AddressRule:
    built_in = _built_in_rule(address.pattern if address.prefix is None else address.prefix)
    values = {key: getattr(address, key) for key in _ADDRESS_KEYS}
    table = {key: value for key, value in values.items() if value is not None}
    table["kind"] = address.kind or built_in.kind
    if table["kind"] == built_in.kind and table.keys().isdisjoint(_DISTRIBUTION_KEYS):
        table["distribution"] = built_in.distribution.value
    if table["kind"] == "queue":
        table["options"] = {**built_in.options, **_queue_options(address)}
    return parse_rule(table)


def _queue_rule(queue: Queue) -> AddressRule:
    options = {**_built_in_rule(queue.address).options, **_queue_options(queue)}
    table = {"pattern": queue.address, "kind": "queue", "options": options}
    return parse_rule({**table, "ttl_s": queue.ttl_s, "dead_letter": queue.dead_letter})


def _node_rule(node: Node) -> AddressRule:
    place = "prefix" if node.address.endswith("/") else "pattern"
    return parse_rule({place: node.address, "kind": node.kind, "options": node.options})


def _built_in_rule(place: str | None) -> AddressRule:
    """Finds the rule that held before; the empty prefix is no address, and the last resort's."""
    return _BUILT_IN.resolve(place) if place and place.strip("/.") else DEFAULT_RULES[0]


def _queue_options(options: QueueOptions) -> dict[str, object]:
    """Lists what a queue's node is told: every option that has a value, under its own name."""
    values = {each.name: getattr(options, each.name) for each in structs.fields(QueueOptions)}
    return {key: value for key, value in values.items() if value is not None}
