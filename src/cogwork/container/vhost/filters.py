"""What a receiver leaves out: by selector and no-local (AMQP 1.0 §3.5.8), and by size (§2.7.3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition
from cogwork.amqp.extensions import NO_LOCAL, SELECTOR
from cogwork.amqp.types import Described, Symbol, ULong
from cogwork.container.vhost.selection import selection
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Set

__all__ = ("Filters", "read_filters", "selector_of")

SELECTOR_BYTES_MAX = 16 * 1024
"""It fits into a frame between containers, with enough of the items that a consumer has."""

_SELECTOR = (SELECTOR, ULong(0x0000468C00000004))
_NO_LOCAL = (NO_LOCAL, ULong(0x0000468C00000003))


@dataclass(slots=True)
class Filters:
    """What a source's filter set asks for.

    Attributes:
        selector: Called with an encoded message; None lets every message through.
        no_local: Whether messages of the same connection are left out.
        applied: The filters that are in force, as the attach answers them.
    """

    selector: Callable[[bytes], bool] | None = None
    no_local: bool = False
    applied: dict[Symbol, object] = field(default_factory=dict)


def read_filters(
    filter_set: Mapping[Symbol, object] | None,
    *,
    known: Set[Symbol] | None = None,
    size_bytes_max: int | None = None,
) -> Filters:
    """Read a filter set; filters that are not known are left out of `applied`.

    Args:
        filter_set: The source's.
        known: Descriptors of the filters that a stream knows, which does not know who published a
            record; None if they are for no stream.
        size_bytes_max: The largest message that the receiver takes; 0 or None for any.

    Raises:
        Refused: A selector is no selector.
    """
    filters = Filters()
    selectors: list[object] = []
    for name, described in _nameable(filter_set):
        if known is not None and described.descriptor in known:
            filters.applied[name] = described
        elif described.descriptor in _NO_LOCAL and known is None:
            filters.no_local = True
            filters.applied[name] = described
        elif described.descriptor in _SELECTOR:
            selectors.append(described.value)
            filters.applied[name] = described
    if selectors:  # the last one counts, and to compile the others would take time
        filters.selector = _compile(selectors[-1])
    if size_bytes_max:
        filters.selector = _within(size_bytes_max, filters.selector)
    return filters


def selector_of(filter_set: Mapping[Symbol, object] | None) -> dict[Symbol, object]:
    """Return the selector of a filter set alone: the last one, which counts."""
    found = {
        name: described
        for name, described in _nameable(filter_set)
        if described.descriptor in _SELECTOR
    }
    return dict(list(found.items())[-1:])


def _nameable(filter_set: Mapping[Symbol, object] | None) -> Iterator[tuple[Symbol, Described]]:
    """Yield the filters that can be known: a peer may put in what compares with nothing."""
    for name, described in (filter_set or {}).items():
        if isinstance(described, Described) and isinstance(described.descriptor, str | int):
            yield name, described


def _within(
    size_bytes_max: int, selector: Callable[[bytes], bool] | None
) -> Callable[[bytes], bool]:
    """Let through what is small enough, and selected. A message is left out, not cut."""
    if selector is None:
        return lambda message: len(message) <= size_bytes_max
    return lambda message: len(message) <= size_bytes_max and selector(message)


def _compile(text: object) -> Callable[[bytes], bool]:
    if not isinstance(text, str):
        raise Refused(
            f"a selector must be a string, not {type(text).__name__}", Condition.INVALID_FIELD
        )
    size_bytes = len(text.encode())
    if size_bytes > SELECTOR_BYTES_MAX:
        raise Refused(
            f"a selector of {size_bytes} octets; expected at most {SELECTOR_BYTES_MAX}",
            Condition.INVALID_FIELD,
        )
    return selection(text)
