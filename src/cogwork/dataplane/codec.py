"""Values to bytes and back, compiled: what `cogwork.amqp.codec` does, about ten times as fast.

Theory of operation. A `Writer` is a buffer that starts on the C stack and moves to the heap when it
outgrows it; a compound leaves room for its wide header, and moves its items up where the small one
does. A `Reader` is a pointer, a position and an end: each function checks the length before it
reads, and a compound narrows the end while its items are read.

What is rare (decimals, arrays but those of symbols, subclasses, other buffers) is left to the
reference, and so are the words of every error: bytes that cannot be decoded are given to the
reference, which raises. The differential test holds both to the same results.
"""

from __future__ import annotations

from datetime import datetime
from types import NoneType
from uuid import UUID, SafeUUID

import cython
from cython.cimports.cogwork.dataplane.codec import (
    COGWORK_SOURCE_HASH,
    Octets,
    Reader,
    Writer,
)
from cython.cimports.cpython.buffer import (
    Py_buffer,
    PyBUF_SIMPLE,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from cython.cimports.cpython.bytes import (
    PyBytes_AS_STRING,
    PyBytes_FromStringAndSize,
    PyBytes_GET_SIZE,
)
from cython.cimports.cpython.datetime import (
    import_datetime,
    timedelta_days,
    timedelta_microseconds,
    timedelta_new,
    timedelta_seconds,
)
from cython.cimports.cpython.float import PyFloat_AS_DOUBLE
from cython.cimports.cpython.long import (
    PyLong_AsLongLongAndOverflow,
    PyLong_AsUnsignedLongLong,
)
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
from cython.cimports.libc.stdlib import free, malloc, realloc
from cython.cimports.libc.string import memcmp, memcpy, memmove

from cogwork.amqp import codec as reference
from cogwork.amqp import decimals
from cogwork.amqp.errors import DecodeError, EncodeError
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

__all__ = ("SOURCE_HASH", "decode", "encode")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

import_datetime()

DEPTH_MAX = MAX_DEPTH
EMPTY_ITEMS_MAX = MAX_EMPTY_ITEMS

COMPOUND_HEADER_BYTES = cython.declare(cython.Py_ssize_t, 9)
"""Code, size and count of a wide compound."""

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


class Malformed(Exception):  # never leaves this module
    """The bytes cannot be decoded; the reference says why."""


# --- writing ---


def encode(value: object) -> bytes:
    """Encodes one value; `cogwork.amqp.codec.encode` says more."""
    out = cython.declare(Writer)
    open_writer(cython.address(out))
    try:
        put_value(cython.address(out), value, 0)
        return written(cython.address(out))
    finally:
        close_writer(cython.address(out))


def open_writer(out: cython.pointer(Writer)) -> cython.void:
    out.data = out.small
    out.size = 0
    out.capacity = 512


def close_writer(out: cython.pointer(Writer)) -> cython.void:
    if out.data != out.small:
        free(out.data)


def written(out: cython.pointer(Writer)) -> bytes:
    return PyBytes_FromStringAndSize(cython.cast(cython.p_char, out.data), out.size)


def grow(out: cython.pointer(Writer), more: cython.Py_ssize_t) -> cython.int:
    """Makes room for `more` bytes."""
    capacity: cython.Py_ssize_t = out.capacity
    moved: cython.p_uchar
    if more <= capacity - out.size:
        return 0
    capacity = max(2 * capacity, out.size + more)
    if out.data == out.small:
        moved = cython.cast(cython.p_uchar, malloc(capacity))
        if moved != cython.NULL:
            memcpy(moved, out.small, out.size)
    else:
        moved = cython.cast(cython.p_uchar, realloc(out.data, capacity))
    if moved == cython.NULL:
        raise MemoryError
    out.data = moved
    out.capacity = capacity
    return 0


def put_byte(out: cython.pointer(Writer), byte: cython.uchar) -> cython.int:
    if out.size == out.capacity:
        grow(out, 1)
    out.data[out.size] = byte
    out.size += 1
    return 0


def put_bytes(
    out: cython.pointer(Writer),
    data: cython.pointer(cython.const[cython.void]),
    size: cython.Py_ssize_t,
) -> cython.int:
    grow(out, size)
    memcpy(out.data + out.size, data, size)
    out.size += size
    return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def store_u32(at: cython.p_uchar, number: uint32_t) -> cython.void:
    at[0] = number >> 24
    at[1] = (number >> 16) & 0xFF
    at[2] = (number >> 8) & 0xFF
    at[3] = number & 0xFF


def put_u32(out: cython.pointer(Writer), code: cython.uchar, number: uint32_t) -> cython.int:
    grow(out, 5)
    out.data[out.size] = code
    store_u32(out.data + out.size + 1, number)
    out.size += 5
    return 0


def put_u64(out: cython.pointer(Writer), code: cython.uchar, number: uint64_t) -> cython.int:
    grow(out, 9)
    out.data[out.size] = code
    store_u32(out.data + out.size + 1, number >> 32)
    store_u32(out.data + out.size + 5, number & 0xFFFFFFFF)
    out.size += 9
    return 0


@cython.cfunc
@cython.exceptval(-1)
def put_u8(out: cython.pointer(Writer), code: cython.uchar, number: cython.uchar) -> cython.int:
    grow(out, 2)
    out.data[out.size] = code
    out.data[out.size + 1] = number
    out.size += 2
    return 0


@cython.cfunc
@cython.exceptval(-1)
def put_u16(out: cython.pointer(Writer), code: cython.uchar, number: uint16_t) -> cython.int:
    grow(out, 3)
    out.data[out.size] = code
    out.data[out.size + 1] = number >> 8
    out.data[out.size + 2] = number & 0xFF
    out.size += 3
    return 0


def put_variable(
    out: cython.pointer(Writer),
    small_code: cython.uchar,
    data: cython.pointer(cython.const[cython.void]),
    size: cython.Py_ssize_t,
) -> cython.int:
    """Writes binary, string or symbol; the wide form's code is 0x10 above the small one's."""
    grow(out, size + 5)
    if size <= 0xFF:
        put_u8(out, small_code, size)
    elif size <= 0xFFFFFFFF:
        put_u32(out, small_code + 0x10, size)
    else:
        raise EncodeError(f"{size} bytes are more than AMQP can say the length of")
    memcpy(out.data + out.size, data, size)
    out.size += size
    return 0


def put_text(out: cython.pointer(Writer), text: object) -> cython.int:
    """Writes a str as string."""
    size: cython.Py_ssize_t = 0
    data: cython.p_const_char = cython.NULL
    try:
        data = PyUnicode_AsUTF8AndSize(text, cython.address(size))
    except UnicodeEncodeError:
        refuse(text)
    return put_variable(out, 0xA1, data, size)


def put_symbol(out: cython.pointer(Writer), text: object) -> cython.int:
    """Writes a str as symbol; it is ASCII where its UTF-8 has a byte for each character."""
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
    """Has the reference say why there is no encoding."""
    reference.encode(value)
    raise EncodeError(f"the encoders disagree about {value!r:.80}")


def put_value(  # noqa: C901  # a branch for each type: a table would cost a call
    out: cython.pointer(Writer), value: object, depth: cython.int
) -> cython.int:
    """Writes a value of any type, most frequent types first."""
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
    """Writes a value of fixed width; returns whether it was one."""
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
        if number == 0:
            return put_byte(out, 0x43)
        return put_u8(out, 0x52, number) if number <= 0xFF else put_u32(out, 0x70, number)
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


def put_list(out: cython.pointer(Writer), items: list, depth: cython.int) -> cython.int:
    """Writes a list."""
    if not items:
        return put_byte(out, 0x45)
    count: cython.Py_ssize_t = 0
    start: cython.Py_ssize_t = begin_compound(out)
    for item in items:
        put_value(out, item, depth + 1)
        count += 1
    return end_compound(out, start, 0xC0, count)


def put_map(out: cython.pointer(Writer), entries: dict, depth: cython.int) -> cython.int:
    """Writes a dict."""
    count: cython.Py_ssize_t = 0
    start: cython.Py_ssize_t = begin_compound(out)
    for key, value in entries.items():
        put_value(out, key, depth + 1)
        put_value(out, value, depth + 1)
        count += 2
    return end_compound(out, start, 0xC1, count)


def begin_compound(out: cython.pointer(Writer)) -> cython.Py_ssize_t:
    """Leaves room for a wide header; returns where it starts."""
    start: cython.Py_ssize_t = out.size
    grow(out, COMPOUND_HEADER_BYTES)
    out.size += COMPOUND_HEADER_BYTES
    return start


def end_compound(
    out: cython.pointer(Writer),
    start: cython.Py_ssize_t,
    small_code: cython.uchar,
    count: cython.Py_ssize_t,
) -> cython.int:
    """Writes code, size and count before what was written since `begin_compound`."""
    header: cython.p_uchar = out.data + start
    body: cython.Py_ssize_t = out.size - start - COMPOUND_HEADER_BYTES
    if body < 0xFF and count <= 0xFF:
        header[0] = small_code
        header[1] = body + 1
        header[2] = count
        memmove(header + 3, header + COMPOUND_HEADER_BYTES, body)
        out.size = start + 3 + body
        return 0
    if body + 4 > 0xFFFFFFFF:
        raise EncodeError(f"{body} bytes are more than AMQP can say the length of")
    header[0] = small_code + 0x10
    store_u32(header + 1, body + 4)
    store_u32(header + 5, count)
    return 0


@cython.cfunc
@cython.exceptval(-1)
def put_symbols(out: cython.pointer(Writer), value: object, kind: object) -> cython.int:
    """Writes an array of short symbols; returns whether it was one."""
    if kind is not Array or value.element_type is not Symbol or value.descriptor is not None:
        return 0
    for item in cython.cast(tuple, value.items):
        if type(item) is not Symbol:
            return 0
    return put_names(out, value.items)


def put_names(out: cython.pointer(Writer), names: tuple) -> cython.int:
    """Writes short ASCII names as an array of symbols; returns whether all were that."""
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
    """Returns the bytes of an ASCII str, or NULL."""
    data: cython.p_const_char
    try:
        data = PyUnicode_AsUTF8AndSize(text, size)
    except UnicodeEncodeError:
        return cython.NULL
    return data if size[0] == len(cython.cast(str, text)) else cython.NULL


@cython.cfunc
@cython.exceptval(-1)
def put_rare(out: cython.pointer(Writer), value: object, depth: cython.int) -> cython.int:
    """Has the reference encode what is not worth a fast way, or refuse it."""
    buffer = bytearray()
    reference.encode_into(buffer, value, depth)
    encoded: bytes = bytes(buffer)
    return put_bytes(out, PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded))


