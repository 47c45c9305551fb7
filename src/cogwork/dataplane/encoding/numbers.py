"""Reads numbers of whatever type of AMQP and in whatever width a peer has written them.

Theory of operation. AMQP 1.0 has fifteen types of numbers, and several encodings of most (§1.6). Who
writes an annotation that the broker heeds chooses among them by the language that the peer is
written in. So a whole number is taken from each integer type; where a fraction does no harm, a
floating point or decimal number is rounded. Nothing here allocates, raises or needs the GIL.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import (
    load_u16,
    load_u32,
    load_u64,
    octets_of,
)
from cython.cimports.cogwork.dataplane.encoding.values import skip_value
from cython.cimports.cpython.bytes import PyBytes_GET_SIZE
from cython.cimports.libc.math import round as nearest
from cython.cimports.libc.stdint import int8_t, int16_t, int32_t, uint32_t
from cython.cimports.libc.string import memcpy

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

LIMIT = cython.declare(cython.double, 9223372036854775808.0)
"""2^63: a double is either below, or too large."""


def read_integer(p, at, end, value):
    """Read a value of an integer type, or a timestamp; IS_NUMBER, or what it is instead."""
    code: uint8_t
    if at >= end or skip_value(p, at, end) < 0:
        return IS_OTHER
    code = p[at]
    p += at + 1
    if code == 0x43 or code == 0x44:  # uint0, ulong0
        value[0] = 0
    elif code == 0x50 or code == 0x52 or code == 0x53:  # ubyte, smalluint, smallulong
        value[0] = p[0]
    elif code == 0x51 or code == 0x54 or code == 0x55:  # byte, smallint, smalllong
        value[0] = cython.cast(int8_t, p[0])
    elif code == 0x60:
        value[0] = load_u16(p)
    elif code == 0x61:
        value[0] = cython.cast(int16_t, load_u16(p))
    elif code == 0x70:
        value[0] = load_u32(p)
    elif code == 0x71:
        value[0] = cython.cast(int32_t, load_u32(p))
    elif code == 0x80 and p[0] & 0x80:
        return IS_OUT_OF_RANGE
    elif code == 0x80 or code == 0x81 or code == 0x83:  # ulong, long, timestamp
        value[0] = cython.cast(int64_t, load_u64(p))
    else:
        return IS_NULL if code == 0x40 else IS_OTHER
    return IS_NUMBER


def read_rounded(p, at, end, value):
    """Read a number of any type, the nearest whole one; IS_NUMBER, or what the value is instead."""
    found: cython.int = read_integer(p, at, end, value)
    code: uint8_t
    if found != IS_OTHER or at >= end or skip_value(p, at, end) < 0:
        return found
    code = p[at]
    if code == 0x72:
        return _rounded(_float_at(p + at + 1), value)
    if code == 0x82:
        return _rounded(_double_at(p + at + 1), value)
    if code == 0x74 or code == 0x84 or code == 0x94:
        return cogwork_rounded_decimal(p + at + 1, 1 << ((code >> 4) - 5), value)
    return IS_OTHER


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _float_at(p: octets) -> cython.double:
    bits: uint32_t = load_u32(p)
    number: cython.float = 0.0
    memcpy(cython.address(number), cython.address(bits), 4)
    return number


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _double_at(p: octets) -> cython.double:
    bits: uint64_t = load_u64(p)
    number: cython.double = 0.0
    memcpy(cython.address(number), cython.address(bits), 8)
    return number


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _rounded(number: cython.double, value: cython.pointer(int64_t)) -> cython.int:
    if not -LIMIT < number < LIMIT:  # neither is what is not a number
        return IS_OUT_OF_RANGE
    value[0] = cython.cast(int64_t, nearest(number))
    return IS_NUMBER


def read_number(p, at, end, value):
    """Read a whole number of any integer type from 0 to 2^63 - 1; return where it ends, or -1."""
    number: int64_t = 0
    if read_integer(p, at, end, cython.address(number)) != IS_NUMBER or number < 0:
        return -1
    value[0] = cython.cast(uint64_t, number)
    return skip_value(p, at, end)


def rounded(data: bytes) -> object:
    """Return the nearest whole number to an encoded one; None where it is none, or too large.

    For tests and tools.
    """
    number: int64_t = 0
    found: cython.int = read_rounded(
        octets_of(data), 0, PyBytes_GET_SIZE(data), cython.address(number)
    )
    return number if found == IS_NUMBER else None
