"""Reads what a storing node needs of a message: header, delay, message-id and group-id.

Theory of operation. Sections come in a fixed order (AMQP 1.0 §3.2), so one walk from the front
finds everything, and ends at the first section that is past all that is wanted: for most messages
at once. Nothing allocates or touches Python objects; what was found points into the message.

A header is never changed in place: `write_header` makes a new one, to be sent before the rest.
"""

import cython
from cython.cimports.cogwork.dataplane.scan import (
    list_header,
    load_u32,
    performative_code,
    read_bool,
    read_string,
    read_uint,
    skip_value,
)
from cython.cimports.libc.string import memcmp, memset

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

PRIORITY_DEFAULT = 4
"""The priority of a message that names none (AMQP 1.0 §3.2.1)."""


def read_envelope(p, size, wants, e):
    """Fills in what a message says of its storing; returns -1 where its sections are malformed."""
    at: int64_t = 0
    body: int64_t = 0
    start: int64_t
    code: cython.int
    memset(e, 0, cython.sizeof(Envelope))
    e.priority = 4
    e.delay_ms = -1
    e.delivery_time_ms = -1
    while at < size:
        start = at
        code = performative_code(p + at, size - at, cython.address(body))
        if code < 0x70 or code > 0x78:
            return -1
        if code > 0x73 or (code == 0x73 and not wants & (WANTS_MESSAGE_ID | WANTS_GROUP_ID)):
            return 0
        at += body
        if code == 0x70:
            if start != 0:
                return -1
            at = _read_header(p, at, size, e)
            e.header_size = cython.cast(uint32_t, at)
        elif code == 0x72 and wants & WANTS_DELAY:
            at = _read_annotations(p, at, size, e)
        elif code == 0x73:
            at = _read_properties(p, at, size, wants, e)
        else:
            at = skip_value(p, at, size)
        if at < 0:
            return -1
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_header(p: octets, at: int64_t, end: int64_t, e: cython.pointer(Envelope)) -> int64_t:
    count: uint32_t = 0
    field: uint32_t
    list_end: int64_t = 0
    present: cython.bint = False
    first_acquirer: cython.bint = False
    at = list_header(p, at, end, cython.address(count), cython.address(list_end))
    if at < 0 or count > 5:
        return -1
    for field in range(count):
        if field == 0:
            at = read_bool(p, at, list_end, cython.address(e.durable))
        elif field == 1:
            at = _read_priority(p, at, list_end, e)
        elif field == 2:
            at = read_uint(p, at, list_end, cython.address(e.ttl_ms), cython.address(e.has_ttl))
        elif field == 3:
            at = read_bool(p, at, list_end, cython.address(first_acquirer))
        else:
            at = read_uint(
                p, at, list_end, cython.address(e.delivery_count), cython.address(present)
            )
        if at < 0:
            return -1
    return at if at == list_end else -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_priority(p: octets, at: int64_t, end: int64_t, e: cython.pointer(Envelope)) -> int64_t:
    if at < end and p[at] == 0x40:
        return at + 1
    if at + 2 > end or p[at] != 0x50:
        return -1
    e.priority = p[at + 1]
    return at + 2


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_annotations(p: octets, at: int64_t, end: int64_t, e: cython.pointer(Envelope)) -> int64_t:
    """Looks for `x-opt-delivery-delay` and `x-opt-delivery-time` among the annotations."""
    pairs_end: int64_t = 0
    size: uint32_t = 0
    key: octets = cython.NULL
    number: int64_t = 0
    at = _map_header(p, at, end, cython.address(pairs_end))
    if at < 0:
        return -1
    while at < pairs_end:
        key = cython.NULL
        if p[at] == 0xA3 and at + 2 <= pairs_end:
            size = p[at + 1]
            key = p + at + 2
        at = skip_value(p, at, pairs_end)
        if at < 0 or at >= pairs_end:
            return -1
        if key != cython.NULL and _read_number(p, at, pairs_end, cython.address(number)):
            if size == 20 and memcmp(key, b"x-opt-delivery-delay", 20) == 0:
                e.delay_ms = number
            elif size == 19 and memcmp(key, b"x-opt-delivery-time", 19) == 0:
                e.delivery_time_ms = number
        at = skip_value(p, at, pairs_end)
        if at < 0:
            return -1
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _map_header(
    p: octets, at: int64_t, end: int64_t, pairs_end: cython.pointer(int64_t)
) -> int64_t:
    """Reads a map's constructor; returns where its first key starts."""
    size: int64_t
    if at + 3 <= end and p[at] == 0xC1:
        size = p[at + 1]
        pairs_end[0] = at + 2 + size
        return at + 3 if size >= 1 and pairs_end[0] <= end else -1
    if at + 9 <= end and p[at] == 0xD1:
        size = load_u32(p + at + 1)
        pairs_end[0] = at + 5 + size
        return at + 9 if size >= 4 and pairs_end[0] <= end else -1
    return -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_number(
    p: octets, at: int64_t, end: int64_t, value: cython.pointer(int64_t)
) -> cython.bint:
    """Reads an integer or timestamp of any width that is not negative."""
    code: uint8_t = p[at]
    width: cython.int = 0
    number: int64_t = 0
    step: cython.int
    if code == 0x43 or code == 0x44:
        value[0] = 0
        return True
    if code == 0x50 or code == 0x52 or code == 0x53 or code == 0x51 or code == 0x54 or code == 0x55:
        width = 1
    elif code == 0x60 or code == 0x61:
        width = 2
    elif code == 0x70 or code == 0x71:
        width = 4
    elif code == 0x80 or code == 0x81 or code == 0x83:
        width = 8
    if width == 0 or at + 1 + width > end:
        return False
    # Signed types of at most four octets: a set sign bit makes the number negative.
    if (code == 0x51 or code >> 4 < 8) and code & 0x0F in (1, 4, 5) and p[at + 1] & 0x80:
        return False
    for step in range(width):
        number = (number << 8) | p[at + 1 + step]
    value[0] = number
    return number >= 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_properties(
    p: octets, at: int64_t, end: int64_t, wants: cython.int, e: cython.pointer(Envelope)
) -> int64_t:
    count: uint32_t = 0
    field: uint32_t
    list_end: int64_t = 0
    start: int64_t
    at = list_header(p, at, end, cython.address(count), cython.address(list_end))
    if at < 0 or count > 13:
        return -1
    for field in range(count):
        start = at
        at = skip_value(p, at, list_end)
        if at < 0:
            return -1
        if field == 0 and wants & WANTS_MESSAGE_ID and p[start] != 0x40:
            e.message_id = p + start
            e.message_id_size = cython.cast(uint32_t, at - start)
        elif field == 10 and wants & WANTS_GROUP_ID and p[start] != 0x40:
            start = read_string(
                p, start, list_end, cython.address(e.group_id), cython.address(e.group_id_size)
            )
            if start < 0:
                return -1
    return at if at == list_end else -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_uint(p: cython.pointer(uint8_t), value: uint32_t) -> cython.pointer(uint8_t):
    if value < 256:
        p[0] = 0x52
        p[1] = cython.cast(uint8_t, value)
        return p + 2
    p[0] = 0x70
    p[1] = (value >> 24) & 0xFF
    p[2] = (value >> 16) & 0xFF
    p[3] = (value >> 8) & 0xFF
    p[4] = value & 0xFF
    return p + 5


def write_header(p, e, first_acquirer):
    """Writes a header section of at most HEADER_SIZE_MAX bytes; returns its size."""
    at: cython.pointer(uint8_t) = p + 6
    p[0] = 0x00
    p[1] = 0x53
    p[2] = 0x70
    p[3] = 0xC0
    p[5] = 5
    at[0] = 0x41 if e.durable else 0x42
    at[1] = 0x50
    at[2] = e.priority
    at += 3
    if e.has_ttl:
        at = _put_uint(at, e.ttl_ms)
    else:
        at[0] = 0x40
        at += 1
    at[0] = 0x41 if first_acquirer else 0x42
    at = _put_uint(at + 1, e.delivery_count)
    p[4] = cython.cast(uint8_t, at - p - 5)
    return cython.cast(uint32_t, at - p)
