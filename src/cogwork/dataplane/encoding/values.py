"""Steps over encoded values and reads plain ones, in C, without making objects of them.

Theory of operation. Every function works on a pointer and an offset that never passes `end`; it
returns the next offset, or -1 where the bytes are malformed. Nothing here allocates, raises or needs
the GIL. What is read for every frame is inline, in `values.pxd`.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import load_u32
from cython.cimports.libc.string import memcmp

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


def skip_value(p, at, end):
    """Step over one encoded value of any type (AMQP 1.0 §1.2: the width is in the high nibble)."""
    kind: uint8_t
    values: int64_t = 1
    while values > 0:
        if at >= end:
            return -1
        if p[at] == 0x00:
            at += 1
            values += 1  # a descriptor and a value in place of one value
            continue
        kind = p[at] >> 4
        at += 1
        if kind == 0x4:
            pass
        elif 0x5 <= kind <= 0x9:
            at += cython.cast(int64_t, 1) << (kind - 5)
        elif kind == 0xA or kind == 0xC or kind == 0xE:
            if at >= end:
                return -1
            at += 1 + p[at]
        elif kind == 0xB or kind == 0xD or kind == 0xF:
            if at + 4 > end:
                return -1
            at += 4 + cython.cast(int64_t, load_u32(p + at))
        else:
            return -1
        if at > end:
            return -1
        values -= 1
    return at


def list_header(p, at, end, count, list_end):
    """Read a list's constructor; return where its first element starts."""
    code: uint8_t
    size: int64_t
    if at >= end:
        return -1
    code = p[at]
    if code == 0x45:
        count[0] = 0
        list_end[0] = at + 1
        return at + 1
    if code == 0xC0:
        if at + 3 > end:
            return -1
        size = p[at + 1]
        count[0] = p[at + 2]
        list_end[0] = at + 2 + size
        if size < 1 or list_end[0] > end:
            return -1
        return at + 3
    if code == 0xD0:
        if at + 9 > end:
            return -1
        size = load_u32(p + at + 1)
        count[0] = load_u32(p + at + 5)
        list_end[0] = at + 5 + size
        if size < 4 or list_end[0] > end:
            return -1
        return at + 9
    return -1


def map_header(p, at, end, map_end):
    """Read a map's constructor; return where its first key starts."""
    size: int64_t
    if at + 3 <= end and p[at] == 0xC1:
        size = p[at + 1]
        map_end[0] = at + 2 + size
        return at + 3 if size >= 1 and map_end[0] <= end else -1
    if at + 9 <= end and p[at] == 0xD1:
        size = load_u32(p + at + 1)
        map_end[0] = at + 5 + size
        return at + 9 if size >= 4 and map_end[0] <= end else -1
    return -1


def read_binary(p, at, end, value, size):
    """Read a binary; null is NULL."""
    code: uint8_t
    if at >= end:
        return -1
    code = p[at]
    if code == 0x40:
        value[0] = cython.NULL
        size[0] = 0
        return at + 1
    if code == 0xA0:
        if at + 2 > end:
            return -1
        size[0] = p[at + 1]
        value[0] = p + at + 2
        at += 2 + size[0]
        return at if at <= end else -1
    if code == 0xB0:
        if at + 5 > end:
            return -1
        size[0] = load_u32(p + at + 1)
        value[0] = p + at + 5
        at += 5 + cython.cast(int64_t, size[0])
        return at if at <= end else -1
    return -1


def read_string(p, at, end, value, size):
    """Read a string's UTF-8; return 1, 0 where it is null, -1 where it is malformed."""
    if at >= end:
        return -1
    if p[at] == 0x40:
        return 0
    if p[at] == 0xA1:
        if at + 2 > end or at + 2 + p[at + 1] > end:
            return -1
        size[0] = p[at + 1]
        value[0] = p + at + 2
        return 1
    if p[at] == 0xB1:
        if at + 5 > end or at + 5 + cython.cast(int64_t, load_u32(p + at + 1)) > end:
            return -1
        size[0] = load_u32(p + at + 1)
        value[0] = p + at + 5
        return 1
    return -1


def read_octets(p, at, end, value, size):
    """Find the octets of a binary, a string, a symbol or a UUID, in any of their encodings.

    Returns:
        The format code of the shorter encoding of its type; 0 where the value is of another type,
        or malformed.
    """
    code: uint8_t
    if at >= end:
        return 0
    code = p[at]
    if code == 0x98 and at + 17 <= end:
        size[0] = 16
        value[0] = p + at + 1
        return code
    if code == 0xA0 or code == 0xA1 or code == 0xA3:
        if at + 2 > end or at + 2 + p[at + 1] > end:
            return 0
        size[0] = p[at + 1]
        value[0] = p + at + 2
        return code
    if code == 0xB0 or code == 0xB1 or code == 0xB3:
        if at + 5 > end or at + 5 + cython.cast(int64_t, load_u32(p + at + 1)) > end:
            return 0
        size[0] = load_u32(p + at + 1)
        value[0] = p + at + 5
        return code - 0x10
    return 0


def named_descriptor(p, end, body):
    """Return the numeric descriptor for a symbolic one (AMQP 1.0 §1.2, §2.7, §3.2, §3.4)."""
    name: octets = cython.NULL
    size: uint32_t = 0
    if read_octets(p, 1, end, cython.address(name), cython.address(size)) != 0xA3:
        return -1
    body[0] = name + size - p
    if size < 13 or memcmp(name, b"amqp:", 5) != 0:
        return -1
    name += 5
    size -= 5
    if _spells(name, size, b"header:list", 11):
        return 0x70
    if _spells(name, size, b"delivery-annotations:map", 24):
        return 0x71
    if _spells(name, size, b"message-annotations:map", 23):
        return 0x72
    if _spells(name, size, b"properties:list", 15):
        return 0x73
    if _spells(name, size, b"application-properties:map", 26):
        return 0x74
    return _named_body(name, size)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _named_body(name: octets, size: uint32_t) -> cython.int:
    if _spells(name, size, b"data:binary", 11):
        return 0x75
    if _spells(name, size, b"amqp-sequence:list", 18):
        return 0x76
    if _spells(name, size, b"amqp-value:*", 12):
        return 0x77
    if _spells(name, size, b"footer:map", 10):
        return 0x78
    return _named_performative(name, size)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _named_performative(name: octets, size: uint32_t) -> cython.int:  # a name each
    """Return the number of what is read here without Python: flows, transfers, outcomes."""
    if _spells(name, size, b"flow:list", 9):
        return 0x13
    if _spells(name, size, b"transfer:list", 13):
        return 0x14
    if _spells(name, size, b"disposition:list", 16):
        return 0x15
    if _spells(name, size, b"received:list", 13):
        return 0x23
    if _spells(name, size, b"accepted:list", 13):
        return 0x24
    if _spells(name, size, b"rejected:list", 13):
        return 0x25
    if _spells(name, size, b"released:list", 13):
        return 0x26
    if _spells(name, size, b"modified:list", 13):
        return 0x27
    return -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _spells(
    name: octets, size: uint32_t, text: cython.p_const_char, length: uint32_t
) -> cython.bint:
    return size == length and memcmp(name, text, length) == 0
