"""Reads what a storing node needs of a message: header, delay, ids, group-id, and marks.

Theory of operation. Sections come in a fixed order (AMQP 1.0 §3.2), so one walk from the front
finds everything, and ends at the first section that is past all that is wanted: for most messages
at once. Nothing allocates or touches Python objects; what was found points into the message.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.values import (
    descriptor_code,
    list_header,
    map_header,
    read_string,
    skip_value,
)
from cython.cimports.cogwork.dataplane.message.header import clear_header, read_header
from cython.cimports.libc.string import memcmp

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


def clear_envelope(e):
    """Makes an envelope what a message means that says nothing."""
    clear_header(cython.address(e.header))
    e.delay_ms = e.delivery_time_ms = -1
    e.message_id = e.group_id = e.letter_id = cython.NULL
    e.message_id_size = e.group_id_size = 0
    e.is_moved = e.is_dead_letter = e.is_overflow = False


def read_envelope(p, size, wants, e):
    """Fills in what a message says of its storing; returns -1 where its sections are malformed."""
    at: int64_t = 0
    body: int64_t = 0
    start: int64_t
    code: cython.int
    clear_envelope(e)
    while at < size:
        start = at
        code = descriptor_code(p + at, size - at, cython.address(body))
        if code < 0x70 or code > 0x78:
            return -1
        if code > 0x73 or (code == 0x73 and not wants & (WANTS_MESSAGE_ID | WANTS_GROUP_ID)):
            return 0
        at += body
        if code == 0x70:
            if start != 0:
                return -1
            at = read_header(p, at, size, cython.address(e.header))
            e.header.size_bytes = cython.cast(uint32_t, at)
        elif code == 0x71 and wants & WANTS_LETTER_ID:
            at = _read_letter_id(p, at, size, e)
            e.letter_start = cython.cast(uint32_t, start)
            e.letter_end = cython.cast(uint32_t, at)
        elif code == 0x72 and wants & (WANTS_DELAY | WANTS_MESSAGE_ID):
            at = _read_annotations(p, at, size, wants, e)
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
def _read_letter_id(p: octets, at: int64_t, end: int64_t, e: cython.pointer(Envelope)) -> int64_t:
    """Looks for the id of a dead letter among the delivery annotations."""
    pairs_end: int64_t = 0
    key: octets
    at = map_header(p, at, end, cython.address(pairs_end))
    if at < 0:
        return -1
    while at < pairs_end:
        key = p + at
        at = skip_value(p, at, pairs_end)
        if at < 0 or at >= pairs_end:
            return -1
        if (
            p + at == key + 22
            and memcmp(key, b"\xa3\x14x-opt-dead-letter-id", 22) == 0
            and at + 2 + LETTER_ID_BYTES <= pairs_end
            and p[at] == 0xA0
            and p[at + 1] == LETTER_ID_BYTES
        ):
            e.letter_id = p + at + 2
        at = skip_value(p, at, pairs_end)
        if at < 0:
            return -1
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_annotations(
    p: octets, at: int64_t, end: int64_t, wants: cython.int, e: cython.pointer(Envelope)
) -> int64_t:
    """Looks for a delay, and for marks of who was moved or is dead, among the annotations."""
    pairs_end: int64_t = 0
    size: uint32_t = 0
    key: octets = cython.NULL
    number: int64_t = 0
    at = map_header(p, at, end, cython.address(pairs_end))
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
        if key == cython.NULL:
            pass
        elif size == 11 and memcmp(key, b"x-opt-moved", 11) == 0:
            e.is_moved = True
        elif size == 24 and memcmp(key, b"x-opt-dead-letter-source", 24) == 0:
            e.is_moved = e.is_dead_letter = True
        elif size == 24 and memcmp(key, b"x-opt-dead-letter-reason", 24) == 0:
            e.is_overflow = _is_maximum_length(p + at, pairs_end - at)
        elif wants & WANTS_DELAY and _read_number(p, at, pairs_end, cython.address(number)):
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
def _is_maximum_length(value: octets, size: int64_t) -> cython.bint:
    return size >= 16 and memcmp(value, b"\xa1\x0emaximum-length", 16) == 0


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
