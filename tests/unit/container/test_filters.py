"""What a receiver's filters say, whatever a peer has put in."""

from __future__ import annotations

from decimal import Decimal

import pytest

from cogwork.amqp.types import Described, Symbol
from cogwork.container.filters import read_filters, selector_of

SELECTOR = Described(Symbol("apache.org:selector-filter:string"), "a = 1")


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(
    "descriptor", [Decimal("sNaN"), ["a", "list"], {"a": "map"}, float("nan"), b"octets", None]
)
def test_filters_of_what_compares_with_nothing_are_passed_over(
    descriptor: object, is_stream: bool
) -> None:
    filters = {Symbol("odd"): Described(descriptor, "x"), Symbol("s"): SELECTOR}
    found = read_filters(filters, is_stream=is_stream)
    assert found.applied == {"s": SELECTOR}
    assert found.selector is not None
    assert selector_of(filters) == {"s": SELECTOR}
