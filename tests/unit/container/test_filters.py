"""What a receiver's filters say, whatever a peer has put in."""

from __future__ import annotations

from decimal import Decimal

import pytest

from cogwork.amqp.types import Described, Symbol
from cogwork.container.vhost.filters import read_filters, selector_of
from cogwork.container.vhost.selection import DearSelectorError, selection
from cogwork.dataplane.message.messages import Message
from cogwork.nodes.stream.start import STREAM_FILTERS
from cogwork.plugin.node import Refused

SELECTOR = Described(Symbol("apache.org:selector-filter:string"), "a = 1")


@pytest.mark.parametrize("known", [None, STREAM_FILTERS])
@pytest.mark.parametrize(
    "descriptor", [Decimal("sNaN"), ["a", "list"], {"a": "map"}, float("nan"), b"octets", None]
)
def test_filters_of_what_compares_with_nothing_are_passed_over(
    descriptor: object, known: frozenset[Symbol] | None
) -> None:
    filters = {Symbol("odd"): Described(descriptor, "x"), Symbol("s"): SELECTOR}
    found = read_filters(filters, known=known)
    assert found.applied == {"s": SELECTOR}
    assert found.selector is not None
    assert selector_of(filters) == {"s": SELECTOR}


UNREADABLE = b"\x00\x53\x77\xa1\x01\xff"
"""A body that is no UTF-8: who decodes it notices."""


def test_a_selector_reads_no_body_and_no_more_than_others_can_wait_for() -> None:
    holds = read_filters({Symbol("s"): SELECTOR}).selector
    assert holds is not None
    assert holds(Message(None, properties={"a": 1}).encode()[:-1] + b"\x40")
    assert holds(_without_body(Message(None, properties={"a": 1})) + UNREADABLE)
    long = Message(None, properties={"a": 1, "b": "x" * 300_000})
    assert not holds(long.encode())
    assert not holds(b"nothing" * 100)


def test_fields_of_the_header_are_named_as_in_amqp() -> None:
    fields = "amqp.durable AND amqp.priority = 7 AND amqp.ttl = 1500 AND amqp.delivery_count = 2"
    holds = selection(fields)
    assert holds(Message(None, durable=True, priority=7, ttl_s=1.5, delivery_count=2).encode())
    assert not holds(Message(None).encode())
    assert selection("amqp.ttl IS NULL")(Message(None).encode())


def _without_body(message: Message) -> bytes:
    return message.encode().removesuffix(b"\x00\x53\x77\x40")


def test_a_refusal_says_what_and_where_once() -> None:
    with pytest.raises(Refused) as refused:
        selection("subject =")
    assert str(refused.value).startswith("selector, character 10: the end; expected ")


def test_a_selector_that_takes_too_many_steps_says_so_once() -> None:
    text = " OR ".join(["a LIKE '%a%___b%'"] * 120)
    holds = selection(text)
    long = Message(None, properties={"a": "a" * 200_000}).encode()
    with pytest.raises(DearSelectorError) as dear:
        holds(long)
    assert str(dear.value).startswith(f"the selector {text[:60] + '…'!r} takes more than 50000 ")
    assert not holds(long)
    assert not holds(Message(None, properties={"a": "axxxb"}).encode())


def test_of_several_selectors_the_last_one_counts() -> None:
    """Others are not even read: to compile as many as fit into a frame takes its time."""
    filters = {Symbol("x"): Described(SELECTOR.descriptor, "a ="), Symbol("s"): SELECTOR}
    holds = read_filters(filters).selector
    assert holds is not None
    assert holds(Message(None, properties={"a": 1}).encode())
    with pytest.raises(Refused):
        read_filters(dict(reversed(filters.items())))
    with pytest.raises(Refused, match="a selector must be a string, not NoneType"):
        read_filters({Symbol("s"): Described(SELECTOR.descriptor, None)})
