"""Encoded values as text, for people and for tables: `true`, `42`, `2026-11-20T06:00:00.000Z`.

Theory of operation. Text is taken over, numbers are decimal (floats in the shortest form that reads
back the same), timestamps ISO 8601 in UTC, uuids in their usual form, binaries hexadecimal. What has
no such form, and text that is no UTF-8, is shown as the octets of its encoding, in hexadecimal: so
everything has a text, and that text is always UTF-8.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import (
    load_u16,
    load_u32,
    load_u64,
    load_word,
)
from cython.cimports.cogwork.dataplane.tables.column import (
    TEXT_SIZE_MAX,
    Py_DTSF_ADD_DOT_0,
    PyOS_double_to_string,
    put,
    put_hex,
    put_null,
)
from cython.cimports.cpython.mem import PyMem_Free
from cython.cimports.libc.string import memcpy, strlen

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

HIGH_BITS = cython.declare(uint64_t, 0x8080808080808080)
SIGN_32 = cython.declare(int64_t, 0x80000000)
DAY_MS = cython.declare(int64_t, 86_400_000)


def is_utf8(p, size):
    """Return whether octets are UTF-8 (RFC 3629)."""
    at: int64_t = 0
    more: cython.int
    point: uint32_t
    least: uint32_t
    while at < size:
        if at + 8 <= size and load_word(p + at) & HIGH_BITS == 0:
            at += 8
            continue
        point = p[at]
        at += 1
        if point < 0x80:
            continue
        if 0xC2 <= point <= 0xDF:
            more, least, point = 1, 0x80, point & 0x1F
        elif point & 0xF0 == 0xE0:
            more, least, point = 2, 0x800, point & 0x0F
        elif 0xF0 <= point <= 0xF4:
            more, least, point = 3, 0x10000, point & 0x07
        else:
            return False
        if at + more > size:
            return False
        while more > 0:
            if p[at] & 0xC0 != 0x80:
                return False
            point = (point << 6) | (p[at] & 0x3F)
            at += 1
            more -= 1
        if point < least or point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            return False
    return True


def put_value(values, p, at, end):
    """Add the text of the one encoded value from `at` to `end`, which lies there whole."""
    code: uint8_t = p[at]
    if code == 0xA1 or code == 0xA3:
        return put_checked(values, p, at, at + 2, end)
    if code == 0xB1 or code == 0xB3:
        return put_checked(values, p, at, at + 5, end)
    if code == 0x40:
        return put_null(values)
    if code == 0xA0:
        return put_hex(values, p + at + 2, end - at - 2)
    if code == 0xB0:
        return put_hex(values, p + at + 5, end - at - 5)
    return put_plain(values, p, at, end)


@cython.cfunc
@cython.exceptval(-1)
def put_checked(
    values: cython.pointer(Values), p: octets, at: int64_t, start: int64_t, end: int64_t
) -> cython.int:
    """Add a string or a symbol."""
    if is_utf8(p + start, end - start):
        return put(values, p + start, end - start)
    return put_hex(values, p + at, end - at)


@cython.cfunc
@cython.exceptval(-1)
def put_plain(values: cython.pointer(Values), p: octets, at: int64_t, end: int64_t) -> cython.int:
    """Add a value of a fixed width."""
    text: uint8_t[TEXT_SIZE_MAX]
    out: Digits = text
    code: uint8_t = p[at]
    size: cython.int = 0
    if code == 0x41 or (code == 0x56 and p[at + 1] == 1):
        memcpy(out, b"true", 4)
        size = 4
    elif code == 0x42 or (code == 0x56 and p[at + 1] == 0):
        memcpy(out, b"false", 5)
        size = 5
    elif code == 0x83:
        size = write_time(out, cython.cast(int64_t, load_u64(p + at + 1)))
    elif code == 0x98:
        size = write_uuid(out, p + at + 1)
    elif code == 0x73:
        size = write_character(out, load_u32(p + at + 1))
    elif code == 0x72 or code == 0x82:
        return put_float(values, p, at)
    else:
        size = write_number(out, p, at)
    if size == 0:
        return put_hex(values, p + at, end - at)
    return put(values, out, size)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def write_number(out: Digits, p: octets, at: int64_t) -> cython.int:
    """Write a whole number; return its size, or 0 where it is none."""
    code: uint8_t = p[at]
    at += 1
    if code == 0x43 or code == 0x44:
        return write_digits(out, 0)
    if code == 0x50 or code == 0x52 or code == 0x53:
        return write_digits(out, p[at])
    if code == 0x60:
        return write_digits(out, load_u16(p + at))
    if code == 0x70:
        return write_digits(out, load_u32(p + at))
    if code == 0x80:
        return write_digits(out, load_u64(p + at))
    if code == 0x51 or code == 0x54 or code == 0x55:
        return write_signed(out, (cython.cast(int64_t, p[at]) ^ 0x80) - 0x80)
    if code == 0x61:
        return write_signed(out, (cython.cast(int64_t, load_u16(p + at)) ^ 0x8000) - 0x8000)
    if code == 0x71:
        return write_signed(out, (cython.cast(int64_t, load_u32(p + at)) ^ SIGN_32) - SIGN_32)
    if code == 0x81:
        return write_signed(out, cython.cast(int64_t, load_u64(p + at)))
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def write_digits(out: Digits, number: uint64_t) -> cython.int:
    size: cython.int = 1
    at: cython.int
    rest: uint64_t = number
    while rest > 9:
        rest //= 10
        size += 1
    at = size
    while at > 0:
        at -= 1
        out[at] = cython.cast(uint8_t, 48 + number % 10)
        number //= 10
    return size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def write_signed(out: Digits, number: int64_t) -> cython.int:
    if number >= 0:
        return write_digits(out, cython.cast(uint64_t, number))
    out[0] = 45
    return 1 + write_digits(out + 1, 0 - cython.cast(uint64_t, number))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def write_padded(out: Digits, number: int64_t, width: cython.int) -> cython.int:
    at: cython.int = width
    while at > 0:
        at -= 1
        out[at] = cython.cast(uint8_t, 48 + number % 10)
        number //= 10
    return width


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def write_time(out: Digits, time_ms: int64_t) -> cython.int:
    """Write a time; one whose year has not four digits as the number that it is."""
    day: int64_t = time_ms // DAY_MS
    rest: int64_t = time_ms % DAY_MS
    era: int64_t
    year: int64_t
    month: int64_t
    if rest < 0:  # the division is C's
        rest += DAY_MS
        day -= 1
    if day < -719162 or day > 2932896:
        return write_signed(out, time_ms)
    # Days from 1 March of year 0 on: then a leap day is the last one of its year.
    day += 719468
    era = day // 146097
    day -= era * 146097
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    month = month + 3 if month < 10 else month - 9
    year += era * 400 + (1 if month <= 2 else 0)
    write_padded(out, year, 4)
    write_padded(out + 5, month, 2)
    write_padded(out + 8, day + 1, 2)
    write_padded(out + 11, rest // 3600000, 2)
    write_padded(out + 14, rest // 60000 % 60, 2)
    write_padded(out + 17, rest // 1000 % 60, 2)
    write_padded(out + 20, rest % 1000, 3)
    out[4] = out[7] = 45
    out[10] = 84
    out[13] = out[16] = 58
    out[19] = 46
    out[23] = 90
    return 24


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def write_uuid(out: Digits, p: octets) -> cython.int:
    at: cython.int
    size: cython.int = 0
    digit: uint8_t
    for at in range(32):
        if at == 8 or at == 12 or at == 16 or at == 20:
            out[size] = 45
            size += 1
        digit = p[at // 2] >> 4 if at % 2 == 0 else p[at // 2] & 15
        out[size] = digit + (48 if digit < 10 else 87)
        size += 1
    return size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def write_character(out: Digits, point: uint32_t) -> cython.int:
    """Write a character in UTF-8; return 0 where it is none."""
    if point < 0x80:
        out[0] = cython.cast(uint8_t, point)
        return 1
    if point < 0x800:
        out[0] = cython.cast(uint8_t, 0xC0 | (point >> 6))
        out[1] = cython.cast(uint8_t, 0x80 | (point & 0x3F))
        return 2
    if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
        return 0
    if point < 0x10000:
        out[0] = cython.cast(uint8_t, 0xE0 | (point >> 12))
        out[1] = cython.cast(uint8_t, 0x80 | ((point >> 6) & 0x3F))
        out[2] = cython.cast(uint8_t, 0x80 | (point & 0x3F))
        return 3
    out[0] = cython.cast(uint8_t, 0xF0 | (point >> 18))
    out[1] = cython.cast(uint8_t, 0x80 | ((point >> 12) & 0x3F))
    out[2] = cython.cast(uint8_t, 0x80 | ((point >> 6) & 0x3F))
    out[3] = cython.cast(uint8_t, 0x80 | (point & 0x3F))
    return 4


@cython.cfunc
@cython.exceptval(-1)
def put_float(values: cython.pointer(Values), p: octets, at: int64_t) -> cython.int:
    single: cython.float = 0
    number: cython.double = 0
    bits: uint64_t
    narrow: uint32_t
    text: cython.p_char
    if p[at] == 0x72:
        narrow = load_u32(p + at + 1)
        memcpy(cython.address(single), cython.address(narrow), 4)
        number = single
    else:
        bits = load_u64(p + at + 1)
        memcpy(cython.address(number), cython.address(bits), 8)
    text = PyOS_double_to_string(number, b"r", 0, Py_DTSF_ADD_DOT_0, cython.NULL)
    try:
        put(values, cython.cast(octets, text), strlen(text))
    finally:
        PyMem_Free(text)
    return 0