# --- reading ---


def decode(data: object, offset: object = 0, end: object = None) -> tuple[object, int]:
    """Decodes one value; `cogwork.amqp.codec.decode` says more."""
    view = cython.declare(Py_buffer)
    if type(data) is bytes:
        return decode_from(
            cython.cast(Octets, PyBytes_AS_STRING(data)), PyBytes_GET_SIZE(data), data, offset, end
        )
    PyObject_GetBuffer(data, cython.address(view), PyBUF_SIMPLE)
    try:
        return decode_from(cython.cast(Octets, view.buf), view.len, data, offset, end)
    finally:
        PyBuffer_Release(cython.address(view))


@cython.cfunc
def decode_from(
    octets: Octets, size: cython.Py_ssize_t, data: object, offset: object, end: object
) -> tuple:
    source = cython.declare(Reader)
    start: cython.Py_ssize_t = offset
    stop: cython.Py_ssize_t = size if end is None else end
    if not 0 <= start <= stop <= size:
        reference.decode(data, offset, end)  # which raises
        raise DecodeError(f"bytes {offset} to {end} do not lie in {size}", start)
    source.data = octets
    source.at = start
    source.end = stop
    try:
        value = read_value(cython.address(source), 0)
    except (Malformed, UnicodeDecodeError, TypeError):
        reference.decode(data, offset, end)  # which raises
        raise DecodeError("the decoders disagree", source.at) from None
    return value, source.at


