"""Encodes again what was encoded, in any of the ways that AMQP 1.0 §1.6 allows, at random.

Nothing of the project but its reference decoder is used: what is written here comes of the tables
in the specification alone.
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from cogwork.amqp import codec, kinds, performatives
from cogwork.amqp.types import (
    Array,
    Described,
    Int,
    Symbol,
    Timestamp,
    UInt,
    ULong,
)

if TYPE_CHECKING:
    from random import Random

__all__ = ("Reencoder",)

assert performatives, "imported for the names that it registers"

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SECTIONS: Final = {
    0x70: "amqp:header:list",
    0x71: "amqp:delivery-annotations:map",
    0x72: "amqp:message-annotations:map",
    0x73: "amqp:properties:list",
    0x74: "amqp:application-properties:map",
    0x75: "amqp:data:binary",
    0x76: "amqp:amqp-sequence:list",
    0x77: "amqp:amqp-value:*",
    0x78: "amqp:footer:map",
}
FIELD_COUNTS: Final = {
    code: len(made.TABLE)  # type: ignore[attr-defined]  # any composite has a table
    for code, made in kinds.COMPOSITES.items()
    if isinstance(code, int)
}
NAMES: Final = {
    **{
        made.DESCRIPTOR: f"amqp:{made.NAME}:list"  # type: ignore[attr-defined]  # any composite has both
        for made in kinds.COMPOSITES.values()
    },
    **SECTIONS,
}
TEXT_CODES: Final = {bytes: 0xA0, str: 0xA1, Symbol: 0xA3}


class _Widths(NamedTuple):
    """The encodings of a type of whole numbers."""

    zero: int | None
    small: int
    small_format: str
    wide: int
    wide_format: str


_WIDTHS: Final[dict[type, _Widths]] = {
    UInt: _Widths(0x43, 0x52, ">B", 0x70, ">I"),
    ULong: _Widths(0x44, 0x53, ">B", 0x80, ">Q"),
    Int: _Widths(None, 0x54, ">b", 0x71, ">i"),
    int: _Widths(None, 0x55, ">b", 0x81, ">q"),
}


class Reencoder:
    """Writes values in ways that it chooses by `random`."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def message(self, data: bytes) -> bytes:
        """Encode a message again, all of its sections."""
        parts, at = [], 0
        while at < len(data):
            section, at = codec.decode(data, at)
            parts.append(self.value(section))
        return b"".join(parts)

    def performative(self, body: bytes) -> bytes:
        """Encode a frame's performative again; a payload stays as it is."""
        value, at = codec.decode(body, 0)
        return self.value(value) + body[at:]

    def value(self, value: object) -> bytes:  # noqa: PLR0911  # a return for each kind of type
        """Encode any value."""
        if isinstance(value, Described):
            return self._described(value)
        if isinstance(value, bool):
            short = b"\x41" if value else b"\x42"
            return self._either(short, b"\x56" + bytes([value]))
        if type(value) in TEXT_CODES:
            return self._text(value)
        if isinstance(value, list):
            items = b"".join(map(self.value, value))
            return self._compound(0xC0, items, len(value), b"\x45" if not value else None)
        if isinstance(value, dict):
            pairs = list(value.items())
            items = b"".join(self.value(key) + self.value(item) for key, item in pairs)
            return self._compound(0xC1, items, 2 * len(pairs), None)
        if isinstance(value, Array) and value.element_type is Symbol and value.descriptor is None:
            return self._symbols(value)
        return self._number(value)

    def _either(self, *forms: bytes) -> bytes:
        return self.random.choice(forms)

    def _described(self, value: Described) -> bytes:
        descriptor, inner = value.descriptor, value.value
        number = descriptor if isinstance(descriptor, ULong) else None
        if number in FIELD_COUNTS and isinstance(inner, list):
            spare = FIELD_COUNTS[number] - len(inner)
            inner = [*inner, *[None] * self.random.randint(0, spare)]
        if number in NAMES and self.random.random() < 0.4:
            descriptor = Symbol(NAMES[number])
        return b"\x00" + self.value(descriptor) + self.value(inner)

    def _text(self, value: object) -> bytes:
        assert isinstance(value, bytes | str)
        data = value if isinstance(value, bytes) else value.encode()
        code = TEXT_CODES[type(value)]
        wide = bytes([code + 0x10]) + struct.pack(">I", len(data)) + data
        if len(data) > 0xFF:
            return wide
        return self._either(bytes([code, len(data)]) + data, wide)

    def _compound(self, code: int, items: bytes, count: int, empty: bytes | None) -> bytes:
        forms = [bytes([code + 0x10]) + struct.pack(">II", len(items) + 4, count) + items]
        if len(items) < 0xFF and count <= 0xFF:
            forms.append(bytes([code, len(items) + 1, count]) + items)
        if empty is not None:
            forms.append(empty)
        return self._either(*forms)

    def _symbols(self, value: Array) -> bytes:
        names = [str(each).encode() for each in value.items]
        if self.random.random() < 0.5:
            items = b"\xa3" + b"".join(bytes([len(each)]) + each for each in names)
        else:
            items = b"\xb3" + b"".join(struct.pack(">I", len(each)) + each for each in names)
        return self._compound(0xE0, items, len(names), None)

    def _number(self, value: object) -> bytes:
        if isinstance(value, datetime):
            value = Timestamp((value - EPOCH) // timedelta(milliseconds=1))
        if isinstance(value, Timestamp):
            return b"\x83" + struct.pack(">q", value)
        if isinstance(value, int) and type(value) in _WIDTHS:
            return self._sized(value, _WIDTHS[type(value)])
        return codec.encode(value)  # of a type that has one encoding

    def _sized(self, value: int, widths: _Widths) -> bytes:
        forms = [bytes([widths.wide]) + struct.pack(widths.wide_format, value)]
        least, limit = (0, 256) if widths.small_format == ">B" else (-128, 128)
        if least <= value < limit:
            forms.append(bytes([widths.small]) + struct.pack(widths.small_format, value))
        if value == 0 and widths.zero is not None:
            forms.append(bytes([widths.zero]))
        return self._either(*forms)
