"""Field tables and arrays, in RabbitMQ's reading (AMQP 0-9-1 §4.2.5.5, and its errata).

| code | on the wire | in Python |
|---|---|---|
| `t` | octet, 0 is false | `bool` |
| `b` `B` | 8 bits, signed and unsigned | `Int8`, `UInt8` |
| `s` `u` | 16 bits, signed and unsigned | `Int16`, `UInt16` |
| `I` `i` | 32 bits, signed and unsigned | `int`, `UInt32` |
| `l` `L` | 64 bits, signed | `int`; `Int64` where 32 bits would do |
| `f` `d` | 32 and 64 bits | `Float32`, `float` |
| `D` | scale, 32 bits, signed | `Decimal` |
| `S` | text | `str`, any octets (`strings`) |
| `x` | octets | `bytes` |
| `T` | seconds, 64 bits | `Timestamp` |
| `A` `F` `V` | array, table, nothing | `list`, `dict`, None |

The specification's own codes differ: its `s` is a short string and its `l` unsigned, which no
client of RabbitMQ sends. A decimal is unsigned there, and signed in all of RabbitMQ's clients. `L`
is encoded as `l`, and any true octet as 1, as RabbitMQ does; all else encodes to the octets that it
was decoded from. A table that has a key twice is refused: the specification says that it is
illegal, and what it means would depend on who reads it.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from cogwork.amqp091.cursor import Cursor
from cogwork.amqp091.errors import EncodeError, ProtocolError, ReplyCode
from cogwork.amqp091.strings import MAX_SHORT_STRING_OCTETS, octets_of, text_of
from cogwork.amqp091.types import (
    Float32,
    Int8,
    Int16,
    Int64,
    Table,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = (
    "MAX_DEPTH",
    "MAX_TABLE_OCTETS",
    "decode_table",
    "encode_table",
    "read_table",
    "write_short_string",
    "write_table",
)

MAX_DEPTH: Final = 32
"""How deep tables and arrays may nest: deeper than any real one, shallow enough for the stack."""

MAX_TABLE_OCTETS: Final = 1 << 20
"""How large a table may be, whatever frame-max is: eight times the default of that."""

_BYTE = struct.Struct(">b")
_OCTET = struct.Struct(">B")
_SHORT = struct.Struct(">h")
_UNSIGNED_SHORT = struct.Struct(">H")
_LONG = struct.Struct(">i")
_UNSIGNED_LONG = struct.Struct(">I")
_LONG_LONG = struct.Struct(">q")
_UNSIGNED_LONG_LONG = struct.Struct(">Q")
_FLOAT = struct.Struct(">f")
_DOUBLE = struct.Struct(">d")
_DECIMAL = struct.Struct(">Bi")

_LONG_MIN, _LONG_MAX = -(2**31), 2**31 - 1
_SCALE_MAX = 255
_DIGITS_MAX = 10
"""More digits never fit into 32 bits."""


def decode_table(octets: bytes) -> Table:
    """Decode a table, its size included, that takes all of `octets`.

    Raises:
        ProtocolError: They are no table.
    """
    cursor = Cursor(octets)
    table = read_table(cursor)
    cursor.finish()
    return table


def encode_table(table: Mapping[str, Value]) -> bytes:
    """Encode a table, its size included.

    Raises:
        EncodeError: A key or value has no encoding; the key is named.
    """
    out = bytearray()
    write_table(out, table)
    return bytes(out)


def read_table(cursor: Cursor, depth: int = 0) -> Table:
    """Read a table.

    Args:
        cursor: Where it begins.
        depth: How many tables and arrays it lies in.

    Raises:
        ProtocolError: It is damaged, too large or too deep.
    """
    inner = _enter(cursor, depth)
    table: Table = {}
    while inner.left:
        key = inner.short_string()
        if key in table:
            raise _syntax_error(f"table has field {key!a:.80} twice")
        table[key] = _read_value(inner, depth)
    return table


def _read_array(cursor: Cursor, depth: int) -> list[Value]:
    inner = _enter(cursor, depth)
    values: list[Value] = []
    while inner.left:
        values.append(_read_value(inner, depth))
    return values


def _enter(cursor: Cursor, depth: int) -> Cursor:
    if depth >= MAX_DEPTH:
        raise _syntax_error(f"tables and arrays nest deeper than {MAX_DEPTH}")
    inner = cursor.part()
    if inner.left > MAX_TABLE_OCTETS:
        raise _syntax_error(f"table of {inner.left} octets exceeds {MAX_TABLE_OCTETS}")
    return inner


def _read_value(cursor: Cursor, depth: int) -> Value:
    code = cursor.octets(1)
    read = _READERS.get(code)
    if read is None:
        raise _syntax_error(f"unknown table field type {code!r}")
    return read(cursor, depth + 1)


def _syntax_error(explanation: str) -> ProtocolError:
    return ProtocolError(ReplyCode.SYNTAX_ERROR, explanation)


def _number_reader(
    form: struct.Struct, kind: Callable[[int], Value]
) -> Callable[[Cursor, int], Value]:
    return lambda cursor, _depth: kind(cursor.number(form))


def _read_long_long(cursor: Cursor, _depth: int) -> int:
    value = cursor.number(_LONG_LONG)
    return Int64(value) if _LONG_MIN <= value <= _LONG_MAX else value


def _read_decimal(cursor: Cursor, _depth: int) -> Decimal:
    scale, value = cursor.unpack(_DECIMAL)
    assert isinstance(value, int)
    digits = tuple(int(digit) for digit in str(abs(value)))
    return Decimal((int(value < 0), digits, -int(scale)))


_READERS: Final[dict[bytes, Callable[[Cursor, int], Value]]] = {
    b"t": _number_reader(_OCTET, bool),
    b"b": _number_reader(_BYTE, Int8),
    b"B": _number_reader(_OCTET, UInt8),
    b"s": _number_reader(_SHORT, Int16),
    b"u": _number_reader(_UNSIGNED_SHORT, UInt16),
    b"I": _number_reader(_LONG, int),
    b"i": _number_reader(_UNSIGNED_LONG, UInt32),
    b"l": _read_long_long,
    b"L": _read_long_long,
    b"f": lambda cursor, _depth: Float32(cursor.unpack(_FLOAT)[0]),
    b"d": lambda cursor, _depth: cursor.unpack(_DOUBLE)[0],
    b"D": _read_decimal,
    b"S": lambda cursor, _depth: text_of(cursor.long_string()),
    b"x": lambda cursor, _depth: cursor.long_string(),
    b"T": _number_reader(_UNSIGNED_LONG_LONG, Timestamp),
    b"A": _read_array,
    b"F": read_table,
    b"V": lambda _cursor, _depth: None,
}


def write_table(out: bytearray, table: Mapping[str, Value], depth: int = 0) -> None:
    """Append a table to `out`; `depth` is how many tables and arrays it lies in.

    Raises:
        EncodeError: A key or value has no encoding; the key is named.
    """
    start = _begin(out, depth)
    for key, value in table.items():
        write_short_string(out, key)
        try:
            _write_value(out, value, depth + 1)
        except EncodeError as error:
            raise EncodeError(f"{key!a:.80}: {error}") from None
    _end(out, start)


def write_short_string(out: bytearray, text: str) -> None:
    """Append a string of at most 255 octets to `out`.

    Raises:
        EncodeError: It is longer, or no text.
    """
    octets = _octets_in(text)
    if len(octets) > MAX_SHORT_STRING_OCTETS:
        raise EncodeError(
            f"short string of {len(octets)} octets (at most {MAX_SHORT_STRING_OCTETS})"
        )
    out.append(len(octets))
    out += octets


def _octets_in(text: object) -> bytes:
    if not isinstance(text, str):
        raise EncodeError(f"str is expected, not {type(text).__name__} {text!r:.80}")
    try:
        return octets_of(text)
    except UnicodeEncodeError as error:
        raise EncodeError(f"{text!a:.80} cannot be encoded: {error.reason}") from None


def _write_array(out: bytearray, values: Iterable[Value], depth: int) -> None:
    start = _begin(out, depth)
    for value in values:
        _write_value(out, value, depth + 1)
    _end(out, start)


def _begin(out: bytearray, depth: int) -> int:
    """Leave room for the size, which is known at the end."""
    if depth >= MAX_DEPTH:
        raise EncodeError(f"tables and arrays nest deeper than {MAX_DEPTH}")
    out += bytes(_UNSIGNED_LONG.size)
    return len(out)


def _end(out: bytearray, start: int) -> None:
    size = len(out) - start
    if size > MAX_TABLE_OCTETS:
        raise EncodeError(f"table of {size} octets exceeds {MAX_TABLE_OCTETS}")
    _UNSIGNED_LONG.pack_into(out, start - _UNSIGNED_LONG.size, size)


def _write_value(out: bytearray, value: Value, depth: int) -> None:
    code, write = _WRITERS.get(type(value), (0, None))
    if write is None:
        raise EncodeError(f"no table field type for {type(value).__name__} {value!r:.80}")
    if code:
        out.append(code)
    try:
        write(out, value, depth)
    except (struct.error, OverflowError) as error:
        raise EncodeError(f"{value!r:.80} is out of range: {error}") from None


def _packing(form: struct.Struct) -> Callable[[bytearray, Value, int], None]:
    def write(out: bytearray, value: Value, _depth: int) -> None:
        out += form.pack(value)

    return write


def _write_int(out: bytearray, value: int, _depth: int) -> None:
    if _LONG_MIN <= value <= _LONG_MAX:
        out += b"I"
        out += _LONG.pack(value)
    else:
        out += b"l"
        out += _LONG_LONG.pack(value)


def _write_decimal(out: bytearray, value: Decimal, _depth: int) -> None:
    sign, digits, scale = value.as_tuple()
    if not isinstance(scale, int) or not -_SCALE_MAX <= scale <= 0:
        raise EncodeError(f"decimal {value!s:.80} has no scale from 0 to {_SCALE_MAX}")
    if len(digits) > _DIGITS_MAX:
        raise EncodeError(f"decimal {value!s:.80} exceeds 32 bits")
    number = int("".join(map(str, digits)))
    out += _DECIMAL.pack(-scale, -number if sign else number)


def _write_text(out: bytearray, value: str, _depth: int) -> None:
    _write_octets(out, _octets_in(value), 0)


def _write_octets(out: bytearray, value: bytes, _depth: int) -> None:
    out += _UNSIGNED_LONG.pack(len(value))
    out += value


def _write_nothing(_out: bytearray, _value: None, _depth: int) -> None:
    """The code says it all."""


_WRITERS: Final[dict[type, tuple[int, Callable[[bytearray, Any, int], None]]]] = {
    bool: (ord("t"), _packing(_OCTET)),
    Int8: (ord("b"), _packing(_BYTE)),
    UInt8: (ord("B"), _packing(_OCTET)),
    Int16: (ord("s"), _packing(_SHORT)),
    UInt16: (ord("u"), _packing(_UNSIGNED_SHORT)),
    int: (0, _write_int),
    UInt32: (ord("i"), _packing(_UNSIGNED_LONG)),
    Int64: (ord("l"), _packing(_LONG_LONG)),
    Float32: (ord("f"), _packing(_FLOAT)),
    float: (ord("d"), _packing(_DOUBLE)),
    Decimal: (ord("D"), _write_decimal),
    str: (ord("S"), _write_text),
    bytes: (ord("x"), _write_octets),
    Timestamp: (ord("T"), _packing(_UNSIGNED_LONG_LONG)),
    list: (ord("A"), _write_array),
    tuple: (ord("A"), _write_array),
    dict: (ord("F"), write_table),
    type(None): (ord("V"), _write_nothing),
}
"""By the exact type; `int` chooses between two codes itself."""