def load_u32(data: Octets) -> uint32_t:
    return (
        (cython.cast(uint32_t, data[0]) << 24)
        | (cython.cast(uint32_t, data[1]) << 16)
        | (cython.cast(uint32_t, data[2]) << 8)
        | cython.cast(uint32_t, data[3])
    )


def load_u64(data: Octets) -> uint64_t:
    return (cython.cast(uint64_t, load_u32(data)) << 32) | load_u32(data + 4)


def take(source: cython.pointer(Reader), size: cython.Py_ssize_t) -> Octets:
    """Steps over `size` bytes, if they are there; returns where they start."""
    start: Octets = source.data + source.at
    if size > source.end - source.at:
        raise Malformed
    source.at += size
    return start


def read_value(source: cython.pointer(Reader), depth: cython.int) -> object:
    """Reads a constructor and its body."""
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
    """Reads the body that follows a format code; the width is in the code's high nibble."""
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
    data: Octets = take(source, size)
    if code == 0xA1:
        return text_from(data, size)
    if code == 0xA3:
        return symbol_from(data, size)
    if code == 0xA0:
        return PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, data), size)
    raise Malformed


def text_from(data: Octets, size: cython.Py_ssize_t) -> object:
    """Returns a str; raises UnicodeDecodeError."""
    return PyUnicode_DecodeUTF8(cython.cast(cython.p_char, data), size, cython.NULL)


