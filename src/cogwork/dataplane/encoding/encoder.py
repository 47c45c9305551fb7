"""Values to bytes: what `cogwork.amqp.codec.encode` does, about ten times as fast.

Theory of operation. A value is written by its type into a `Writer`, the frequent types first. What
is rare (decimals, arrays but those of symbols, subclasses) is left to the reference, and so are the
words of every error. The differential test holds both to the same results.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import cython
from cython.cimports.cogwork.dataplane.encoding.writer import (
    Writer,
    begin_compound,
    close_writer,
    end_compound,
    grow,
    open_writer,
    put_byte,
    put_bytes,
    put_u8,
    put_u16,
    put_u32,
    put_u64,
    put_uint,
    put_variable,
    written,
)
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_GET_SIZE
from cython.cimports.cpython.datetime import (
    import_datetime,
    timedelta_days,
    timedelta_microseconds,
    timedelta_seconds,
)
from cython.cimports.cpython.float import PyFloat_AS_DOUBLE
from cython.cimports.cpython.long import (
    PyLong_AsLongLongAndOverflow,
    PyLong_AsUnsignedLongLong,
)
from cython.cimports.cpython.unicode import PyUnicode_AsUTF8AndSize
from cython.cimports.libc.stdint import int64_t, uint16_t, uint32_t, uint64_t
from cython.cimports.libc.string import memcpy

from cogwork.amqp import codec as reference
from cogwork.amqp.errors import EncodeError
from cogwork.amqp.limits import MAX_DEPTH
from cogwork.amqp.types import (
    EPOCH,
    Array,
    Byte,
    Described,
    Float32,
    Int,
    Short,
    Symbol,
    UByte,
    UInt,
    ULong,
    UShort,
)

__all__ = ("SOURCE_HASH", "encode")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

import_datetime()

DEPTH_MAX = MAX_DEPTH


def encode(value: object) -> bytes:
    """Encode one value; `cogwork.amqp.codec.encode` says more."""
    out = cython.declare(Writer)
    open_writer(cython.address(out))
    try:
        put_value(cython.address(out), value, 0)
        return written(cython.address(out))
    finally:
        close_writer(cython.address(out))


def put_text(out: cython.pointer(Writer), text: object) -> cython.int:
    """Write a str as string."""
    size: cython.Py_ssize_t = 0
    data: cython.p_const_char = cython.NULL
    try:
        data = PyUnicode_AsUTF8AndSize(text, cython.address(size))
    except UnicodeEncodeError:
        refuse(text)
    return put_variable(out, 0xA1, data, size)


def put_symbol(out: cython.pointer(Writer), text: object) -> cython.int:
    """Write a str as symbol; it is ASCII where its UTF-8 has a byte for each character."""
    size: cython.Py_ssize_t = 0
    data: cython.p_const_char = cython.NULL
    try:
        data = PyUnicode_AsUTF8AndSize(text, cython.address(size))
    except UnicodeEncodeError:
        refuse(Symbol(text))
    if size != len(cython.cast(str, text)):
        refuse(Symbol(text))
    return put_variable(out, 0xA3, data, size)


@cython.cfunc
@cython.exceptval(-1)
def refuse(value: object) -> cython.int:
    """Have the reference say why there is no encoding."""
    reference.encode(value)
    raise EncodeError(f"the encoders disagree about {value!r:.80}")


def put_value(  # noqa: C901  # a branch for each type: a table would cost a call
    out: cython.pointer(Writer), value: object, depth: cython.int
) -> cython.int:
    """Write a value of any type, most frequent types first."""
    kind = type(value)
    if depth > DEPTH_MAX:
        raise EncodeError(f"a value nests deeper than {DEPTH_MAX} levels")
    if kind is str:
        put_text(out, value)
    elif value is None:
        put_byte(out, 0x40)
    elif kind is int:
        put_long(out, value)
    elif kind is Symbol:
        put_symbol(out, value)
    elif kind is bool:
        put_byte(out, 0x41 if value is True else 0x42)
    elif kind is bytes:
        put_variable(out, 0xA0, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
    elif kind is list:
        put_list(out, value, depth)
    elif kind is dict:
        put_map(out, value, depth)
    elif kind is Described:
        put_byte(out, 0x00)
        put_value(out, value.descriptor, depth + 1)
        put_value(out, value.value, depth + 1)
    elif not put_fixed(out, value, kind) and not put_symbols(out, value, kind):
        put_rare(out, value, depth)
    return 0


@cython.cfunc
@cython.exceptval(-1)
def put_fixed(out: cython.pointer(Writer), value: object, kind: object) -> cython.int:
    """Write a value of fixed width; return whether it was one."""
    if kind is UInt or kind is ULong or kind is UByte or kind is UShort:
        put_unsigned(out, value, kind)
    elif kind is float:
        put_double(out, value)
    elif kind is Int or kind is Short or kind is Byte:
        put_signed(out, value, kind)
    elif kind is datetime:
        put_timestamp(out, value)
    elif kind is UUID:
        put_byte(out, 0x98)
        raw: bytes = value.bytes
        put_bytes(out, PyBytes_AS_STRING(raw), 16)
    elif kind is Float32:
        put_float(out, value)
    else:
        return 0
    return 1


@cython.cfunc
@cython.exceptval(-1)
def put_long(out: cython.pointer(Writer), value: object) -> cython.int:
    overflow: cython.int = 0
    number: int64_t = PyLong_AsLongLongAndOverflow(value, cython.address(overflow))
    if overflow > 0 and value <= 0xFFFFFFFFFFFFFFFF:
        return put_u64(out, 0x80, PyLong_AsUnsignedLongLong(value))
    if overflow != 0:
        refuse(value)
    if -128 <= number <= 127:
        return put_u8(out, 0x55, cython.cast(cython.uchar, number))
    return put_u64(out, 0x81, cython.cast(uint64_t, number))


@cython.cfunc
@cython.exceptval(-1)
def put_unsigned(  # noqa: PLR0911  # a return for each form
    out: cython.pointer(Writer), value: object, kind: object
) -> cython.int:
    overflow: cython.int = 0
    number: int64_t = PyLong_AsLongLongAndOverflow(value, cython.address(overflow))
    if overflow > 0 and kind is ULong and value <= 0xFFFFFFFFFFFFFFFF:
        return put_u64(out, 0x80, PyLong_AsUnsignedLongLong(value))
    if overflow != 0 or number < 0:
        refuse(value)
    if kind is UInt and number <= 0xFFFFFFFF:
        return put_uint(out, number)
    if kind is ULong:
        if number == 0:
            return put_byte(out, 0x44)
        return put_u8(out, 0x53, number) if number <= 0xFF else put_u64(out, 0x80, number)
    if kind is UByte and number <= 0xFF:
        return put_u8(out, 0x50, number)
    if kind is UShort and number <= 0xFFFF:
        return put_u16(out, 0x60, number)
    return refuse(value)


@cython.cfunc
@cython.exceptval(-1)
def put_signed(out: cython.pointer(Writer), value: object, kind: object) -> cython.int:
    overflow: cython.int = 0
    number: int64_t = PyLong_AsLongLongAndOverflow(value, cython.address(overflow))
    if overflow != 0:
        refuse(value)
    if kind is Int and -(2**31) <= number < 2**31:
        if -128 <= number <= 127:
            return put_u8(out, 0x54, cython.cast(cython.uchar, number))
        return put_u32(out, 0x71, cython.cast(uint32_t, number))
    if kind is Byte and -128 <= number <= 127:
        return put_u8(out, 0x51, cython.cast(cython.uchar, number))
    if kind is Short and -(2**15) <= number < 2**15:
        return put_u16(out, 0x61, cython.cast(uint16_t, number))
    return refuse(value)


@cython.cfunc
@cython.exceptval(-1)
def put_double(out: cython.pointer(Writer), value: object) -> cython.int:
    number: cython.double = PyFloat_AS_DOUBLE(value)
    bits = cython.declare(uint64_t)
    memcpy(cython.address(bits), cython.address(number), 8)
    return put_u64(out, 0x82, bits)


@cython.cfunc
@cython.exceptval(-1)
def put_float(out: cython.pointer(Writer), value: object) -> cython.int:
    number: cython.float = cython.cast(cython.float, PyFloat_AS_DOUBLE(value))
    bits = cython.declare(uint32_t)
    memcpy(cython.address(bits), cython.address(number), 4)
    return put_u32(out, 0x72, bits)


@cython.cfunc
@cython.exceptval(-1)
def put_timestamp(out: cython.pointer(Writer), value: object) -> cython.int:
    if value.tzinfo is None:
        refuse(value)
    since = value - EPOCH
    seconds: int64_t = cython.cast(int64_t, timedelta_days(since)) * 86400 + timedelta_seconds(
        since
    )
    ms: int64_t = seconds * 1000 + timedelta_microseconds(since) // 1000
    return put_u64(out, 0x83, cython.cast(uint64_t, ms))


@cython.cfunc
@cython.exceptval(-1)
def put_list(out: cython.pointer(Writer), items: list, depth: cython.int) -> cython.int:
    """Write a list."""
    if not items:
        return put_byte(out, 0x45)
    count: cython.Py_ssize_t = 0
    start: cython.Py_ssize_t = begin_compound(out)
    for item in items:
        put_value(out, item, depth + 1)
        count += 1
    return end_compound(out, start, 0xC0, count)


@cython.cfunc
@cython.exceptval(-1)
def put_map(out: cython.pointer(Writer), entries: dict, depth: cython.int) -> cython.int:
    """Write a dict."""
    count: cython.Py_ssize_t = 0
    start: cython.Py_ssize_t = begin_compound(out)
    for key, value in entries.items():
        put_value(out, key, depth + 1)
        put_value(out, value, depth + 1)
        count += 2
    return end_compound(out, start, 0xC1, count)


@cython.cfunc
@cython.exceptval(-1)
def put_symbols(out: cython.pointer(Writer), value: object, kind: object) -> cython.int:
    """Write an array of short symbols; return whether it was one."""
    if kind is not Array or value.element_type is not Symbol or value.descriptor is not None:
        return 0
    for item in cython.cast(tuple, value.items):
        if type(item) is not Symbol:
            return 0
    return put_names(out, value.items)


def put_names(out: cython.pointer(Writer), names: tuple) -> cython.int:
    """Write short ASCII names as an array of symbols; return whether all were that."""
    size: cython.Py_ssize_t = 0
    data: cython.p_const_char
    start: cython.Py_ssize_t = begin_compound(out)
    put_byte(out, 0xA3)
    for name in names:
        data = cython.NULL
        if (type(name) is Symbol or type(name) is str) and len(cython.cast(str, name)) <= 0xFF:
            data = ascii_of(name, cython.address(size))
        if data == cython.NULL:
            out.size = start
            return 0
        grow(out, size + 1)
        out.data[out.size] = size
        memcpy(out.data + out.size + 1, data, size)
        out.size += size + 1
    end_compound(out, start, 0xE0, len(names))
    return 1


@cython.cfunc
@cython.exceptval(check=False)
def ascii_of(text: object, size: cython.pointer(cython.Py_ssize_t)) -> cython.p_const_char:
    """Return the bytes of an ASCII str, or NULL."""
    data: cython.p_const_char
    try:
        data = PyUnicode_AsUTF8AndSize(text, size)
    except UnicodeEncodeError:
        return cython.NULL
    return data if size[0] == len(cython.cast(str, text)) else cython.NULL


@cython.cfunc
@cython.exceptval(-1)
def put_rare(out: cython.pointer(Writer), value: object, depth: cython.int) -> cython.int:
    """Have the reference encode what is not worth a fast way, or refuse it."""
    buffer = bytearray()
    reference.encode_into(buffer, value, depth)
    encoded: bytes = bytes(buffer)
    return put_bytes(out, PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded))
