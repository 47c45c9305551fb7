"""Values to bytes (AMQP 1.0 §1.6).

An encoding is a constructor (a format code, after a descriptor where there is one) and a body. Each
Python type has its *forms*, smallest first; a value takes the first form that fits, an array the
first that fits all its items.
"""

from __future__ import annotations

import decimal
import struct
import uuid
from datetime import datetime
from types import NoneType
from typing import TYPE_CHECKING, NamedTuple

from cogwork.amqp import decimals
from cogwork.amqp.exceptions import EncodeError
from cogwork.amqp.limits import MAX_DEPTH, MAX_EMPTY_ITEMS
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
    ms_from_datetime,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ("encode", "encode_into")

_MAX_SMALL = 0xFF
_MAX_LONG = 2**63 - 1


class _Form(NamedTuple):
    """One encoding of a type."""

    code: int
    fits: Callable[[object], bool]
    write: Callable[[bytearray, object], None]
    scalar_only: bool = False
    """Takes no bytes beside the code, so says nothing in an array."""


def encode(value: object) -> bytes:
    """Encode one value in its smallest form.

    Raises:
        EncodeError: AMQP has no encoding for it, with the reason.
    """
    out = bytearray()
    encode_into(out, value)
    return bytes(out)


def encode_into(out: bytearray, value: object, depth: int = 0) -> None:
    """Append the encoding of `value`, nested `depth` levels deep already, to `out`.

    Raises:
        EncodeError: AMQP has no encoding for it; `out` is spoilt then.
    """
    try:
        _encode(out, value, depth)
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
    """Return the type that is encoded: `python_type` or the nearest base that AMQP knows."""
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
    """Append code, size, count and body; the wide form's code is 0x10 above the small one's."""
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
    """Return the shared constructor, then each item's body (§1.6.24)."""
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
    """Describe a form of fixed width that holds `low` to `high`, or anything."""
    pack = struct.Struct(layout).pack

    def write(out: bytearray, value: object) -> None:
        out += pack(value)

    if low is None or high is None:
        return _Form(code, _always, write)
    return _Form(code, lambda value: isinstance(value, int) and low <= value <= high, write)


def _variable(code: int, raw: Callable[[object], bytes]) -> tuple[_Form, _Form]:
    """Describe the forms with one and with four bytes of length."""

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
    """Describe a form in which the code says all."""
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
