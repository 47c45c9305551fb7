"""Fanout exchanges: a message goes wherever anything is bound, whatever its key."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cogwork.router.exchanges.binding import Binding, Destination, Routed

__all__ = ("FanoutExchange",)


class FanoutExchange:
    """The bindings of one such exchange."""

    is_by_key = True

    def __init__(self, _arguments: Mapping[str, object], _choose: Callable[[int], int]) -> None:
        self._bound: Counter[Destination] = Counter()

    def bind(self, binding: Binding) -> None:
        """Add a binding."""
        self._bound[binding.destination] += 1

    def unbind(self, binding: Binding) -> None:
        """Remove a binding that was added."""
        self._bound[binding.destination] -= 1
        if not self._bound[binding.destination]:
            del self._bound[binding.destination]

    def condition(self, _binding: Binding) -> tuple[bytes, Mapping[str, object]]:
        """Return what of a binding's key and arguments decides whether it matches."""
        return b"", {}

    def match(self, _message: Routed) -> Iterable[Destination]:
        """Return the destinations of a message: all."""
        return self._bound
