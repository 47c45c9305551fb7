"""Topic exchanges: binding keys are patterns of words, `*` for one and `#` for any number.

The trie is the one of topics (`router.topics`). Keys are octets, and words are split at `.` alone.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, cast

from cogwork.router.exchanges.binding import InvalidBinding
from cogwork.router.topics import PatternTooLongError, TopicTrie

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cogwork.router.exchanges.binding import Binding, Destination, Routed

__all__ = ("TopicExchange",)


class TopicExchange:
    """The bindings of one such exchange, as a trie of words.

    Attributes:
        interest: The trie, which the data plane matches keys by itself.
    """

    is_by_key = True

    def __init__(self, _arguments: Mapping[str, object], _choose: Callable[[int], int]) -> None:
        self.interest = TopicTrie()
        self._counts: Counter[tuple[bytes, Destination]] = Counter()

    def bind(self, binding: Binding) -> None:
        """Add a binding.

        Raises:
            InvalidBinding: Its key has too many words.
        """
        try:
            self.interest.bind(binding.key, binding.destination)
        except PatternTooLongError as error:
            raise InvalidBinding(str(error)) from error
        self._counts[binding.key, binding.destination] += 1

    def unbind(self, binding: Binding) -> None:
        """Remove a binding that was added."""
        pair = (binding.key, binding.destination)
        self._counts[pair] -= 1
        if not self._counts[pair]:
            del self._counts[pair]
            self.interest.unbind(*pair)

    def condition(self, binding: Binding) -> tuple[bytes, Mapping[str, object]]:
        """Return what of a binding's key and arguments decides whether it matches."""
        return binding.key, {}

    def match(self, message: Routed) -> Iterator[Destination]:
        """Yield the destinations of a message."""
        for key in message.keys:
            yield from cast("list[Destination]", self.interest.match(key))
