"""Messages as the records of a stream: what of them is kept, and what their publisher says.

Theory of operation. A record is the message as it was encoded, without its delivery annotations,
which are for one hop only (AMQP 1.0 §3.2.2), and without the message annotations that a stream says
itself: `x-opt-offset`, `x-opt-time`, `x-opt-producer`, `x-opt-sequence` and the like. Most messages
have neither, and are kept byte for byte. Nothing here allocates or touches Python objects.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import load_u32, load_u64, store_u32
from cython.cimports.cogwork.dataplane.encoding.values import map_header, skip_value
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
    """Takes a message apart; returns FINE, or what is wrong with it."""
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
    """Goes through the annotations: takes down the stream's own, counts the others."""
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
    if (record.producer != cython.NULL) != record.has_sequence:
        return BAD_PRODUCER
    return FINE


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_own(data: octets, at: int64_t, end: int64_t) -> cython.bint:
    """Says whether an annotation's key is one that streams use."""
    name: octets = data + at + 2
    size: int64_t = end - at - 2
    if data[at] != 0xA3 or size < 10 or memcmp(name, b"x-opt-", 6) != 0:
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
    """Takes down producer, sequence or snapshot; the others are the stream's to say."""
    data: octets = record.data
    initial: cython.int = data[key + 8]
    if initial == 112:  # producer
        if data[value] == 0x98:
            record.producer = data + value + 1
        elif data[value] == 0xA0 or data[value] == 0xA1 or data[value] == 0xA3:
            record.producer = data + value + 2
        else:
            return BAD_PRODUCER
        record.producer_size = cython.cast(uint32_t, data + end - record.producer)
        if not 0 < record.producer_size <= PRODUCER_SIZE_MAX:
            return BAD_PRODUCER
    elif initial == 115 and data[key + 9] == 101:  # sequence
        if read_number(data, value, end, cython.address(record.sequence)) < 0:
            return BAD_PRODUCER
        record.has_sequence = True
        record.sequence_at = value + 1 if data[value] == 0x80 else 0
    elif initial == 115:  # snapshot
        if read_number(data, value, end, cython.address(record.snapshot)) < 0:
            return BAD_PRODUCER
        record.is_snapshot = True
    return FINE


def read_number(p, at, end, value):
    """Reads a whole number of any type from 0 to 2^63 - 1; returns where it ends, or -1."""
    code: cython.int
    if at >= end:
        return -1
    code = p[at]
    at += 1
    if code == 0x43 or code == 0x44:
        value[0] = 0
        return at
    if code == 0x50 or code == 0x52 or code == 0x53:
        value[0] = p[at]
        return at + 1
    if code == 0x51 or code == 0x54 or code == 0x55:
        value[0] = p[at]
        return at + 1 if p[at] < 0x80 else -1
    if code == 0x60 or code == 0x61:
        value[0] = (cython.cast(uint64_t, p[at]) << 8) | p[at + 1]
        return at + 2 if code == 0x60 or p[at] < 0x80 else -1
    if code == 0x70 or code == 0x71:
        value[0] = load_u32(p + at)
        return at + 4 if code == 0x70 or p[at] < 0x80 else -1
    if code == 0x80 or code == 0x81 or code == 0x83:
        value[0] = load_u64(p + at)
        return at + 8 if p[at] < 0x80 else -1
    return -1


def record_size(record):
    """Counts the bytes that a record takes."""
    size: int64_t = record.head_end + record.end - record.rest
    if record.kept:
        size += SECTION_SIZE + record.kept_size
    return size


def write_record(p, record):
    """Writes a record; returns where it ends."""
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
    """Writes the annotations that are kept; returns where they end."""
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
