"""What exchanges deal with: destinations, bindings, and what a message says for its routing."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogwork.amqp.types import Timestamp as Milliseconds
from cogwork.amqp091 import types
from cogwork.amqp091.types import Timestamp as Seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

__all__ = (
    "CONTAINER",
    "EXCHANGE",
    "QUEUE",
    "Binding",
    "Destination",
    "InvalidBinding",
    "Routed",
    "comparable",
    "field_type",
)

QUEUE: Final = "queue"
EXCHANGE: Final = "exchange"
CONTAINER: Final = "container"
"""Kinds of destinations; a container stands for private queues there (`forwards`)."""


class InvalidBinding(ValueError):
    """A key or an argument that the exchange's type cannot use; the text says why."""


class Destination(NamedTuple):
    """Where a binding leads.

    Attributes:
        kind: `queue`, `exchange` or `container`.
        name: Its name.
    """

    kind: str
    name: str


class Binding:
    """A destination with the key and the arguments that it is bound by.

    Two bindings are the same if all three are.

    Attributes:
        destination: Where it leads.
        key: The binding key.
        arguments: As the type of the exchange understands them.
    """

    __slots__ = ("_identity", "arguments", "destination", "key")

    def __init__(
        self, destination: Destination, key: bytes, arguments: Mapping[str, object] | None = None
    ) -> None:
        self.destination = destination
        self.key = key
        self.arguments: Mapping[str, object] = arguments or {}
        self._identity = (destination, key, comparable(self.arguments))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Binding) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        return f"Binding({self.destination!r}, {self.key!r}, {dict(self.arguments)!r})"


class Routed:
    """What a message says for its routing.

    Attributes:
        keys: Its routing keys: mostly one.
    """

    def __init__(
        self, keys: tuple[bytes, ...], read_headers: Callable[[], Mapping[str, object]] = dict
    ) -> None:
        """Initialize it with keys.

        Args:
            keys: The message's own, and those that it carries besides (CC, BCC).
            read_headers: Decodes the headers; called if an exchange asks for them.
        """
        self.keys = keys
        self._read_headers = read_headers

    @cached_property
    def headers(self) -> Mapping[str, object]:
        """The message's headers, or application properties."""
        return self._read_headers()


def comparable(value: object) -> Hashable:
    """Return what stands for a value of a header when it is compared.

    Integers of all widths are one class, and so are floating-point numbers, as in RabbitMQ; a value
    equals none of another class, so that 1 is neither true nor 1.0.
    """
    for kind, name, read in _CLASSES:
        if isinstance(value, kind):
            return name, read(value)
    return type(value).__name__, str(value)


_CLASSES: tuple[tuple[type | tuple[type, ...], str, Callable[[Any], Hashable]], ...] = (
    (type(None), "nothing", lambda _: None),
    (bool, "bool", bool),
    (Seconds, "time", lambda time: int(time) * 1000),
    (Milliseconds, "time", int),
    (datetime, "time", lambda time: round(time.timestamp() * 1000)),
    (int, "int", int),
    (float, "float", float),
    (str, "text", str),
    ((bytes, bytearray, memoryview), "octets", bytes),
    ((list, tuple), "list", lambda items: tuple(comparable(each) for each in items)),
    (dict, "table", lambda table: frozenset((str(k), comparable(v)) for k, v in table.items())),
)
"""What is compared with each other, the first that fits: a `bool` is an `int` in Python."""


def field_type(value: object) -> str:
    """Return what RabbitMQ calls the type of a value in a field table."""
    if type(value) is int and not -(2**31) <= value < 2**31:
        return "long"
    return _FIELD_TYPES.get(type(value), type(value).__name__)


_FIELD_TYPES: Final = {
    type(None): "void",
    bool: "bool",
    types.Int8: "byte",
    types.UInt8: "unsignedbyte",
    types.Int16: "short",
    types.UInt16: "unsignedshort",
    int: "signedint",
    types.UInt32: "unsignedint",
    types.Int64: "long",
    types.Float32: "float",
    float: "double",
    Decimal: "decimal",
    str: "longstr",
    bytes: "binary",
    types.Timestamp: "timestamp",
    list: "array",
    dict: "table",
}
