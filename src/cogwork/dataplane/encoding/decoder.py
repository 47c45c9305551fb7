"""Bytes to values: what `cogwork.amqp.codec.decode` does, about ten times as fast.

Theory of operation. A `Reader` is a pointer, a position and an end: each function checks the length
before it reads, and a compound narrows the end while its items are read.

What is rare (decimals, buffers that are not bytes) takes the reference's types and ways, and the
words of every error are the reference's: bytes that cannot be decoded are given to it, and it
raises. The differential test holds both to the same results.
"""

from __future__ import annotations

from datetime import datetime
from types import NoneType
from uuid import UUID, SafeUUID

import cython
from cython.cimports.cogwork.dataplane.encoding.decoder import Reader
from cython.cimports.cogwork.dataplane.encoding.octets import (
    bytes_from,
    load_u16,
    load_u32,
    load_u64,
    octets,
    octets_of,
)
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.cpython.buffer import (
    Py_buffer,
    PyBUF_SIMPLE,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from cython.cimports.cpython.bytes import PyBytes_GET_SIZE
from cython.cimports.cpython.datetime import import_datetime, timedelta_new
from cython.cimports.cpython.unicode import PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from cython.cimports.libc.stdint import (
    int8_t,
    int16_t,
    int32_t,
    int64_t,
    uint16_t,
    uint32_t,
    uint64_t,
)
from cython.cimports.libc.string import memcmp, memcpy

from cogwork.amqp import codec as reference
from cogwork.amqp import decimals
from cogwork.amqp.errors import DecodeError
from cogwork.amqp.limits import MAX_DEPTH, MAX_EMPTY_ITEMS, KeyGuard
from cogwork.amqp.types import (
    EPOCH,
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
)

__all__ = ("SOURCE_HASH", "Malformed", "decode")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

import_datetime()

DEPTH_MAX = MAX_DEPTH
EMPTY_ITEMS_MAX = MAX_EMPTY_ITEMS

SYMBOL_SLOTS = cython.declare(cython.Py_ssize_t, 512)
"""Symbols are mostly the same few names: one in each slot is kept to be used again."""

CACHED_SYMBOL_MAX_BYTES = cython.declare(cython.Py_ssize_t, 64)

MS_MIN = cython.declare(int64_t, -62135596800000)
MS_MAX = cython.declare(int64_t, 253402300799999)
"""The first and the last millisecond that a `datetime` holds."""

MS_PER_DAY = cython.declare(int64_t, 86400000)

new_int = int.__new__
new_uuid = UUID.__new__
set_uuid_int = UUID.int.__set__
set_uuid_safety = UUID.is_safe.__set__
UNKNOWN_SAFETY = SafeUUID.unknown
SMALL_UBYTES = [UByte(number) for number in range(256)]
SMALL_UINTS = [UInt(number) for number in range(256)]
SMALL_ULONGS = [ULong(number) for number in range(256)]
SYMBOLS = [Symbol()] * SYMBOL_SLOTS


class Malformed(Exception):  # no caller of the application sees it
    """The bytes cannot be decoded; the reference says why."""


def decode(data: object, offset: object = 0, end: object = None) -> tuple[object, int]:
    """Decode one value; `cogwork.amqp.codec.decode` says more."""
    view = cython.declare(Py_buffer)
    if type(data) is bytes:
        return decode_from(octets_of(data), PyBytes_GET_SIZE(data), data, offset, end)
    PyObject_GetBuffer(data, cython.address(view), PyBUF_SIMPLE)
    try:
        return decode_from(cython.cast(octets, view.buf), view.len, data, offset, end)
    finally:
        PyBuffer_Release(cython.address(view))


@cython.cfunc
def decode_from(
    p: octets, size: cython.Py_ssize_t, data: object, offset: object, end: object
) -> tuple:
    source = cython.declare(Reader)
    start: cython.Py_ssize_t = offset
    stop: cython.Py_ssize_t = size if end is None else end
    if not 0 <= start <= stop <= size:
        reference.decode(data, offset, end)  # which raises
        raise DecodeError(f"bytes {offset} to {end} do not lie in {size}", start)
    source.data = p
    source.at = start
    source.end = stop
    try:
        value = read_value(cython.address(source), 0)
    except (Malformed, UnicodeDecodeError, TypeError):
        reference.decode(data, offset, end)  # which raises
        raise DecodeError("the decoders disagree", source.at) from None
    return value, source.at


def take(source: cython.pointer(Reader), size: cython.Py_ssize_t) -> octets:
    """Step over `size` bytes, if they are there; return where they start."""
    start: octets = source.data + source.at
    if size > source.end - source.at:
        raise Malformed
    source.at += size
    return start


def read_value(source: cython.pointer(Reader), depth: cython.int) -> object:
    """Read a constructor and its body."""
    code: cython.uchar
    if depth > DEPTH_MAX:
        raise Malformed
    code = take(source, 1)[0]
    if code == 0x00:
        descriptor = read_value(source, depth + 1)
        value = read_value(source, depth + 1)
        return Described(descriptor, value)
    return read_body(source, code, depth)


@cython.cfunc
def read_body(source: cython.pointer(Reader), code: cython.uchar, depth: cython.int) -> object:
    """Read the body that follows a format code; the width is in the code's high nibble."""
    size: uint32_t
    width: cython.uchar = code >> 4
    if width == 0x4:
        return read_empty(code)
    if width == 0xA:
        size = take(source, 1)[0]
        return read_variable(source, code, size)
    if width == 0xB:
        size = load_u32(take(source, 4))
        return read_variable(source, code - 0x10, size)
    if 0x5 <= width <= 0x9:
        return read_fixed(source, code)
    if width >= 0xC:
        return read_compound(source, code, depth)
    raise Malformed


@cython.cfunc
def read_empty(code: cython.uchar) -> object:
    if code == 0x40:
        return None
    if code == 0x41:
        return True
    if code == 0x42:
        return False
    if code == 0x43:
        return SMALL_UINTS[0]
    if code == 0x44:
        return SMALL_ULONGS[0]
    if code == 0x45:
        return []
    raise Malformed


@cython.cfunc
def read_variable(
    source: cython.pointer(Reader), code: cython.uchar, size: cython.Py_ssize_t
) -> object:
    data: octets = take(source, size)
    if code == 0xA1:
        return text_from(data, size)
    if code == 0xA3:
        return symbol_from(data, size)
    if code == 0xA0:
        return bytes_from(data, size)
    raise Malformed


@cython.cfunc
@cython.inline
def text_from(data: octets, size: cython.Py_ssize_t) -> object:
    """Return a str; raise UnicodeDecodeError."""
    return PyUnicode_DecodeUTF8(cython.cast(cython.p_char, data), size, cython.NULL)


@cython.cfunc
def symbol_from(data: octets, size: cython.Py_ssize_t) -> object:
    """Return a Symbol, the one made for the same bytes before where its slot still has it."""
    slot: cython.Py_ssize_t
    known_size: cython.Py_ssize_t = 0
    known: cython.p_const_char
    digest: uint32_t = 2166136261
    highest: cython.uchar = 0
    i: cython.Py_ssize_t
    for i in range(size):
        digest = (digest ^ data[i]) * 16777619
        highest |= data[i]
    if highest > 0x7F:
        raise Malformed
    slot = (digest ^ (digest >> 16)) & (SYMBOL_SLOTS - 1)
    cached = SYMBOLS[slot]
    known = PyUnicode_AsUTF8AndSize(cached, cython.address(known_size))
    if known_size == size and memcmp(known, data, size) == 0:
        return cached
    made = Symbol(text_from(data, size))
    if size <= CACHED_SYMBOL_MAX_BYTES:
        SYMBOLS[slot] = made
    return made


@cython.cfunc
def read_fixed(source: cython.pointer(Reader), code: cython.uchar) -> object:
    """Read a body of one to sixteen bytes."""
    data: octets
    width: cython.uchar = code >> 4
    if width == 0x5:
        return made_from_8(code, take(source, 1)[0])
    if width == 0x6:
        data = take(source, 2)
        return made_from_16(code, load_u16(data))
    if width == 0x7:
        data = take(source, 4)
        return made_from_32(code, load_u32(data), data)
    if width == 0x8:
        data = take(source, 8)
        return made_from_64(code, load_u64(data), data)
    data = take(source, 16)
    if code == 0x98:
        return uuid_from(data)
    if code == 0x94:
        return decimals.from_bytes(decimals.DECIMAL128, bytes_from(data, 16))
    raise Malformed


@cython.cfunc
def made_from_8(  # noqa: PLR0911  # a return for each format code
    code: cython.uchar, number: cython.uchar
) -> object:
    if code == 0x53:
        return SMALL_ULONGS[number]
    if code == 0x52:
        return SMALL_UINTS[number]
    if code == 0x55:
        return cython.cast(cython.long, cython.cast(int8_t, number))
    if code == 0x50:
        return SMALL_UBYTES[number]
    if code == 0x56 and number <= 1:
        return number == 1
    if code == 0x54:
        return new_int(Int, cython.cast(cython.long, cython.cast(int8_t, number)))
    if code == 0x51:
        return new_int(Byte, cython.cast(cython.long, cython.cast(int8_t, number)))
    raise Malformed


@cython.cfunc
def made_from_16(code: cython.uchar, number: uint16_t) -> object:
    if code == 0x60:
        return new_int(UShort, number)
    if code == 0x61:
        return new_int(Short, cython.cast(int16_t, number))
    raise Malformed


@cython.cfunc
def made_from_32(code: cython.uchar, number: uint32_t, data: octets) -> object:
    real = cython.declare(cython.float)
    if code == 0x70:
        return new_int(UInt, number)
    if code == 0x71:
        return new_int(Int, cython.cast(int32_t, number))
    if code == 0x72:
        memcpy(cython.address(real), cython.address(number), 4)
        return Float32(cython.cast(cython.double, real))
    if code == 0x73 and number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF:
        return Char(chr(number))
    if code == 0x74:
        return decimals.from_bytes(decimals.DECIMAL32, bytes_from(data, 4))
    raise Malformed


@cython.cfunc
def made_from_64(code: cython.uchar, number: uint64_t, data: octets) -> object:
    real = cython.declare(cython.double)
    if code == 0x81:
        return cython.cast(int64_t, number)
    if code == 0x80:
        return new_int(ULong, number)
    if code == 0x82:
        memcpy(cython.address(real), cython.address(number), 8)
        return real
    if code == 0x83:
        return time_from(cython.cast(int64_t, number))
    if code == 0x84:
        return decimals.from_bytes(decimals.DECIMAL64, bytes_from(data, 8))
    raise Malformed


@cython.cfunc
@cython.cdivision(False)
def time_from(ms: int64_t) -> object:
    """Return a datetime in UTC, or a Timestamp beyond what it holds."""
    if not MS_MIN <= ms <= MS_MAX:
        return new_int(Timestamp, ms)
    days: int64_t = ms // MS_PER_DAY
    rest: int64_t = ms - days * MS_PER_DAY
    return EPOCH + timedelta_new(days, rest // 1000, (rest % 1000) * 1000)


@cython.cfunc
def uuid_from(data: octets) -> object:
    """Return a UUID without the checks of its constructor, which takes five times as long."""
    high: object = load_u64(data)
    made = new_uuid(UUID)
    set_uuid_int(made, (high << 64) | load_u64(data + 8))
    set_uuid_safety(made, UNKNOWN_SAFETY)
    return made


@cython.cfunc
def read_compound(source: cython.pointer(Reader), code: cython.uchar, depth: cython.int) -> object:
    """Read a list, a map or an array, whose end bounds all its items."""
    outer_end: cython.Py_ssize_t = source.end
    size: cython.Py_ssize_t
    count: cython.Py_ssize_t
    result: object
    if code < 0xF0 and code & 0x10 == 0:
        size = take(source, 1)[0]
        narrow(source, size)
        count = take(source, 1)[0]
    else:
        size = load_u32(take(source, 4))
        narrow(source, size)
        count = load_u32(take(source, 4))
    if code in (0xC0, 0xD0):
        result = read_list(source, count, depth + 1)
    elif code in (0xC1, 0xD1):
        result = read_map(source, count, depth + 1)
    elif code in (0xE0, 0xF0):
        result = read_array(source, count, depth)
    else:
        raise Malformed
    if source.at != source.end:
        raise Malformed
    source.end = outer_end
    return result


@cython.cfunc
@cython.exceptval(-1)
def narrow(source: cython.pointer(Reader), size: cython.Py_ssize_t) -> cython.int:
    """Make the next `size` bytes all that can be read."""
    if size > source.end - source.at:
        raise Malformed
    source.end = source.at + size
    return 0


@cython.cfunc
def read_list(source: cython.pointer(Reader), count: cython.Py_ssize_t, depth: cython.int) -> list:
    if count > source.end - source.at:
        raise Malformed
    return [read_value(source, depth) for _ in range(count)]


@cython.cfunc
def read_map(source: cython.pointer(Reader), count: cython.Py_ssize_t, depth: cython.int) -> dict:
    if count > source.end - source.at or count % 2:
        raise Malformed
    entries: dict = {}
    guard: object = None
    pair: cython.Py_ssize_t
    for pair in range(count // 2):
        key = read_value(source, depth)
        if not isinstance(key, (str, bytes, int)):
            guard = KeyGuard() if guard is None else guard
            if not guard.admits(key):
                raise Malformed
        entries[key] = read_value(source, depth)
        if len(entries) != pair + 1:
            raise Malformed
    return entries


@cython.cfunc
def read_array(
    source: cython.pointer(Reader), count: cython.Py_ssize_t, depth: cython.int
) -> object:
    code: cython.uchar
    descriptor: object = None
    if depth > DEPTH_MAX:
        raise Malformed
    code = take(source, 1)[0]
    if code == 0x00:
        descriptor = read_value(source, depth + 1)
        code = take(source, 1)[0]
    element_type = ELEMENT_TYPES.get(code)
    if element_type is None:
        raise Malformed
    if count > (EMPTY_ITEMS_MAX if code >> 4 == 0x4 else source.end - source.at):
        raise Malformed
    items: list = [read_body(source, code, depth + 1) for _ in range(count)]
    return Array(items, element_type, descriptor)


ELEMENT_TYPES = {
    **dict.fromkeys((0x41, 0x42, 0x56), bool),
    **dict.fromkeys((0x43, 0x52, 0x70), UInt),
    **dict.fromkeys((0x44, 0x53, 0x80), ULong),
    **dict.fromkeys((0x45, 0xC0, 0xD0), list),
    **dict.fromkeys((0x54, 0x71), Int),
    **dict.fromkeys((0x55, 0x81), int),
    **dict.fromkeys((0xA0, 0xB0), bytes),
    **dict.fromkeys((0xA1, 0xB1), str),
    **dict.fromkeys((0xA3, 0xB3), Symbol),
    **dict.fromkeys((0xC1, 0xD1), dict),
    **dict.fromkeys((0xE0, 0xF0), Array),
    0x40: NoneType,
    0x50: UByte,
    0x51: Byte,
    0x60: UShort,
    0x61: Short,
    0x72: Float32,
    0x73: Char,
    0x74: Decimal32,
    0x82: float,
    0x83: datetime,
    0x84: Decimal64,
    0x94: Decimal128,
    0x98: UUID,
}
