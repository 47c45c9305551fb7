"""From `[[address]]` and `[[queue]]` to what the router and the nodes take.

Theory of operation. A rule in the file says what is different about some addresses. What it leaves
open is taken from the built-in rule that held for them: `prefix = "work/"` with a dead-letter
address is still a table of queues whose doubtful items are parked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from cogwork.config.settings import QueueOptions, StreamOptions
from cogwork.router.addresses import DEFAULT_RULES, AddressRule, AddressTable, parse_rule

if TYPE_CHECKING:
    from cogwork.config.settings import Address

__all__ = ("queue_options", "rule_of", "stream_options")

_BUILT_IN = AddressTable()
_OF_ROUTER = ("ttl_s", "dead_letter")
"""Queue options that the data plane knows itself, for every address."""


def rule_of(address: Address) -> AddressRule:
    """Translate one `[[address]]`.

    Args:
        address: As configured, checked.
    """
    built_in = _built_in_rule(address)
    kind = address.kind or built_in.kind
    table: dict[str, object] = {
        key: getattr(address, key)
        for key in (
            *("prefix", "pattern", "distribution", "fanout", "bias"),
            *("slow_subscriber", "block_timeout_s", "block_bytes", "accept", "unmatched"),
            *_OF_ROUTER,
        )
        if getattr(address, key) is not None
    }
    table["kind"] = kind
    if kind == built_in.kind and not {"distribution", "fanout", "bias"} & table.keys():
        table["distribution"] = built_in.distribution.value
    if kind == "queue":
        table["options"] = {**built_in.options, **queue_options(address)}
    return parse_rule(table)


def queue_options(options: QueueOptions) -> dict[str, object]:
    """List what a queue's node is told.

    Args:
        options: Of a `[[queue]]`, or of an `[[address]]` for the queues below it.

    Returns:
        Every option that has a value, under its name in the configuration, but those that the
        data plane keeps itself.
    """
    values = {each.name: getattr(options, each.name) for each in structs.fields(QueueOptions)}
    return {
        key: value for key, value in values.items() if value is not None and key not in _OF_ROUTER
    }


def stream_options(options: StreamOptions) -> dict[str, object]:
    """List what a stream's node is told: every option that has a value, under its own name."""
    values = {each.name: getattr(options, each.name) for each in structs.fields(StreamOptions)}
    own = {key: value for key, value in values.items() if key != "options" and value is not None}
    return {**options.options, **own}


def _built_in_rule(address: Address) -> AddressRule:
    place = (address.pattern if address.prefix is None else address.prefix) or ""
    return _BUILT_IN.resolve(place) if place.strip("/.") else DEFAULT_RULES[0]
