"""Where declared queues and streams may be, and what streams may capture.

The same addresses are refused as where one is declared while the container runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from cogwork.config.addressing import AddressingError, table_of
from cogwork.config.problems import Problem, each
from cogwork.router.addresses import DEFAULT_RULES, InvalidAddressError, normalize
from cogwork.router.patterns import topic_words
from cogwork.router.topics import MAX_PATTERN_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.config.settings import Configuration, Queue, Stream, Vhost
    from cogwork.router.addresses import AddressRule, AddressTable

__all__ = ("find_misplaced",)

QUEUE, STREAM, TOPIC, DIRECT = "queue", "stream", "topic", "direct"

_OTHER_KINDS = {rule.kind for rule in DEFAULT_RULES} - {QUEUE, DIRECT}
"""Kinds whose addresses no queue can have; one may be in the place of a node of one's own."""


def find_misplaced(vhost: Configuration | Vhost) -> Iterator[Problem]:
    """Find queues and streams of a virtual host at addresses that are for something else."""
    try:
        table = table_of(structs.replace(vhost, queues=[], streams=[]))
    except AddressingError:
        return  # told by whoever makes the container's table
    yield from each("queue", vhost.queues, lambda it: _queue(it, table))
    yield from each("stream", vhost.streams, lambda it: _stream(it, table))


def _queue(queue: Queue, table: AddressTable) -> Iterator[Problem]:
    rule = _rule_at(queue.address, table)
    if rule is None:
        yield Problem(("address",), f'"{queue.address:.80}"', "a queue's address")
    elif rule.kind in _OTHER_KINDS:
        found = f'"{queue.address:.80}", which is for a {rule.kind}'
        yield Problem(("address",), found, "a queue's address, such as queue/NAME")


def _stream(stream: Stream, table: AddressTable) -> Iterator[Problem]:
    if not _is_below(STREAM, stream.address, table) or stream.address.endswith("/"):
        yield Problem(
            ("address",), f'"{stream.address:.80}"', "a stream's address, such as stream/NAME"
        )
    for at, pattern in enumerate(stream.capture):
        if not _is_below(TOPIC, pattern, table):
            yield Problem(("capture", at), f'"{pattern:.80}"', "a topic, such as topic/flights.#")
        elif (count := _words_of(pattern, table)) > MAX_PATTERN_WORDS:
            yield Problem(("capture", at), f"{count} words", f"at most {MAX_PATTERN_WORDS}")


def _words_of(pattern: str, table: AddressTable) -> int:
    """Count the words of a topic pattern: what stands behind the prefix of all topics."""
    rule = _rule_at(pattern, table)
    prefix = (rule.prefix if rule is not None else None) or ""
    return len(topic_words(normalize(pattern)[len(prefix) + 1 :]))


def _is_below(kind: str, address: str, table: AddressTable) -> bool:
    """Whether an address is one of a kind, and more than the prefix of all such."""
    rule = _rule_at(address, table)
    return rule is not None and rule.kind == kind and address.strip("/.") != rule.prefix


def _rule_at(address: str, table: AddressTable) -> AddressRule | None:
    """Return the rule that holds for an address; None where it is no address."""
    try:
        return table.resolve(normalize(address))
    except InvalidAddressError:
        return None
