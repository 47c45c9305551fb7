"""Values to bytes and back: the readable reference (AMQP 1.0 §1.6).

An encoding is a constructor (a format code, after a descriptor where there is one) and a body. Each
Python type has its *forms*, smallest first; a value takes the first form that fits, an array the
first that fits all its items. Decoding goes by a table from format code to a function that reads a
body; every such function checks the length before it reads.

The compiled twin in `dataplane.codec` is held to this module by a differential test.
"""

from __future__ import annotations

import decimal
import struct
import uuid
from collections.abc import Callable, Iterable
from datetime import datetime
from types import NoneType
from typing import NamedTuple, NoReturn

from cogwork.amqp import decimals
from cogwork.amqp.exceptions import DecodeError, EncodeError
from cogwork.amqp.types import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float32,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    datetime_from_ms,
    ms_from_datetime,
)

__all__ = ("MAX_DEPTH", "MAX_EMPTY_ITEMS", "decode", "encode", "encode_into")

MAX_DEPTH = 32
"""How deep values may nest: deeper than any real message, shallow enough for the C stack."""

MAX_EMPTY_ITEMS = 16
"""How many items an array may hold that take no bytes: a count alone must not cost memory."""

_MAX_SMALL = 0xFF
_MAX_LONG = 2**63 - 1


# --- encoding ---


class _Form(NamedTuple):
    """One encoding of a type."""

    code: int
    fits: Callable[[object], bool]
    write: Callable[[bytearray, object], None]
    scalar_only: bool = False
    """Takes no bytes beside the code, so says nothing in an array."""


def encode(value: object) -> bytes:
    """Encodes one value in its smallest form.

    Raises:
        EncodeError: AMQP has no encoding for it, with the reason.
    """
    out = bytearray()
    encode_into(out, value)
    return bytes(out)


def encode_into(out: bytearray, value: object) -> None:
    """Appends the encoding of `value` to `out`, which is spoilt where `EncodeError` is raised."""
    try:
        _encode(out, value, 0)
    except EncodeError:
        raise
    except ValueError as error:
        raise EncodeError(str(error)) from error


