"""Decimal floating point, IEEE 754-2008 in the binary integer form (AMQP 1.0 §1.6.13 to §1.6.15).

A number is a sign bit, a biased exponent and an integer coefficient. Where the coefficient needs
one bit more than there is room for, the two bits after the sign are set, the exponent follows, and
the coefficient's leading bits are the implied 100. Bits 11110 after the sign are infinity, 11111
not-a-number, whose payload is not kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cogwork.amqp.exceptions import EncodeError
from cogwork.amqp.types import Decimal32, Decimal64, Decimal128

if TYPE_CHECKING:
    from decimal import Decimal

__all__ = ("DECIMAL32", "DECIMAL64", "DECIMAL128", "Layout", "from_bytes", "to_bytes")


class Layout(NamedTuple):
    """How one width is laid out."""

    type: type[Decimal]
    width_bytes: int
    digits: int
    exponent_bits: int
    bias: int

    @property
    def coefficient_bits(self) -> int:
        """The room for the coefficient beside sign and exponent."""
        return self.width_bytes * 8 - 1 - self.exponent_bits

    @property
    def exponent_max(self) -> int:
        """The largest exponent; its two leading bits are never both set."""
        return (3 << (self.exponent_bits - 2)) - 1 - self.bias


DECIMAL32 = Layout(Decimal32, 4, 7, 8, 101)
DECIMAL64 = Layout(Decimal64, 8, 16, 10, 398)
DECIMAL128 = Layout(Decimal128, 16, 34, 14, 6176)

_INFINITY = 0b11110
_NAN = 0b111110
_SIGNALLING_NAN = 0b111111


def to_bytes(layout: Layout, value: Decimal) -> bytes:
    """Encode `value` exactly.

    Raises:
        EncodeError: It has more digits or a larger exponent than `layout` holds.
    """
    bits = layout.width_bytes * 8
    sign = int(value.is_signed()) << (bits - 1)
    if value.is_infinite():
        number = _INFINITY << (bits - 6)
    elif value.is_nan():
        number = (_SIGNALLING_NAN if value.is_snan() else _NAN) << (bits - 7)
    else:
        number = _pack(layout, *_fit(layout, value))
    return (sign | number).to_bytes(layout.width_bytes, "big")


def from_bytes(layout: Layout, data: bytes) -> Decimal:
    """Decode `layout.width_bytes` bytes, any of which mean something."""
    bits = layout.width_bytes * 8
    number = int.from_bytes(data, "big")
    sign, number = number >> (bits - 1), number & ((1 << (bits - 1)) - 1)
    if number >> (bits - 6) == _INFINITY:
        text = "Infinity"
    elif number >> (bits - 6) == _INFINITY | 1:
        text = "sNaN" if number >> (bits - 7) & 1 else "NaN"
    else:
        coefficient, exponent = _unpack(layout, number)
        text = f"{coefficient}E{exponent}"
    return layout.type("-" * sign + text)


def _fit(layout: Layout, value: Decimal) -> tuple[int, int]:
    """Bring coefficient and exponent into range by moving zeros between them."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    coefficient = int("".join(map(str, digits)))
    if coefficient == 0:
        return 0, max(-layout.bias, min(exponent, layout.exponent_max))
    limit = 10**layout.digits
    while (coefficient >= limit or exponent < -layout.bias) and coefficient % 10 == 0:
        coefficient, exponent = coefficient // 10, exponent + 1
    spare = layout.digits - len(str(coefficient))
    if 0 < exponent - layout.exponent_max <= spare:
        coefficient *= 10 ** (exponent - layout.exponent_max)
        exponent = layout.exponent_max
    if coefficient >= limit or not -layout.bias <= exponent <= layout.exponent_max:
        raise EncodeError(
            f"{layout.type.__name__} holds {layout.digits} digits and exponents from "
            f"{-layout.bias} to {layout.exponent_max}, not {value}"
        )
    return coefficient, exponent


def _pack(layout: Layout, coefficient: int, exponent: int) -> int:
    biased = exponent + layout.bias
    room = layout.coefficient_bits
    if coefficient < 1 << room:
        return biased << room | coefficient
    kept = coefficient & ((1 << (room - 2)) - 1)
    return 0b11 << (layout.width_bytes * 8 - 3) | biased << (room - 2) | kept


def _unpack(layout: Layout, number: int) -> tuple[int, int]:
    room = layout.coefficient_bits
    if number >> (layout.width_bytes * 8 - 3) == 0b11:
        biased = number >> (room - 2) & ((1 << layout.exponent_bits) - 1)
        coefficient = 0b100 << (room - 2) | number & ((1 << (room - 2)) - 1)
    else:
        biased = number >> room
        coefficient = number & ((1 << room) - 1)
    if coefficient >= 10**layout.digits:
        coefficient = 0  # IEEE 754-2008 §3.5.2: a coefficient out of range counts as zero
    return coefficient, biased - layout.bias
