"""Messages as the records of a stream: what of them is kept, and what their publisher says.

Theory of operation. A record is the message as it was encoded, without its delivery annotations,
which are for one hop only (AMQP 1.0 §3.2.2), and without the message annotations that a stream says
itself: `x-opt-offset`, `x-opt-time`, `x-opt-producer`, `x-opt-sequence` and the like. Most messages
have neither, and are kept byte for byte. Nothing here allocates or touches Python objects.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.numbers import (
    IS_NULL,
    IS_NUMBER,
    IS_OTHER,
    OUT_OF_RANGE,
    read_integer,
)
from cython.cimports.cogwork.dataplane.encoding.octets import store_u32
from cython.cimports.cogwork.dataplane.encoding.values import (
    map_header,
    read_key,
    read_octets,
    skip_value,
)
from cython.cimports.cogwork.dataplane.message.sections import (
    DELIVERY_ANNOTATIONS_RANK,
    FOUND,
    HEADER_RANK,
    MESSAGE_ANNOTATIONS_RANK,
    Layout,
    locate,
)
from cython.cimports.libc.string import memcmp, memcpy

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

SECTION_SIZE = cython.declare(int64_t, 12)
"""Descriptor and constructor of a wide map: 0x00 0x53 0x72, 0xD1, size, count."""


def read_record(data, size, record):
    """Take a message apart; return FINE, or what is wrong with it."""
    layout = cython.declare(Layout)
    at: int64_t
    record.data = data
    record.end = size
    record.head_end = record.rest = 0
    record.pairs = record.pairs_end = record.kept_size = 0
    record.kept = 0
    record.is_whole = True
    record.producer = cython.NULL
    record.producer_size = 0
    record.has_sequence = record.is_snapshot = False
    record.sequence = record.snapshot = 0
    record.sequence_at = 0
    record.odd_code = 0
    if is_one_section(data, size):
        return FINE
    if locate(data, size, cython.address(layout)) != FOUND:
        return MALFORMED_RECORD
    if layout.sections[HEADER_RANK].start >= 0:
        record.head_end = record.rest = layout.sections[HEADER_RANK].end
    if layout.sections[DELIVERY_ANNOTATIONS_RANK].start >= 0:
        record.rest = layout.sections[DELIVERY_ANNOTATIONS_RANK].end
    if layout.sections[MESSAGE_ANNOTATIONS_RANK].start < 0:
        return FINE
    at = layout.sections[MESSAGE_ANNOTATIONS_RANK].value
    record.rest = layout.sections[MESSAGE_ANNOTATIONS_RANK].end
    if data[at] == 0x40:
        return FINE
    record.pairs = map_header(data, at, record.rest, cython.address(record.pairs_end))
    if record.pairs < 0 or record.pairs_end != record.rest:
        return MALFORMED_RECORD
    return read_pairs(record)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def read_pairs(record: cython.pointer(Record)) -> cython.int:
    """Go through the annotations: take down the stream's own, counts the others."""
    data: octets = record.data
    end: int64_t = record.pairs_end
    at: int64_t = record.pairs
    value: int64_t
    following: int64_t
    result: cython.int
    while at < end:
        value = skip_value(data, at, end)
        if value < 0:
            return MALFORMED_RECORD
        following = skip_value(data, value, end)
        if following < 0:
            return MALFORMED_RECORD
        if is_own(data, at, value):
            record.is_whole = False
            result = read_own(record, at, value, following)
            if result != FINE:
                return result
        else:
            record.kept += 1
            record.kept_size += following - at
        at = following
    if record.has_sequence and record.producer == cython.NULL:
        return NO_PRODUCER
    if record.producer != cython.NULL and not record.has_sequence:
        return NO_SEQUENCE
    return FINE


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_own(data: octets, at: int64_t, end: int64_t) -> cython.bint:
    """Return whether an annotation's key is one that streams use."""
    size: uint32_t = 0
    name: octets = read_key(data, at, end, cython.address(size))
    if size < 10 or memcmp(name, b"x-opt-", 6) != 0:
        return False
    name += 6
    size -= 6
    if size == 8:
        return (
            memcmp(name, b"producer", 8) == 0
            or memcmp(name, b"sequence", 8) == 0
            or memcmp(name, b"snapshot", 8) == 0
        )
    if size == 6:
        return memcmp(name, b"offset", 6) == 0
    if size == 4:
        return memcmp(name, b"time", 4) == 0
    return size == 9 and memcmp(name, b"caught-up", 9) == 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def read_own(
    record: cython.pointer(Record), key: int64_t, value: int64_t, end: int64_t
) -> cython.int:
    """Take down producer, sequence or snapshot; the others are the stream's to say."""
    data: octets = record.data
    size: uint32_t = 0
    name: octets = read_key(data, key, value, cython.address(size)) + 6
    if name[0] == 112:  # producer
        if not read_octets(
            data, value, end, cython.address(record.producer), cython.address(record.producer_size)
        ):
            record.odd_code = data[value]
            return BAD_PRODUCER
        if not 0 < record.producer_size <= PRODUCER_SIZE_MAX:
            record.odd_code = OUT_OF_RANGE
            return BAD_PRODUCER
    elif name[0] == 115 and name[1] == 101:  # sequence
        if not read_own_number(record, value, end, cython.address(record.sequence)):
            return BAD_SEQUENCE
        record.has_sequence = True
        record.sequence_at = value + 1 if data[value] == 0x80 else 0
    elif name[0] == 115:  # snapshot
        if not read_own_number(record, value, end, cython.address(record.snapshot)):
            return BAD_SNAPSHOT
        record.is_snapshot = True
    return FINE


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def read_own_number(
    record: cython.pointer(Record), value: int64_t, end: int64_t, number: cython.pointer(uint64_t)
) -> cython.bint:
    """Read a whole number from 0 to 2^63 - 1, or note what there is instead."""
    found: int64_t = 0
    kind: cython.int = read_integer(record.data, value, end, cython.address(found))
    if kind == IS_NUMBER and found >= 0:
        number[0] = cython.cast(uint64_t, found)
        return True
    if kind in (IS_OTHER, IS_NULL):
        record.odd_code = record.data[value]
    else:
        record.odd_code = OUT_OF_RANGE
    return False


def record_size(record):
    """Count the bytes that a record takes."""
    size: int64_t = record.head_end + record.end - record.rest
    if record.kept:
        size += SECTION_SIZE + record.kept_size
    return size


def write_record(p, record):
    """Write a record; return where it ends."""
    memcpy(p, record.data, record.head_end)
    p += record.head_end
    if record.kept:
        p[0] = 0x00
        p[1] = 0x53
        p[2] = 0x72
        p[3] = 0xD1
        store_u32(p + 4, cython.cast(uint32_t, record.kept_size + 4))
        store_u32(p + 8, record.kept * 2)
        p = write_pairs(p + SECTION_SIZE, record)
    memcpy(p, record.data + record.rest, record.end - record.rest)
    return p + (record.end - record.rest)


def write_pairs(p, record):
    """Write the annotations that are kept; return where they end."""
    data: octets = record.data
    at: int64_t = record.pairs
    value: int64_t
    following: int64_t
    if record.is_whole:
        memcpy(p, data + at, record.kept_size)
        return p + record.kept_size
    while at < record.pairs_end:
        value = skip_value(data, at, record.pairs_end)
        following = skip_value(data, value, record.pairs_end)
        if not is_own(data, at, value):
            memcpy(p, data + at, following - at)
            p += following - at
        at = following
    return p
