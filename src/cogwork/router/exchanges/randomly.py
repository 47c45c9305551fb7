"""Random exchanges: each message goes to one of the bindings' destinations, whatever its key."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.router.exchanges.binding import Binding, Destination, Routed

__all__ = ("RandomExchange",)


class RandomExchange:
    """The bindings of one such exchange."""

    is_by_key = False

    def __init__(self, _arguments: Mapping[str, object], choose: Callable[[int], int]) -> None:
        """Start without bindings.

        Args:
            choose: Returns a number below the one that it is given.
        """
        self._choose = choose
        self._bound: list[Binding] = []

    def bind(self, binding: Binding) -> None:
        """Add a binding."""
        self._bound.append(binding)

    def unbind(self, binding: Binding) -> None:
        """Remove a binding that was added."""
        self._bound.remove(binding)

    def match(self, _message: Routed) -> list[Destination]:
        """Return one destination, or none if there is none."""
        if not self._bound:
            return []
        return [self._bound[self._choose(len(self._bound))].destination]
