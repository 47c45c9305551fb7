"""The types of composite fields: what each takes on the wire and what it is in Python.

A kind is data: the wire types it accepts, and two conversions. `COMPOSITES` is the registry that
nested composites (errors, delivery states, termini) are found in by their descriptor.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, Self

from cogwork.amqp.exceptions import Condition, ProtocolError
from cogwork.amqp.types import (
    Array,
    Described,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

if TYPE_CHECKING:
    import enum
    from collections.abc import Callable

__all__ = (
    "BINARY",
    "BOOLEAN",
    "COMPOSITES",
    "DELIVERY_TAG",
    "FIELDS",
    "MESSAGE_ID",
    "STRING",
    "SYMBOL",
    "SYMBOLS",
    "TIMESTAMP",
    "UBYTE",
    "UINT",
    "ULONG",
    "UNSETTLED",
    "USHORT",
    "Kind",
    "choice",
    "composite_from",
    "nested",
)

MAX_DELIVERY_TAG_BYTES = 32
"""AMQP 1.0 §2.8.7."""


class Kind:
    """The type of a field.

    Attributes:
        name: As the specification calls it.
        wire_types: The decoded types that the field takes, exactly; empty for any.
        to_wire: Turns the attribute into what is encoded; None where it is encoded as it is.
        from_wire: Turns the decoded value into the attribute; None where it is taken as it is.
        members: The wire names of the composites that it takes; empty where it takes none.
    """

    __slots__ = ("from_wire", "members", "name", "to_wire", "wire_types")

    def __init__(
        self,
        name: str,
        wire_types: tuple[type, ...],
        to_wire: Callable[[object], object] | None = None,
        from_wire: Callable[[object], object] | None = None,
        members: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.wire_types = frozenset(wire_types)
        self.to_wire = to_wire
        self.from_wire = from_wire
        self.members = frozenset(members)


class Nested(Protocol):
    """What the registry holds: a composite class."""

    def to_described(self) -> Described:
        """Return the value to encode."""

    @classmethod
    def from_fields(cls, values: object) -> Self:
        """Build one from the described list."""


COMPOSITES: dict[object, type[Nested]] = {}
"""Composite classes by numeric and by symbolic descriptor."""


def composite_from(value: Described) -> Nested:
    """Return the composite that `value` is on the wire.

    Raises:
        ProtocolError: No composite has this descriptor, or a field is wrong.
    """
    descriptor = value.descriptor
    known = isinstance(descriptor, ULong | Symbol)
    found = COMPOSITES.get(descriptor) if known else None
    if found is None:
        raise ProtocolError(
            Condition.NOT_IMPLEMENTED, f"{descriptor!r:.80} describes nothing known"
        )
    return found.from_fields(value.value)


def _of(expected: type) -> Callable[[object], object]:
    """Return a check that the attribute is of the type that is encoded."""

    def check(value: object) -> object:
        if not isinstance(value, expected):
            raise TypeError(f"{expected.__name__} is expected, not {value!r:.80}")
        return value

    return check


def _integer(name: str, kind: type[UByte | UShort | UInt | ULong]) -> Kind:
    maximum = kind.MAX

    def wrap(value: object) -> object:
        if not isinstance(value, int):
            raise TypeError(f"an integer is expected, not {value!r:.80}")
        if 0 <= value <= maximum:
            return int.__new__(kind, value)
        raise ValueError(f"0 to {maximum} is expected, not {value}")

    return Kind(name, (kind,), wrap)


def _symbol_to_wire(value: object) -> object:
    if not isinstance(value, str):
        raise TypeError(f"a symbol is expected, not {value!r:.80}")
    return Symbol(value)


def _symbols_to_wire(value: object) -> object:
    """Return an array always: what every peer understands, also for one symbol."""
    if not isinstance(value, tuple | list):
        raise TypeError(f"a tuple of symbols is expected, not {value!r:.80}")
    return Array(map(Symbol, value), Symbol) if value else None


def _symbols_from_wire(value: object) -> object:
    """Take one symbol, or an array of them (AMQP 1.0 §1.4, the attribute `multiple`)."""
    if isinstance(value, Symbol):
        return (value,)
    assert isinstance(value, Array)
    if value.element_type is not Symbol or value.descriptor is not None:
        raise ValueError(f"an array of symbols is expected, not of {value.element_type.__name__}")
    return value.items


def _fields_to_wire(value: object) -> object:
    if not isinstance(value, dict):
        raise TypeError(f"a dict is expected, not {value!r:.80}")
    return {_symbol_to_wire(key): item for key, item in value.items()}


def _fields_from_wire(value: object) -> object:
    assert isinstance(value, dict)
    for key in value:
        if type(key) is not Symbol:
            raise ValueError(f"a map with symbols as keys is expected, not {key!r:.80}")
    return value


def _text_to_wire(value: object) -> object:
    """Return a plain str: a Symbol would be encoded as a symbol."""
    if not isinstance(value, str):
        raise TypeError(f"str is expected, not {value!r:.80}")
    return str(value)


def _message_id_to_wire(value: object) -> object:
    if isinstance(value, int):
        return ULong(value)
    if isinstance(value, str):
        return str(value)
    if not isinstance(value, bytes | uuid.UUID):
        raise TypeError(f"an int, a UUID, bytes or a str is expected, not {value!r:.80}")
    return value


def _timestamp_to_wire(value: object) -> object:
    if not isinstance(value, datetime | Timestamp):
        raise TypeError(f"a datetime is expected, not {value!r:.80}")
    return value


def _tag(value: object) -> object:
    if not isinstance(value, bytes):
        raise TypeError(f"bytes are expected, not {value!r:.80}")
    if len(value) > MAX_DELIVERY_TAG_BYTES:
        raise ValueError(f"at most {MAX_DELIVERY_TAG_BYTES} bytes are expected, not {len(value)}")
    return value


def _unsettled_to_wire(value: object) -> object:
    if not isinstance(value, dict):
        raise TypeError(f"a dict is expected, not {value!r:.80}")
    for state in value.values():
        if state is not None and not hasattr(state, "to_described"):
            raise TypeError(f"a delivery state is expected, not {state!r:.80}")
    return {tag: None if state is None else state.to_described() for tag, state in value.items()}


def _unsettled_from_wire(value: object) -> object:
    """Take delivery-tags to delivery states; null stands for no state yet (AMQP 1.0 §2.7.3)."""
    assert isinstance(value, dict)
    result: dict[bytes, Nested | None] = {}
    for tag, state in value.items():
        if not isinstance(tag, bytes) or not isinstance(state, Described | None):
            raise ValueError("a map from delivery-tags to delivery states is expected")
        result[tag] = None if state is None else composite_from(state)
    return result


def choice(name: str, wire_type: type, members: type[enum.Enum]) -> Kind:
    """Return the kind of a field that takes only the values of an enumeration."""
    to_wire = {key: wire_type(member.value) for member in members for key in (member, member.value)}
    from_wire = {wire_type(member.value): member for member in members}
    expected = ", ".join(str(member.value) for member in members)

    def encode(value: object) -> object:
        found = to_wire.get(value)
        if found is None:
            raise ValueError(f"one of {expected} is expected, not {value!r:.80}")
        return found

    def decode(value: object) -> object:
        found = from_wire.get(value)
        if found is None:
            raise ValueError(f"one of {expected} is expected, not {value!r:.80}")
        return found

    return Kind(name, (wire_type,), encode, decode)


def nested(name: str, *class_names: str) -> Kind:
    """Return the kind of a field that holds one of the composites with these wire names."""

    def encode(value: object) -> object:
        if getattr(type(value), "NAME", None) not in class_names:
            raise TypeError(f"{name} is expected, not {value!r:.80}")
        return value.to_described()  # type: ignore[attr-defined]  # NAME says: a composite

    def decode(value: object) -> object:
        assert isinstance(value, Described)
        found = composite_from(value)
        if getattr(found, "NAME", None) not in class_names:
            raise ValueError(f"{name} is expected, not {found!r:.80}")
        return found

    return Kind(name, (Described,), encode, decode, class_names)


BOOLEAN = Kind("boolean", (bool,), _of(bool))
UBYTE = _integer("ubyte", UByte)
USHORT = _integer("ushort", UShort)
UINT = _integer("uint", UInt)
ULONG = _integer("ulong", ULong)
STRING = Kind("string", (str,), _text_to_wire)
BINARY = Kind("binary", (bytes,), _of(bytes))
SYMBOL = Kind("symbol", (Symbol,), _symbol_to_wire)
SYMBOLS = Kind("symbols", (Symbol, Array), _symbols_to_wire, _symbols_from_wire)
FIELDS = Kind("fields", (dict,), _fields_to_wire, _fields_from_wire)
TIMESTAMP = Kind("timestamp", (datetime, Timestamp), _timestamp_to_wire)
MESSAGE_ID = Kind("message-id", (ULong, uuid.UUID, bytes, str), _message_id_to_wire)
DELIVERY_TAG = Kind("delivery-tag", (bytes,), _tag, _tag)
UNSETTLED = Kind("map", (dict,), _unsettled_to_wire, _unsettled_from_wire)
