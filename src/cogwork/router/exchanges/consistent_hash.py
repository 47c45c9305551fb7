"""Consistent-hash exchanges: each key has one destination, and few move when one comes or goes.

Theory of operation. The binding key is a weight: so many points on a ring belong to the
destination. A message goes to the destination of the first point at or after the hash of its
routing key, or of the header that the exchange's argument `hash-header` names.
"""

from __future__ import annotations

from bisect import bisect_left
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from cogwork.router.exchanges.binding import QUEUE, Destination, InvalidBinding, comparable
from cogwork.router.exchanges.forwards import queue_at_container

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cogwork.router.exchanges.binding import Binding, Routed

__all__ = ("ConsistentHashExchange",)

POINTS: Final = 64
"""Points of a weight of one: destinations of equal weight differ by some 12 % then."""

WEIGHT_MAX: Final = 1000
"""It bounds what one binding costs: 64,000 points, about 5 MB."""


class ConsistentHashExchange:
    """The bindings of one such exchange, as points on a ring."""

    def __init__(self, arguments: Mapping[str, object], _choose: Callable[[int], int]) -> None:
        """Start with an empty ring.

        Args:
            arguments: `hash-header` names the header that is hashed in place of the key.

        Raises:
            InvalidBinding: The argument is no name, or `hash-property` is asked for.
        """
        header = arguments.get("hash-header")
        if header is not None and (not isinstance(header, str) or not header):
            raise InvalidBinding(f"invalid hash-header {header!r:.80}; expected a header's name")
        if "hash-property" in arguments:
            raise InvalidBinding("hash-property is not supported; hash-header or the key is hashed")
        self._header = header
        self.is_by_key = header is None
        self._weights: dict[Binding, int] = {}
        self._ring: list[tuple[int, Destination]] = []

    def bind(self, binding: Binding) -> None:
        """Add a destination, with the weight that its key says.

        Raises:
            InvalidBinding: The key is no number from 1 to `WEIGHT_MAX`.
        """
        self._weights[binding] = _weight(binding.key)
        self._ring.clear()

    def unbind(self, binding: Binding) -> None:
        """Remove a binding that was added."""
        del self._weights[binding]
        self._ring.clear()

    def match(self, message: Routed) -> Iterator[Destination]:
        """Yield the one destination of each of a message's keys."""
        if not self._weights:
            return
        if not self._ring:
            self._ring = sorted(self._points())
        for key in message.keys if self._header is None else (self._value(message, self._header),):
            at = bisect_left(self._ring, (_hash(key),))
            yield self._ring[at % len(self._ring)][1]

    def _value(self, message: Routed, header: str) -> bytes:
        return repr(comparable(message.headers.get(header))).encode(errors="surrogateescape")

    def _points(self) -> Iterator[tuple[int, Destination]]:
        for binding, weight in self._weights.items():
            name = "/".join(_seen_by_all(binding.destination)).encode(errors="surrogateescape")
            for number in range(weight * POINTS):
                yield _hash(b"%d:%b:%b" % (number, binding.key, name)), binding.destination


def _seen_by_all(destination: Destination) -> Destination:
    """Return a destination as its own container sees it, so that all of them have the same ring."""
    queue = queue_at_container(destination)
    return destination if queue is None else Destination(QUEUE, queue)


def _weight(key: bytes) -> int:
    if not key.isdigit():
        raise InvalidBinding(f"The binding key must be an integer: {key.decode(errors='replace')}")
    weight = int(key[:20])
    if not 1 <= weight <= WEIGHT_MAX:
        raise InvalidBinding(f"The binding key must be from 1 to {WEIGHT_MAX}: {weight}")
    return weight


def _hash(octets: bytes) -> int:
    return int.from_bytes(blake2b(octets, digest_size=8).digest(), "big")
