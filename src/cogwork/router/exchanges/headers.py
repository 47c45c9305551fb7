"""Headers exchanges: a message goes where its headers fit the arguments of a binding.

Theory of operation. `x-match` says how: `all` (the default) needs every argument among the headers,
`any` at least one. Keys that begin with `x-` do not count, unless it is `all-with-x` or
`any-with-x`. An argument without a value stands for the presence of its key.

Bindings stand in an index, so that only those are looked at that share a header with the message:
one that needs all of its arguments under one of them, one that needs any under each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cogwork.router.exchanges.binding import InvalidBinding, comparable, field_type

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping

    from cogwork.router.exchanges.binding import Binding, Destination, Routed

__all__ = ("HeadersExchange",)

X_MATCH: Final = "x-match"
MODES: Final = ("all", "any", "all-with-x", "any-with-x")

Term = tuple[str, "Hashable"]
"""A key, and what its value is compared as; None there stands for any value."""


class HeadersExchange:
    """The bindings of one such exchange, by the headers that they need."""

    is_by_key = False

    def __init__(self, _arguments: Mapping[str, object], _choose: Callable[[int], int]) -> None:
        self._terms: dict[Binding, tuple[bool, frozenset[Term]]] = {}
        self._by_term: dict[Term, dict[Binding, None]] = {}
        self._always: dict[Binding, None] = {}

    def bind(self, binding: Binding) -> None:
        """Add a binding.

        Raises:
            InvalidBinding: Its `x-match` is none of the four.
        """
        is_all, terms = _read(binding.arguments)
        self._terms[binding] = (is_all, terms)
        for term in _index_terms(is_all, terms):
            self._by_term.setdefault(term, {})[binding] = None
        if is_all and not terms:
            self._always[binding] = None

    def unbind(self, binding: Binding) -> None:
        """Remove a binding that was added."""
        is_all, terms = self._terms.pop(binding)
        for term in _index_terms(is_all, terms):
            del self._by_term[term][binding]
            if not self._by_term[term]:
                del self._by_term[term]
        self._always.pop(binding, None)

    def condition(self, binding: Binding) -> tuple[bytes, Mapping[str, object]]:
        """Return what of a binding's key and arguments decides whether it matches."""
        return b"", binding.arguments

    def match(self, message: Routed) -> Iterator[Destination]:
        """Yield the destinations of a message."""
        for binding in self._always:
            yield binding.destination
        said = {term for item in message.headers.items() for term in _terms_of(*item)}
        for term in said & self._by_term.keys():
            for binding in self._by_term[term]:
                is_all, terms = self._terms[binding]
                if not is_all or terms <= said:
                    yield binding.destination


def _read(arguments: Mapping[str, object]) -> tuple[bool, frozenset[Term]]:
    """Return whether a binding needs all of its arguments, and which count."""
    mode = arguments.get(X_MATCH, "all")
    if not isinstance(mode, str):
        raise InvalidBinding(
            f"Invalid x-match field type {field_type(mode)} (value {mode!r:.80}); expected longstr"
        )
    if mode not in MODES:
        raise InvalidBinding(
            f'Invalid x-match field value <<"{mode:.80}">>; '
            "expected all, any, all-with-x, or any-with-x"
        )
    with_x = mode.endswith("-with-x")
    counted = {
        key: value
        for key, value in arguments.items()
        if key != X_MATCH and (with_x or not key.startswith("x-"))
    }
    terms = frozenset(
        (key, None if value is None else comparable(value)) for key, value in counted.items()
    )
    return mode.startswith("all"), terms


def _index_terms(is_all: bool, terms: frozenset[Term]) -> list[Term]:
    """Return under which of its terms a binding is found; the same each time."""
    ordered = sorted(terms, key=lambda term: (term[1] is None, repr(term)))
    return ordered[:1] if is_all else ordered


def _terms_of(key: str, value: object) -> tuple[Term, Term]:
    """Return what a header fits: its value, and any value."""
    return (str(key), comparable(value)), (str(key), None)
