"""The header section of a message (AMQP 1.0 §3.2.1): read, and written anew.

A header is never changed in place: a new one is written, to be sent before the rest. The ttl alone
may be: what is left of it fits into the octets that it has.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import load_u32, store_u32, store_uint
from cython.cimports.cogwork.dataplane.encoding.values import (
    descriptor_code,
    list_header,
    read_bool,
    read_uint,
    skip_value,
)
from cython.cimports.libc.string import memset

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

FIELDS = cython.declare(uint32_t, 5)


def clear_header(header):
    """Make a header what an absent one means."""
    memset(header, 0, cython.sizeof(Header))
    header.priority = DEFAULT_PRIORITY


def read_header(p, at, end, header):
    """Read the list of a header section into a cleared header; return where it ends, or -1."""
    count: uint32_t = 0
    field: uint32_t
    list_end: int64_t = 0
    start: int64_t
    present: cython.bint = False
    at = list_header(p, at, end, cython.address(count), cython.address(list_end))
    if at < 0 or count > FIELDS:
        return -1
    for field in range(count):
        start = at
        if field == 0:
            at = read_bool(p, at, list_end, cython.address(header.durable))
        elif field == 1:
            at = _read_priority(p, at, list_end, header)
        elif field == 2:
            at = read_uint(
                p, at, list_end, cython.address(header.ttl_ms), cython.address(header.has_ttl)
            )
        elif field == 3:
            at = read_bool(p, at, list_end, cython.address(header.first_acquirer))
        else:
            at = read_uint(
                p, at, list_end, cython.address(header.delivery_count), cython.address(present)
            )
        if at < 0:
            if skip_value(p, start, list_end) > 0:
                header.odd_field = cython.cast(uint8_t, field + 1)
                header.odd_code = p[start]
            return -1
    return at if at == list_end else -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_priority(p: octets, at: int64_t, end: int64_t, header: cython.pointer(Header)) -> int64_t:
    if at < end and p[at] == 0x40:
        return at + 1
    if at + 2 > end or p[at] != 0x50:
        return -1
    header.priority = p[at + 1]
    return at + 2


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _length(header: cython.pointer(cython.const[Header])) -> uint8_t:
    """Count the fields up to the last one that is not default."""
    if header.delivery_count != 0:
        return 5
    if header.first_acquirer:
        return 4
    if header.has_ttl:
        return 3
    if header.priority != DEFAULT_PRIORITY:
        return 2
    return 1 if header.durable else 0


def write_header(p, header):
    """Write a header section of at most HEADER_SIZE_MAX bytes; return its size.

    Trailing defaults are left out; where all is default, so is the section.
    """
    count: uint8_t = _length(header)
    at: cython.pointer(uint8_t) = p + 7
    if count == 0:
        return 0
    p[0] = 0x00
    p[1] = 0x53
    p[2] = 0x70
    p[3] = 0xC0
    p[5] = count
    p[6] = 0x41 if header.durable else 0x40
    if count > 1 and header.priority == DEFAULT_PRIORITY:
        at[0] = 0x40
        at += 1
    elif count > 1:
        at[0] = 0x50
        at[1] = header.priority
        at += 2
    if count > 2 and header.has_ttl:
        at = store_uint(at, header.ttl_ms)
    elif count > 2:
        at[0] = 0x40
        at += 1
    if count > 3:
        at[0] = 0x41 if header.first_acquirer else 0x40
        at += 1
    if count > 4:
        at = store_uint(at, header.delivery_count)
    p[4] = cython.cast(uint8_t, at - p - 5)
    return cython.cast(uint32_t, at - p)


def find_ttl(p, size, width):
    """Find the ttl of a message by itself, without the rest of its header."""
    at: int64_t = 0
    end: int64_t = 0
    count: uint32_t = 0
    if descriptor_code(p, size, cython.address(at)) != 0x70:
        return -1
    at = list_header(p, at, size, cython.address(count), cython.address(end))
    if at < 0 or count < 3:
        return -1
    at = skip_value(p, at, end)
    if at >= 0:
        at = skip_value(p, at, end)
    if at < 0 or at >= end:
        return -1
    width[0] = 0
    if p[at] == 0x43:
        return at + 1
    if p[at] == 0x52 and at + 2 <= end:
        width[0] = 1
        return at + 1
    if p[at] == 0x70 and at + 5 <= end:
        width[0] = 4
        return at + 1
    return -1


def ttl_of(p, size):
    """Read the ttl of a message by itself."""
    width: uint8_t = 0
    at: int64_t = find_ttl(p, size, cython.address(width))
    if at < 0:
        return -1
    if width == 4:
        return load_u32(p + at)
    return p[at] if width else 0


def shorten_ttl(p, size, ttl_ms):
    """Lessen the ttl of a message where it lies."""
    width: uint8_t = 0
    at: int64_t = find_ttl(p, size, cython.address(width))
    if at < 0:
        return
    if width == 4 and ttl_ms < load_u32(p + at):
        store_u32(p + at, ttl_ms)
    elif width == 1 and ttl_ms < p[at]:
        p[at] = cython.cast(uint8_t, ttl_ms)
