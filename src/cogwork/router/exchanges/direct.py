"""Direct exchanges: a message goes where one of its keys is bound."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cogwork.router.exchanges.binding import Binding, Destination, Routed

__all__ = ("DirectExchange",)


class DirectExchange:
    """The bindings of one such exchange, by key."""

    is_by_key = True

    def __init__(self, _arguments: Mapping[str, object], _choose: Callable[[int], int]) -> None:
        self._by_key: dict[bytes, Counter[Destination]] = {}

    def bind(self, binding: Binding) -> None:
        """Add a binding. Those that differ only in their arguments count apart."""
        self._by_key.setdefault(binding.key, Counter())[binding.destination] += 1

    def unbind(self, binding: Binding) -> None:
        """Remove a binding that was added."""
        bound = self._by_key[binding.key]
        bound[binding.destination] -= 1
        if not bound[binding.destination]:
            del bound[binding.destination]
        if not bound:
            del self._by_key[binding.key]

    def condition(self, binding: Binding) -> tuple[bytes, Mapping[str, object]]:
        """Return what of a binding's key and arguments decides whether it matches."""
        return binding.key, {}

    def match(self, message: Routed) -> Iterator[Destination]:
        """Yield the destinations of a message."""
        for key in message.keys:
            yield from self._by_key.get(key, ())
