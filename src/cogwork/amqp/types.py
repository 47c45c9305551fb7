"""The AMQP types that Python has no type of its own for (AMQP 1.0 §1.6).

Python's own types stand for the rest: `None`, `bool`, `int` (long; ulong above 2**63 - 1), `float`
(double), `str`, `bytes`, `uuid.UUID`, aware `datetime.datetime` (timestamp, in milliseconds),
`list`, `dict` (map) and `decimal.Decimal` (decimal128).
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar, Self, SupportsFloat

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = (
    "Array",
    "Byte",
    "Char",
    "Decimal32",
    "Decimal64",
    "Decimal128",
    "Described",
    "Float32",
    "Int",
    "Short",
    "Symbol",
    "Timestamp",
    "UByte",
    "UInt",
    "ULong",
    "UShort",
    "datetime_from_ms",
    "ms_from_datetime",
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class Symbol(str):
    """A name from a constrained domain: ASCII, which the encoder checks (§1.6.21)."""

    __slots__ = ()


class _Ranged(int):
    """An integer of fixed width."""

    __slots__ = ()
    MIN: ClassVar[int]
    MAX: ClassVar[int]

    def __new__(cls, value: int = 0) -> Self:
        if not cls.MIN <= value <= cls.MAX:
            raise ValueError(f"{cls.__name__} holds {cls.MIN} to {cls.MAX}, not {value}")
        return super().__new__(cls, value)


class UByte(_Ranged):
    """8 bits, unsigned (§1.6.3)."""

    __slots__ = ()
    MIN, MAX = 0, 2**8 - 1


class UShort(_Ranged):
    """16 bits, unsigned (§1.6.4)."""

    __slots__ = ()
    MIN, MAX = 0, 2**16 - 1


class UInt(_Ranged):
    """32 bits, unsigned (§1.6.5)."""

    __slots__ = ()
    MIN, MAX = 0, 2**32 - 1


class ULong(_Ranged):
    """64 bits, unsigned (§1.6.6)."""

    __slots__ = ()
    MIN, MAX = 0, 2**64 - 1


class Byte(_Ranged):
    """8 bits, signed (§1.6.7)."""

    __slots__ = ()
    MIN, MAX = -(2**7), 2**7 - 1


class Short(_Ranged):
    """16 bits, signed (§1.6.8)."""

    __slots__ = ()
    MIN, MAX = -(2**15), 2**15 - 1


class Int(_Ranged):
    """32 bits, signed (§1.6.9). A long is a plain `int`."""

    __slots__ = ()
    MIN, MAX = -(2**31), 2**31 - 1


class Timestamp(int):
    """Milliseconds since 1970, for times that no `datetime` can hold (§1.6.17)."""

    __slots__ = ()


class Float32(float):
    """A float of single precision (§1.6.11), rounded on construction."""

    __slots__ = ()

    def __new__(cls, value: SupportsFloat = 0.0) -> Self:  # noqa: D102  # the class says it
        try:
            (rounded,) = struct.unpack(">f", struct.pack(">f", float(value)))
        except OverflowError:
            raise ValueError(f"Float32 holds up to 3.4e38, not {value}") from None
        return super().__new__(cls, rounded)


class Char(str):
    """A single Unicode character (§1.6.16)."""

    __slots__ = ()

    def __new__(cls, value: str) -> Self:  # noqa: D102  # the class says it
        if len(value) != 1 or "\ud800" <= value <= "\udfff":
            raise ValueError(f"Char holds one Unicode character, not {value!r}")
        return super().__new__(cls, value)


class Decimal32(Decimal):
    """Seven digits, exponent -101 to 90 (§1.6.13)."""

    __slots__ = ()


class Decimal64(Decimal):
    """Sixteen digits, exponent -398 to 369 (§1.6.14)."""

    __slots__ = ()


class Decimal128(Decimal):
    """Thirty-four digits, exponent -6176 to 6111 (§1.6.15). A plain `Decimal` encodes as this."""

    __slots__ = ()


class Described:
    """A value with a descriptor that says what it means (§1.3.2).

    Attributes:
        descriptor: A `ULong` or a `Symbol`; the specification reserves all other types.
        value: The value described.
    """

    __slots__ = ("descriptor", "value")

    def __init__(self, descriptor: object, value: object) -> None:
        self.descriptor = descriptor
        self.value = value

    def __repr__(self) -> str:
        return f"Described({self.descriptor!r}, {self.value!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Described):
            return NotImplemented
        return self.descriptor == other.descriptor and self.value == other.value

    def __hash__(self) -> int:
        return hash((self.descriptor, self.value))


class Array:
    """Values of one type (§1.6.24).

    Attributes:
        items: The values.
        element_type: Their type: one of this module's classes, or the Python type that stands for
            the AMQP type (`int` is long, `float` double, `NoneType` null).
        descriptor: The descriptor that all items share, or None.
    """

    __slots__ = ("descriptor", "element_type", "items")

    def __init__(
        self, items: Iterable[object], element_type: type, descriptor: object = None
    ) -> None:
        self.items = tuple(items)
        self.element_type = element_type
        self.descriptor = descriptor

    def __repr__(self) -> str:
        described = "" if self.descriptor is None else f", {self.descriptor!r}"
        return f"Array({list(self.items)!r}, {self.element_type.__name__}{described})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Array):
            return NotImplemented
        return (self.items, self.element_type, self.descriptor) == (
            other.items,
            other.element_type,
            other.descriptor,
        )

    def __hash__(self) -> int:
        return hash((self.items, self.element_type, self.descriptor))


def datetime_from_ms(ms: int) -> datetime | Timestamp:
    """Return the time that lies `ms` milliseconds after 1970 in UTC."""
    try:
        return EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return Timestamp(ms)


def ms_from_datetime(value: datetime) -> int:
    """Return the whole milliseconds from 1970 to `value`, which must know its time zone.

    Raises:
        ValueError: `value` is naive, so it names no point in time.
    """
    if value.tzinfo is None:
        raise ValueError(f"a timestamp needs a time zone, as in tzinfo=UTC; {value} has none")
    return (value - EPOCH) // _MILLISECOND
