"""Reads what a storing node needs of a message: header, delay, ids, group-id, and marks.

Theory of operation. Sections come in a fixed order (AMQP 1.0 §3.2), so one walk from the front
finds everything, and ends at the first section that is past all that is wanted: for most messages
at once. Nothing allocates or touches Python objects; what was found points into the message.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.numbers import (
    IS_OTHER,
    IS_OUT_OF_RANGE,
    OUT_OF_RANGE,
    read_rounded,
)
from cython.cimports.cogwork.dataplane.encoding.values import (
    descriptor_code,
    list_header,
    map_header,
    read_bool,
    read_key,
    read_octets,
    read_string,
    skip_value,
)
from cython.cimports.cogwork.dataplane.message.basic import (
    BASIC_FORMAT,
    BasicFacts,
    BasicParts,
    find_basic_parts,
    is_basic_durable,
    read_basic_facts,
)
from cython.cimports.cogwork.dataplane.message.header import clear_header, read_header
from cython.cimports.libc.string import memcmp, memcpy

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

TIMESTAMP = cython.declare(uint8_t, 0x83)
"""The format code of a time: as a delay it is not understood."""


def clear_envelope(e):
    """Make an envelope what a message means that says nothing."""
    clear_header(cython.address(e.header))
    e.delay_ms = e.delivery_time_ms = -1
    e.message_id = e.group_id = e.dead_letter_id = cython.NULL
    e.message_id_size = e.group_id_size = 0
    e.is_moved = e.is_dead_letter = e.is_overflow = False
    e.odd = NOTHING_ODD
    e.odd_code = 0


def is_durable(p, size):
    """Return whether a message is marked durable, by itself, without the rest of its header."""
    at: int64_t = 0
    end: int64_t = 0
    count: uint32_t = 0
    durable: cython.bint = False
    if descriptor_code(p, size, cython.address(at)) != 0x70:
        return False
    at = list_header(p, at, size, cython.address(count), cython.address(end))
    if at < 0 or count == 0 or read_bool(p, at, end, cython.address(durable)) < 0:
        return False
    return durable


def is_kept_durable(p, size, format):
    """Return whether a message of any format is durable; nothing tells of a foreign one, so it is."""
    if format == 0:
        return is_durable(p, size)
    return format != BASIC_FORMAT or is_basic_durable(p, size)


def read_any_envelope(p, size, format, wants, e):
    """Fill in what a message of any format says of its storing; return -1 where it is malformed."""
    if format == 0:
        return read_envelope(p, size, wants, e)
    clear_envelope(e)
    if format == BASIC_FORMAT:
        return _read_basic(p, size, wants, e)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_basic(
    p: octets, size: uint32_t, wants: cython.int, e: cython.pointer(Envelope)
) -> cython.int:
    """Read the same of a message that was published by AMQP 0-9-1."""
    parts: BasicParts
    facts: BasicFacts
    if not find_basic_parts(p, size, cython.address(parts)):
        return -1
    if not read_basic_facts(parts.properties, parts.properties_size, cython.address(facts)):
        return -1
    e.header = facts.header
    if wants & WANTS_MESSAGE_ID and facts.message_id != cython.NULL:
        e.basic_id[0] = 0xA1
        memcpy(e.basic_id + 1, facts.message_id, facts.message_id_size)
        e.message_id = e.basic_id
        e.message_id_size = facts.message_id_size + 1
    return 0


def read_envelope(p, size, wants, e):
    """Fill in what a message says of its storing; return -1 where its sections are malformed.

    A field of a type that the specification forbids makes its section malformed; `odd` names it. A
    delay that is not understood does not: `odd` names that, too, and all else is read.
    """
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
            if at < 0:
                e.odd = e.header.odd_field
                e.odd_code = e.header.odd_code
                return -1
            e.header.size_bytes = cython.cast(uint32_t, at)
        elif code == 0x71 and wants & WANTS_DEAD_LETTER_ID:
            at = _read_dead_letter_id(p, at, size, e)
            e.id_section_start = cython.cast(uint32_t, start)
            e.id_section_end = cython.cast(uint32_t, at)
        elif code == 0x72 and wants & (WANTS_DELAY | WANTS_MESSAGE_ID | WANTS_DEAD_LETTER_ID):
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
def _read_dead_letter_id(
    p: octets, at: int64_t, end: int64_t, e: cython.pointer(Envelope)
) -> int64_t:
    """Look for the id of a dead letter among the delivery annotations."""
    pairs_end: int64_t = 0
    key: octets
    key_size: uint32_t = 0
    found: octets = cython.NULL
    found_size: uint32_t = 0
    at = map_header(p, at, end, cython.address(pairs_end))
    if at < 0:
        return -1
    while at < pairs_end:
        key = read_key(p, at, pairs_end, cython.address(key_size))
        at = skip_value(p, at, pairs_end)
        if at < 0 or at >= pairs_end:
            return -1
        if (
            key_size == 20
            and memcmp(key, b"x-opt-dead-letter-id", 20) == 0
            and read_octets(p, at, pairs_end, cython.address(found), cython.address(found_size))
            == 0xA0
            and found_size == DEAD_LETTER_ID_BYTES
        ):
            e.dead_letter_id = found
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
    """Look for a delay, and for marks of who was moved or is dead, among the annotations."""
    pairs_end: int64_t = 0
    size: uint32_t = 0
    key: octets
    at = map_header(p, at, end, cython.address(pairs_end))
    if at < 0:
        return -1
    while at < pairs_end:
        key = read_key(p, at, pairs_end, cython.address(size))
        at = skip_value(p, at, pairs_end)
        if at < 0 or at >= pairs_end:
            return -1
        if size == 11 and memcmp(key, b"x-opt-moved", 11) == 0:
            e.is_moved = True
        elif size == 24 and memcmp(key, b"x-opt-dead-letter-source", 24) == 0:
            e.is_moved = e.is_dead_letter = True
        elif size == 24 and memcmp(key, b"x-opt-dead-letter-reason", 24) == 0:
            e.is_overflow = _is_maximum_length(p, at, pairs_end)
        elif not wants & WANTS_DELAY:
            pass
        elif size == 20 and memcmp(key, b"x-opt-delivery-delay", 20) == 0:
            _read_delay(p, at, pairs_end, e)
        elif size == 19 and memcmp(key, b"x-opt-delivery-time", 19) == 0:
            _read_time(p, at, pairs_end, e)
        at = skip_value(p, at, pairs_end)
        if at < 0:
            return -1
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_maximum_length(p: octets, at: int64_t, end: int64_t) -> cython.bint:
    text: octets = cython.NULL
    size: uint32_t = 0
    if not read_octets(p, at, end, cython.address(text), cython.address(size)):
        return False
    return size == 14 and memcmp(text, b"maximum-length", 14) == 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_delay(p: octets, at: int64_t, end: int64_t, e: cython.pointer(Envelope)) -> cython.int:
    """Read for how many milliseconds a message waits; one below 0 is over."""
    found: cython.int = read_rounded(p, at, end, cython.address(e.delay_ms))
    if found == IS_OUT_OF_RANGE:
        e.odd, e.odd_code = ODD_DELAY, OUT_OF_RANGE
    elif found == IS_OTHER or p[at] == TIMESTAMP:
        e.odd, e.odd_code = ODD_DELAY, p[at]
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read_time(p: octets, at: int64_t, end: int64_t, e: cython.pointer(Envelope)) -> cython.int:
    """Read until when a message waits: a timestamp, or milliseconds since 1970 as a number."""
    found: cython.int = read_rounded(p, at, end, cython.address(e.delivery_time_ms))
    if found == IS_OUT_OF_RANGE:
        e.odd, e.odd_code = ODD_TIME, OUT_OF_RANGE
    elif found == IS_OTHER:
        e.odd, e.odd_code = ODD_TIME, p[at]
    return 0


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
            if not _is_message_id(p[start]):
                e.odd, e.odd_code = ODD_MESSAGE_ID, p[start]
                return -1
            e.message_id = p + start
            e.message_id_size = cython.cast(uint32_t, at - start)
        elif field == 10 and wants & WANTS_GROUP_ID and p[start] != 0x40:
            if (
                read_string(
                    p, start, list_end, cython.address(e.group_id), cython.address(e.group_id_size)
                )
                < 0
            ):
                e.odd, e.odd_code = ODD_GROUP_ID, p[start]
                return -1
    return at if at == list_end else -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_message_id(code: uint8_t) -> cython.bint:
    """Return whether a message-id may be of a type (AMQP 1.0 §3.2.11 to §3.2.14)."""
    if code == 0x44 or code == 0x53 or code == 0x80 or code == 0x98:
        return True
    return code == 0xA0 or code == 0xA1 or code == 0xB0 or code == 0xB1
