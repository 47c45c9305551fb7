"""What containers tell each other of private queues: bindings that lead to them, and messages.

Theory of operation. A binding of a private queue is told as an address that nobody can send to:
`$binding/TYPE/EXCHANGE/KEY`, each part percent-encoded, then the arguments if there are any, then
the queue if it has to be named. Containers of earlier versions take it for an address without use.
Where each binding of a type matches by itself (`plugin.exchange_types`), queues that are bound
alike are told as one, and what matches is looked up again where they are; else each is named.

A message that goes to another container says its route: the exchanges at which it matched, the
queues that were named, and what else is to be heeded; each behind its size, the three apart.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, unquote, unquote_to_bytes

from cogwork.amqp091.errors import ProtocolError
from cogwork.amqp091.tables import decode_table, encode_table
from cogwork.router.exchanges.binding import CONTAINER, Binding, Destination

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = (
    "BINDING_PREFIX",
    "Forward",
    "ForwardRoute",
    "ForwardsFound",
    "PrivateBinding",
    "container_destination",
    "keys_in",
    "queue_at_container",
    "route_in",
)

BINDING_PREFIX: Final = "$binding/"

SIZE_BYTES: Final = 4

IMMEDIATE: Final = "immediate"
"""What is to be heeded of a message that is delivered at once, or not at all."""


class ForwardRoute(NamedTuple):
    """Where a message is to be looked up at another container.

    Attributes:
        exchanges: Those at which a binding to that container has matched.
        queues: Queues there that a binding has named.
        is_immediate: Whether it goes to queues alone whose consumers can take it now.
    """

    exchanges: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    is_immediate: bool = False

    @property
    def octets(self) -> bytes:
        """The route as a wrapping has it."""
        heeded = (IMMEDIATE,) if self.is_immediate else ()
        return b"".join(_packed(each) for each in (self.exchanges, self.queues, heeded))


class Forward(NamedTuple):
    """A container that a message goes to.

    Attributes:
        container: Its id.
        route: Where the message is to be looked up there.
    """

    container: str
    route: ForwardRoute


class ForwardsFound:
    """Collects where a message has matched bindings to other containers: it goes to each once."""

    def __init__(self) -> None:
        self._exchanges: dict[str, dict[str, None]] = {}
        self._queues: dict[str, dict[str, None]] = {}

    def note(self, exchange: str, destination: str) -> None:
        """Take note that a binding from an exchange has matched, to such a destination's name."""
        container, slash, queue = destination.partition("/")
        container = unquote(container)
        exchanges = self._exchanges.setdefault(container, {})
        queues = self._queues.setdefault(container, {})
        if slash:
            queues[unquote(queue, errors="surrogateescape")] = None
        else:
            exchanges[exchange] = None

    def all(self) -> tuple[Forward, ...]:
        """Return what was found, container by container."""
        return tuple(
            Forward(each, ForwardRoute(tuple(exchanges), tuple(self._queues[each])))
            for each, exchanges in self._exchanges.items()
        )


class PrivateBinding(NamedTuple):
    """A binding of a private queue, as other containers know it.

    Attributes:
        kind: The type of the exchange.
        exchange: Its name.
        key: The binding key.
        arguments: Of the binding.
        queue: The queue; None where several may be bound alike.
    """

    kind: str
    exchange: str
    key: bytes
    arguments: Mapping[str, object]
    queue: str | None = None

    @property
    def address(self) -> str:
        """The address that it is told as."""
        table = urlsafe_b64encode(encode_table(dict(self.arguments))) if self.arguments else b""
        parts = [quote(self.kind, safe=""), _quoted(self.exchange), quote(self.key, safe="")]
        if table or self.queue is not None:
            parts.append(table.decode())
        if self.queue is not None:
            parts.append(_quoted(self.queue))
        return BINDING_PREFIX + "/".join(parts)

    @classmethod
    def of(cls, address: str) -> PrivateBinding:
        """Return the binding that an address tells.

        Raises:
            ValueError: It tells none.
        """
        kind, exchange, key, *more = address.removeprefix(BINDING_PREFIX).split("/")
        table, queue = (*more, "", "")[:2]
        try:
            arguments = decode_table(urlsafe_b64decode(table)) if table else {}
        except ProtocolError as error:
            raise ValueError(f"the arguments of {address!r:.200} cannot be read") from error
        return cls(
            unquote(kind),
            _unquoted(exchange),
            unquote_to_bytes(key),
            arguments,
            _unquoted(queue) if len(more) > 1 else None,
        )

    def seen_from(self, container: str) -> Binding:
        """Return the binding by which the other containers' messages go to its container."""
        return Binding(container_destination(container, self.queue), self.key, self.arguments)


def container_destination(container: str, queue: str | None = None) -> Destination:
    """Return the destination that stands for private queues of a container, or for one of them."""
    name = quote(container, safe="")
    return Destination(CONTAINER, name if queue is None else f"{name}/{_quoted(queue)}")


def queue_at_container(destination: Destination) -> str | None:
    """Return the private queue of another container that a destination names; None for none."""
    if destination.kind != CONTAINER:
        return None
    _, slash, queue = destination.name.partition("/")
    return _unquoted(queue) if slash else None


def route_in(octets: bytes) -> ForwardRoute:
    """Return the route that a wrapping has.

    Raises:
        ValueError: It cannot be read.
    """
    exchanges, at = _unpacked(octets, 0)
    queues, at = _unpacked(octets, at)
    heeded, at = _unpacked(octets, at)
    if at != len(octets) or not {IMMEDIATE}.issuperset(heeded):
        raise ValueError("a route that says more than is known here")
    return ForwardRoute(exchanges, queues, IMMEDIATE in heeded)


def keys_in(octets: bytes) -> tuple[bytes, ...]:
    """Return the keys that a wrapping has; none where the message says them.

    Raises:
        ValueError: They cannot be read.
    """
    keys: list[bytes] = []
    at = 0
    while at < len(octets):
        key, at = _part(octets, at)
        keys.append(key)
    return tuple(keys)


def _packed(names: Iterable[str]) -> bytes:
    parts = [_sized(name.encode(errors="surrogateescape")) for name in names]
    return _sized(b"".join(parts))


def _sized(octets: bytes) -> bytes:
    return len(octets).to_bytes(SIZE_BYTES, "big") + octets


def _unpacked(octets: bytes, at: int) -> tuple[tuple[str, ...], int]:
    part, end = _part(octets, at)
    return tuple(name.decode(errors="surrogateescape") for name in keys_in(part)), end


def _part(octets: bytes, at: int) -> tuple[bytes, int]:
    start = at + SIZE_BYTES
    end = start + int.from_bytes(octets[at:start], "big")
    if start > len(octets) or end > len(octets):
        raise ValueError("a part that is cut off")
    return octets[start:end], end


def _quoted(name: str) -> str:
    return quote(name, safe="", errors="surrogateescape")


def _unquoted(name: str) -> str:
    return unquote(name, errors="surrogateescape")
