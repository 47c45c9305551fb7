"""Bytes to values (AMQP 1.0 §1.6).

Decoding goes by a table from format code to a function that reads a body. Positions are counted
from the start of the data, `end` is where the enclosing value ends; every function checks the
length before it reads.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple, NoReturn

from cogwork.amqp import decimals
from cogwork.amqp.exceptions import DecodeError
from cogwork.amqp.limits import MAX_DEPTH, MAX_EMPTY_ITEMS, KeyGuard
from cogwork.amqp.types import (
    Array,
    Byte,
    Char,
    Described,
    Float32,
    Int,
    Short,
    Symbol,
    UByte,
    UInt,
    ULong,
    UShort,
    datetime_from_ms,
)

__all__ = ("decode",)


_Body = Callable[[memoryview, int, int, int], tuple[object, int]]
"""Reads a body from view, position, end and depth; returns the value and the next position."""


def decode(
    data: bytes | bytearray | memoryview, offset: int = 0, end: int | None = None
) -> tuple[object, int]:
    """Decode one value.

    Args:
        data: The bytes that hold it.
        offset: Where it starts.
        end: Where the readable bytes end; the end of `data` by default.

    Returns:
        The value, and the offset of the first byte behind it.

    Raises:
        DecodeError: The bytes are no AMQP value, or not a whole one.
    """
    view = memoryview(data).cast("B")
    stop = len(view) if end is None else end
    if not 0 <= offset <= stop <= len(view):
        raise DecodeError(f"bytes {offset} to {stop} do not lie in {len(view)}", offset)
    return _decode(view, offset, stop, 0)


def _decode(view: memoryview, at: int, end: int, depth: int) -> tuple[object, int]:
    if depth > MAX_DEPTH:
        _fail(at, f"a value nests deeper than {MAX_DEPTH} levels")
    if at >= end:
        _fail(at, "a value is missing")
    code = view[at]
    if code == 0x00:
        descriptor, at = _decode(view, at + 1, end, depth + 1)
        value, at = _decode(view, at, end, depth + 1)
        return Described(descriptor, value), at
    return _constructor(code, at).read(view, at + 1, end, depth)


class _Constructor(NamedTuple):
    """What a format code means."""

    name: str
    type: type
    read: _Body
    is_empty: bool = False


def _constructor(code: int, at: int) -> _Constructor:
    found = _CONSTRUCTORS.get(code)
    if found is None:
        _fail(at, f"0x{code:02x} is no format code")
    return found


def _fail(at: int, what: str) -> NoReturn:
    raise DecodeError(what, at)


def _need(name: str, at: int, width: int, end: int) -> int:
    """Return where `width` bytes from `at` end, if they lie before `end`."""
    if width > end - at:
        _fail(at, f"{name} takes {width} bytes, {max(end - at, 0)} are left")
    return at + width


def _read_fixed(name: str, layout: str, make: Callable[..., object]) -> _Body:
    unpack_from = struct.Struct(layout).unpack_from
    width = struct.calcsize(layout)

    def read(view: memoryview, at: int, end: int, _depth: int) -> tuple[object, int]:
        following = _need(name, at, width, end)
        return make(*unpack_from(view, at)), following

    return read


def _read_length(name: str, view: memoryview, at: int, end: int, width: int) -> tuple[int, int]:
    following = _need(name + "'s length", at, width, end)
    return int.from_bytes(view[at:following], "big"), following


def _read_variable(name: str, width: int, make: Callable[[memoryview], object]) -> _Body:
    def read(view: memoryview, at: int, end: int, _depth: int) -> tuple[object, int]:
        size, start = _read_length(name, view, at, end, width)
        following = _need(name, start, size, end)
        try:
            return make(view[start:following]), following
        except UnicodeDecodeError as error:
            _fail(start + error.start, f"{name} is not {error.encoding.upper()}")

    return read


def _read_bool(view: memoryview, at: int, end: int, _depth: int) -> tuple[object, int]:
    following = _need("boolean", at, 1, end)
    if view[at] > 1:
        _fail(at, f"a boolean is 0 or 1, not {view[at]}")
    return view[at] == 1, following


def _read_char(view: memoryview, at: int, end: int, _depth: int) -> tuple[object, int]:
    following = _need("char", at, 4, end)
    number = int.from_bytes(view[at:following], "big")
    try:
        return Char(chr(number)), following
    except (ValueError, OverflowError):
        _fail(at, f"a char is a Unicode scalar value, not 0x{number:x}")


def _read_empty(value: object) -> _Body:
    def read(_view: memoryview, at: int, _end: int, _depth: int) -> tuple[object, int]:
        return value, at

    return read


def _read_empty_list(_view: memoryview, at: int, _end: int, _depth: int) -> tuple[object, int]:
    return [], at


def _read_span(name: str, view: memoryview, at: int, end: int, width: int) -> tuple[int, int, int]:
    """Read size and count; return count, the first item's position and the compound's end."""
    size, at = _read_length(name, view, at, end, width)
    stop = _need(name, at, size, end)
    count, first = _read_length(name + "'s count", view, at, stop, width)
    return count, first, stop


def _check_end(name: str, at: int, stop: int) -> None:
    if at != stop:
        _fail(at, f"{name} says that it ends at byte {stop}")


def _read_list(width: int) -> _Body:
    def read(view: memoryview, at: int, end: int, depth: int) -> tuple[object, int]:
        count, at, stop = _read_span("list", view, at, end, width)
        if count > stop - at:
            _fail(at, f"a list of {count} items does not fit {stop - at} bytes")
        items = []
        for _ in range(count):
            item, at = _decode(view, at, stop, depth + 1)
            items.append(item)
        _check_end("list", at, stop)
        return items, stop

    return read


def _read_map(width: int) -> _Body:
    def read(view: memoryview, at: int, end: int, depth: int) -> tuple[object, int]:
        count, at, stop = _read_span("map", view, at, end, width)
        if count > stop - at:
            _fail(at, f"a map of {count} keys and values does not fit {stop - at} bytes")
        if count % 2:
            _fail(at, f"a map holds pairs, not {count} keys and values")
        result: dict[object, object] = {}
        guard = KeyGuard()
        for _ in range(count // 2):
            key, value_at = _decode(view, at, stop, depth + 1)
            _check_key(key, result, guard, at)
            result[key], at = _decode(view, value_at, stop, depth + 1)
        _check_end("map", at, stop)
        return result, stop

    return read


def _check_key(key: object, result: dict[object, object], guard: KeyGuard, at: int) -> None:
    try:
        admitted, repeated = guard.admits(key), key in result
    except TypeError:
        _fail(at, f"a map's key cannot be of type {type(key).__name__}")
    if repeated:
        _fail(at, f"a map has the key {key!r:.80} twice")  # invalid by §1.6.23
    if not admitted:
        _fail(at, "a map's keys were chosen so that their hashes clash")


def _read_array(width: int) -> _Body:
    def read(view: memoryview, at: int, end: int, depth: int) -> tuple[object, int]:
        if depth > MAX_DEPTH:
            _fail(at, f"a value nests deeper than {MAX_DEPTH} levels")
        count, at, stop = _read_span("array", view, at, end, width)
        descriptor, constructor, at = _read_array_constructor(view, at, stop, depth + 1)
        limit = MAX_EMPTY_ITEMS if constructor.is_empty else stop - at
        if count > limit:
            _fail(at, f"{count} items of {constructor.name} do not fit {stop - at} bytes")
        items = []
        for _ in range(count):
            item, at = constructor.read(view, at, stop, depth + 1)
            items.append(item)
        _check_end("array", at, stop)
        return Array(items, constructor.type, descriptor), stop

    return read


def _read_array_constructor(
    view: memoryview, at: int, stop: int, depth: int
) -> tuple[object, _Constructor, int]:
    """Read what all items share: the descriptor, or None, and the format code."""
    descriptor: object = None
    if at < stop and view[at] == 0x00:
        descriptor, at = _decode(view, at + 1, stop, depth)
    if at >= stop:
        _fail(at, "an array's constructor is missing")
    if view[at] == 0x00:
        _fail(at, "an array's items have more than one descriptor")
    return descriptor, _constructor(view[at], at), at + 1


def _trusted(integer_type: type[int]) -> Callable[[int], int]:
    """Return a maker of `integer_type` for numbers that fit by their encoding."""
    return lambda number: int.__new__(integer_type, number)


def _fixed_code(
    name: str, python_type: type, layout: str, make: Callable[..., object] | None = None
) -> _Constructor:
    if make is None:
        make = _trusted(python_type) if issubclass(python_type, int) else python_type
    return _Constructor(name, python_type, _read_fixed(name, layout, make))


def _empty_code(name: str, value: object) -> _Constructor:
    return _Constructor(name, type(value), _read_empty(value), is_empty=True)


def _decimal_code(name: str, layout: decimals.Layout) -> _Constructor:
    def make(data: bytes) -> object:
        return decimals.from_bytes(layout, data)

    return _fixed_code(name, layout.type, f"{layout.width_bytes}s", make)


def _text(view: memoryview) -> object:
    return str(view, "utf-8")


def _symbol(view: memoryview) -> object:
    return Symbol(view, "ascii")


_CONSTRUCTORS: dict[int, _Constructor] = {
    0x40: _empty_code("null", None),
    0x41: _empty_code("boolean", value=True),
    0x42: _empty_code("boolean", value=False),
    0x43: _empty_code("uint", UInt(0)),
    0x44: _empty_code("ulong", ULong(0)),
    0x45: _Constructor("list", list, _read_empty_list, is_empty=True),
    0x50: _fixed_code("ubyte", UByte, ">B"),
    0x51: _fixed_code("byte", Byte, ">b"),
    0x52: _fixed_code("uint", UInt, ">B"),
    0x53: _fixed_code("ulong", ULong, ">B"),
    0x54: _fixed_code("int", Int, ">b"),
    0x55: _fixed_code("long", int, ">b"),
    0x56: _Constructor("boolean", bool, _read_bool),
    0x60: _fixed_code("ushort", UShort, ">H"),
    0x61: _fixed_code("short", Short, ">h"),
    0x70: _fixed_code("uint", UInt, ">I"),
    0x71: _fixed_code("int", Int, ">i"),
    0x72: _fixed_code("float", Float32, ">f"),
    0x73: _Constructor("char", Char, _read_char),
    0x74: _decimal_code("decimal32", decimals.DECIMAL32),
    0x80: _fixed_code("ulong", ULong, ">Q"),
    0x81: _fixed_code("long", int, ">q"),
    0x82: _fixed_code("double", float, ">d"),
    0x83: _fixed_code("timestamp", datetime, ">q", datetime_from_ms),
    0x84: _decimal_code("decimal64", decimals.DECIMAL64),
    0x94: _decimal_code("decimal128", decimals.DECIMAL128),
    0x98: _fixed_code("uuid", uuid.UUID, "16s", lambda data: uuid.UUID(bytes=data)),
    0xA0: _Constructor("binary", bytes, _read_variable("binary", 1, bytes)),
    0xA1: _Constructor("string", str, _read_variable("string", 1, _text)),
    0xA3: _Constructor("symbol", Symbol, _read_variable("symbol", 1, _symbol)),
    0xB0: _Constructor("binary", bytes, _read_variable("binary", 4, bytes)),
    0xB1: _Constructor("string", str, _read_variable("string", 4, _text)),
    0xB3: _Constructor("symbol", Symbol, _read_variable("symbol", 4, _symbol)),
    0xC0: _Constructor("list", list, _read_list(1)),
    0xC1: _Constructor("map", dict, _read_map(1)),
    0xD0: _Constructor("list", list, _read_list(4)),
    0xD1: _Constructor("map", dict, _read_map(4)),
    0xE0: _Constructor("array", Array, _read_array(1)),
    0xF0: _Constructor("array", Array, _read_array(4)),
}