def symbol_from(data: Octets, size: cython.Py_ssize_t) -> object:
    """Returns a Symbol, the one made for the same bytes before where its slot still has it."""
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
    """Reads a body of one to sixteen bytes."""
    data: Octets
    width: cython.uchar = code >> 4
    if width == 0x5:
        return made_from_8(code, take(source, 1)[0])
    if width == 0x6:
        data = take(source, 2)
        return made_from_16(code, (cython.cast(uint16_t, data[0]) << 8) | data[1])
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
        return decimals.from_bytes(decimals.DECIMAL128, raw_from(data, 16))
    raise Malformed


@cython.cfunc
def raw_from(data: Octets, size: cython.Py_ssize_t) -> bytes:
    return PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, data), size)


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
def made_from_32(code: cython.uchar, number: uint32_t, data: Octets) -> object:
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
        return decimals.from_bytes(decimals.DECIMAL32, raw_from(data, 4))
    raise Malformed


@cython.cfunc
def made_from_64(code: cython.uchar, number: uint64_t, data: Octets) -> object:
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
        return decimals.from_bytes(decimals.DECIMAL64, raw_from(data, 8))
    raise Malformed


@cython.cfunc
@cython.cdivision(False)
def time_from(ms: int64_t) -> object:
    """Returns a datetime in UTC, or a Timestamp beyond what it holds."""
    if not MS_MIN <= ms <= MS_MAX:
        return new_int(Timestamp, ms)
    days: int64_t = ms // MS_PER_DAY
    rest: int64_t = ms - days * MS_PER_DAY
    return EPOCH + timedelta_new(days, rest // 1000, (rest % 1000) * 1000)


@cython.cfunc
def uuid_from(data: Octets) -> object:
    """Returns a UUID without the checks of its constructor, which takes five times as long."""
    high: object = load_u64(data)
    made = new_uuid(UUID)
    set_uuid_int(made, (high << 64) | load_u64(data + 8))
    set_uuid_safety(made, UNKNOWN_SAFETY)
    return made


@cython.cfunc
def read_compound(source: cython.pointer(Reader), code: cython.uchar, depth: cython.int) -> object:
    """Reads a list, a map or an array, whose end bounds all its items."""
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
    """Makes the next `size` bytes all that can be read."""
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