def _encode(out: bytearray, value: object, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise EncodeError(f"a value nests deeper than {MAX_DEPTH} levels")
    kind = _kind(type(value))
    compound = _COMPOUNDS.get(kind)
    if compound is not None:
        compound(out, value, depth)
        return
    for form in _forms(kind, value):
        if form.fits(value):
            out.append(form.code)
            form.write(out, value)
            return
    raise EncodeError(f"{kind.__name__} {value!r:.80} is out of range")


def _kind(python_type: type) -> type:
    """Returns the type that is encoded: `python_type` or the nearest base that AMQP knows."""
    if python_type in _FORMS or python_type in _COMPOUNDS:
        return python_type
    for base in python_type.__mro__:
        if base in _FORMS or base in _COMPOUNDS:
            return base
    raise EncodeError(f"AMQP has no type for {python_type.__name__}")


def _forms(kind: type, value: object) -> tuple[_Form, ...]:
    if kind is int and isinstance(value, int) and value > _MAX_LONG:
        return _FORMS[ULong]
    return _FORMS[kind]


def _encode_described(out: bytearray, value: object, depth: int) -> None:
    assert isinstance(value, Described)
    out.append(0x00)
    _encode(out, value.descriptor, depth + 1)
    _encode(out, value.value, depth + 1)


def _encode_list(out: bytearray, value: object, depth: int) -> None:
    assert isinstance(value, list | tuple)
    if not value:
        out.append(0x45)
        return
    _append_compound(out, 0xC0, len(value), _concatenate(value, depth + 1))


def _encode_map(out: bytearray, value: object, depth: int) -> None:
    assert isinstance(value, dict)
    body = _concatenate(_pairs(value), depth + 1)
    _append_compound(out, 0xC1, 2 * len(value), body)


def _encode_array(out: bytearray, value: object, depth: int) -> None:
    assert isinstance(value, Array)
    _append_compound(out, 0xE0, len(value.items), _array_body(value, depth))


def _append_compound(out: bytearray, small_code: int, count: int, body: bytearray) -> None:
    """Appends code, size, count and body; the wide form's code is 0x10 above the small one's."""
    if len(body) < _MAX_SMALL and count <= _MAX_SMALL:
        out += bytes((small_code, len(body) + 1, count))
    else:
        out.append(small_code + 0x10)
        out += struct.pack(">II", len(body) + 4, count)
    out += body


def _concatenate(items: Iterable[object], depth: int) -> bytearray:
    out = bytearray()
    for item in items:
        _encode(out, item, depth)
    return out


def _pairs(mapping: dict[object, object]) -> Iterable[object]:
    for key, value in mapping.items():
        yield key
        yield value


def _array_body(array: Array, depth: int) -> bytearray:
    """Returns the shared constructor, then each item's body (§1.6.24)."""
    out = bytearray()
    if depth > MAX_DEPTH:
        raise EncodeError(f"a value nests deeper than {MAX_DEPTH} levels")
    if array.descriptor is not None:
        out.append(0x00)
        _encode(out, array.descriptor, depth + 1)
    kind = array.element_type
    if kind in _WIDE_BODIES:
        code, write_compound = _WIDE_BODIES[kind]
        out.append(code)
        for item in array.items:
            _check_item(item, kind)
            write_compound(out, item, depth + 1)
        return out
    form = _common_form(array)
    out.append(form.code)
    for item in array.items:
        form.write(out, item)
    return out


def _common_form(array: Array) -> _Form:
    kind = array.element_type
    if kind not in _FORMS:
        raise EncodeError(f"an array cannot hold items of type {kind.__name__}")
    for item in array.items:
        _check_item(item, kind)
    if kind is NoneType and len(array.items) > MAX_EMPTY_ITEMS:
        raise EncodeError(f"an array holds at most {MAX_EMPTY_ITEMS} nulls")
    for form in _FORMS[kind]:
        if not form.scalar_only and all(map(form.fits, array.items)):
            return form
    raise EncodeError(f"an item of an array of {kind.__name__} is out of range")


def _check_item(item: object, kind: type) -> None:
    if not isinstance(item, kind) or (kind is int and isinstance(item, bool)):
        raise EncodeError(f"an array of {kind.__name__} holds {type(item).__name__} {item!r:.80}")


def _wide_list(out: bytearray, value: object, depth: int) -> None:
    assert isinstance(value, list | tuple)
    body = _concatenate(value, depth + 1)
    out += struct.pack(">II", len(body) + 4, len(value)) + body


def _wide_map(out: bytearray, value: object, depth: int) -> None:
    assert isinstance(value, dict)
    body = _concatenate(_pairs(value), depth + 1)
    out += struct.pack(">II", len(body) + 4, 2 * len(value)) + body


def _wide_array(out: bytearray, value: object, depth: int) -> None:
    assert isinstance(value, Array)
    body = _array_body(value, depth)
    out += struct.pack(">II", len(body) + 4, len(value.items)) + body


def _always(_value: object) -> bool:
    return True


def _nothing(_out: bytearray, _value: object) -> None:
    return


def _fixed(code: int, layout: str, low: int | None = None, high: int | None = None) -> _Form:
    """Describes a form of fixed width that holds `low` to `high`, or anything."""
    pack = struct.Struct(layout).pack

    def write(out: bytearray, value: object) -> None:
        out += pack(value)

    if low is None or high is None:
        return _Form(code, _always, write)
    return _Form(code, lambda value: isinstance(value, int) and low <= value <= high, write)


def _variable(code: int, raw: Callable[[object], bytes]) -> tuple[_Form, _Form]:
    """Describes the forms with one and with four bytes of length."""

    def write_small(out: bytearray, value: object) -> None:
        data = raw(value)
        out.append(len(data))
        out += data

    def write_large(out: bytearray, value: object) -> None:
        data = raw(value)
        out += struct.pack(">I", len(data)) + data

    return (
        _Form(code, lambda value: len(raw(value)) <= _MAX_SMALL, write_small),
        _Form(code + 0x10, _always, write_large),
    )


def _empty(code: int, meaning: object) -> _Form:
    """Describes a form in which the code says all."""
    return _Form(code, lambda value: value == meaning, _nothing, scalar_only=True)


def _raw_text(value: object) -> bytes:
    assert isinstance(value, str)
    return value.encode("utf-8")


def _raw_symbol(value: object) -> bytes:
    assert isinstance(value, str)
    try:
        return value.encode("ascii")
    except UnicodeEncodeError:
        raise EncodeError(f"a symbol is ASCII, not {value!r:.80}") from None


def _raw_binary(value: object) -> bytes:
    assert isinstance(value, bytes | bytearray | memoryview)
    return bytes(value)


def _timestamp_form() -> _Form:
    def write(out: bytearray, value: object) -> None:
        assert isinstance(value, datetime)
        out += struct.pack(">q", ms_from_datetime(value))

    return _Form(0x83, _always, write)


def _char_form() -> _Form:
    def write(out: bytearray, value: object) -> None:
        assert isinstance(value, str)
        out += struct.pack(">I", ord(value))

    return _Form(0x73, _always, write)


def _uuid_form() -> _Form:
    def write(out: bytearray, value: object) -> None:
        assert isinstance(value, uuid.UUID)
        out += value.bytes

    return _Form(0x98, _always, write)


def _decimal_form(code: int, layout: decimals.Layout) -> _Form:
    def write(out: bytearray, value: object) -> None:
        assert isinstance(value, decimal.Decimal)
        out += decimals.to_bytes(layout, value)

    return _Form(code, _always, write)


_FORMS: dict[type, tuple[_Form, ...]] = {
    NoneType: (_Form(0x40, _always, _nothing),),
    bool: (_empty(0x41, meaning=True), _empty(0x42, meaning=False), _fixed(0x56, ">?")),
    UByte: (_fixed(0x50, ">B", 0, UByte.MAX),),
    UShort: (_fixed(0x60, ">H", 0, UShort.MAX),),
    UInt: (_empty(0x43, 0), _fixed(0x52, ">B", 0, 0xFF), _fixed(0x70, ">I", 0, UInt.MAX)),
    ULong: (_empty(0x44, 0), _fixed(0x53, ">B", 0, 0xFF), _fixed(0x80, ">Q", 0, ULong.MAX)),
    Byte: (_fixed(0x51, ">b", Byte.MIN, Byte.MAX),),
    Short: (_fixed(0x61, ">h", Short.MIN, Short.MAX),),
    Int: (_fixed(0x54, ">b", -128, 127), _fixed(0x71, ">i", Int.MIN, Int.MAX)),
    int: (_fixed(0x55, ">b", -128, 127), _fixed(0x81, ">q", -(2**63), _MAX_LONG)),
    Float32: (_fixed(0x72, ">f"),),
    float: (_fixed(0x82, ">d"),),
    Decimal32: (_decimal_form(0x74, decimals.DECIMAL32),),
    Decimal64: (_decimal_form(0x84, decimals.DECIMAL64),),
    Decimal128: (_decimal_form(0x94, decimals.DECIMAL128),),
    decimal.Decimal: (_decimal_form(0x94, decimals.DECIMAL128),),
    Char: (_char_form(),),
    Timestamp: (_fixed(0x83, ">q", -(2**63), _MAX_LONG),),
    datetime: (_timestamp_form(),),
    uuid.UUID: (_uuid_form(),),
    bytes: _variable(0xA0, _raw_binary),
    bytearray: _variable(0xA0, _raw_binary),
    memoryview: _variable(0xA0, _raw_binary),
    str: _variable(0xA1, _raw_text),
    Symbol: _variable(0xA3, _raw_symbol),
}

_COMPOUNDS: dict[type, Callable[[bytearray, object, int], None]] = {
    list: _encode_list,
    tuple: _encode_list,
    dict: _encode_map,
    Array: _encode_array,
    Described: _encode_described,
}

_WIDE_BODIES: dict[type, tuple[int, Callable[[bytearray, object, int], None]]] = {
    list: (0xD0, _wide_list),
    dict: (0xD1, _wide_map),
    Array: (0xF0, _wide_array),
}


# --- decoding ---

_Body = Callable[[memoryview, int, int, int], tuple[object, int]]
"""Reads a body from view, position, end and depth; returns the value and the next position."""


def decode(
    data: bytes | bytearray | memoryview, offset: int = 0, end: int | None = None
) -> tuple[object, int]:
    """Decodes one value.

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
    """Returns where `width` bytes from `at` end, if they lie before `end`."""
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
    """Reads size and count; returns count, the first item's position and the compound's end."""
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
        for _ in range(count // 2):
            at = _read_entry(result, view, at, stop, depth + 1)
        _check_end("map", at, stop)
        return result, stop

    return read


def _read_entry(
    result: dict[object, object], view: memoryview, at: int, stop: int, depth: int
) -> int:
    key, value_at = _decode(view, at, stop, depth)
    value, following = _decode(view, value_at, stop, depth)
    try:
        repeated = key in result
    except TypeError:
        _fail(at, f"a map's key cannot be of type {type(key).__name__}")
    if repeated:
        _fail(at, f"a map has the key {key!r:.80} twice")  # invalid by §1.6.23
    result[key] = value
    return following


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
    """Reads what all items share: the descriptor, or None, and the format code."""
    descriptor: object = None
    if at < stop and view[at] == 0x00:
        descriptor, at = _decode(view, at + 1, stop, depth)
    if at >= stop:
        _fail(at, "an array's constructor is missing")
    if view[at] == 0x00:
        _fail(at, "an array's items have more than one descriptor")
    return descriptor, _constructor(view[at], at), at + 1


def _trusted(integer_type: type[int]) -> Callable[[int], int]:
    """Returns a maker of `integer_type` for numbers that fit by their encoding."""
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
