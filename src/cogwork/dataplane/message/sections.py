"""Finds the sections and fields of an encoded message, in C, without decoding them.

Theory of operation. A message is a run of sections, each a described value (AMQP 1.0 §3.2). Walking
it needs only each value's width, which its format code tells. Every function works on a pointer and
a size, never passes the end, allocates nothing, raises nothing and needs no GIL; what it returns is
FOUND, ABSENT or MALFORMED. The finders stop as soon as they know: they work on the first frame of a
delivery of many, as long as what they look for lies in it whole.
"""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from, octets, octets_of
from cython.cimports.cogwork.dataplane.encoding.values import (
    descriptor_code,
    list_header,
    read_string,
    skip_short,
    skip_value,
)
from cython.cimports.cogwork.dataplane.message.header import Header, clear_header, read_header
from cython.cimports.cogwork.dataplane.message.sections import (
    ABSENT,
    BODY_RANK,
    DATA,
    FOOTER,
    FOOTER_RANK,
    FOUND,
    GROUP_ID_FIELD,
    HEADER,
    HEADER_RANK,
    MALFORMED,
    PROPERTIES_RANK,
    PROPERTY_FIELDS,
    RANKS,
    SUBJECT_FIELD,
    TO_FIELD,
    VALUE,
    Layout,
    Section,
)
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.libc.stdint import int64_t, uint32_t

__all__ = ("SOURCE_HASH", "inspect")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


# --- walking sections ---


def rank_of(code: cython.int) -> cython.int:
    """Return the place of a section in the order of §3.2."""
    if code < DATA:
        return code - HEADER
    return FOOTER_RANK if code == FOOTER else BODY_RANK


def next_section(
    data: octets, size: int64_t, at: int64_t, section: cython.pointer(Section)
) -> cython.int:
    """Return the descriptor of the section at `at`, and where it lies; or MALFORMED."""
    code: cython.int = section_code(data, size, at, cython.address(section.value))
    section.start = at
    if code == MALFORMED:
        return MALFORMED
    section.end = skip_value(data, section.value, size)
    return MALFORMED if section.end < 0 else code


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def section_code(
    data: octets, size: int64_t, at: int64_t, value: cython.pointer(int64_t)
) -> cython.int:
    """Return a section's descriptor, given in any of its forms, as a number; or MALFORMED.

    `value` becomes where the section's value starts.
    """
    body: int64_t = 0
    code: cython.int = descriptor_code(data + at, size - at, cython.address(body))
    value[0] = at + body
    return code if HEADER <= code <= FOOTER else MALFORMED


def locate(data: octets, size: int64_t, layout: cython.pointer(Layout)) -> cython.int:
    """Find all sections of a whole message; absent ones start at -1. FOUND or MALFORMED.

    A section's places go one by one from registers into the layout: to copy them there as one
    struct, straight after they were written, stalls the processor for longer than all else takes.
    """
    at: int64_t = 0
    value: int64_t = 0
    end: int64_t
    rank: cython.int
    last: cython.int = -1
    code: cython.int
    for rank in range(RANKS):
        layout.sections[rank].start = -1
    layout.body_code = 0
    layout.body_sections = 0
    while at < size:
        code = section_code(data, size, at, cython.address(value))
        if code == MALFORMED:
            return MALFORMED
        end = skip_short(data, value, size)
        if end < 0:
            return MALFORMED
        rank = rank_of(code)
        if rank == BODY_RANK and last == BODY_RANK and code == layout.body_code and code != VALUE:
            layout.sections[rank].end = end
        elif rank > last:
            layout.sections[rank].start = at
            layout.sections[rank].value = value
            layout.sections[rank].end = end
        else:
            return MALFORMED
        if rank == BODY_RANK:
            layout.body_code = code
            layout.body_sections += 1
        last = rank
        at = end
    return FOUND


# --- finding fields ---


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def find_section(
    data: octets, size: int64_t, wanted: cython.int, section: cython.pointer(Section)
) -> cython.int:
    """Walk to the section with the rank `wanted`."""
    at: int64_t = 0
    rank: cython.int
    last: cython.int = -1
    code: cython.int
    while at < size:
        code = next_section(data, size, at, section)
        if code == MALFORMED:
            return ABSENT if passed(data, size, at, wanted) else MALFORMED
        rank = rank_of(code)
        if rank >= wanted:
            return FOUND if rank == wanted else ABSENT
        if rank <= last:
            return MALFORMED
        last = rank
        at = section.end
    return ABSENT


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def passed(data: octets, size: int64_t, at: int64_t, wanted: cython.int) -> cython.bint:
    """Whether what is cut off at `at` is a later section than the one wanted."""
    value: int64_t = 0
    code: cython.int = section_code(data, size, at, cython.address(value))
    return code != MALFORMED and rank_of(code) > wanted


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def find_property(  # C has no keywords
    data: octets,
    size: int64_t,
    field: cython.int,
    value: cython.pointer(octets),
    value_size: cython.pointer(uint32_t),
) -> cython.int:
    """Find the UTF-8 of a field of the properties section that is a string."""
    section = cython.declare(Section)
    at: int64_t
    list_end: int64_t = 0
    count: uint32_t = 0
    result: cython.int = find_section(data, size, PROPERTIES_RANK, cython.address(section))
    if result != FOUND:
        return result
    at = list_header(
        data, section.value, section.end, cython.address(count), cython.address(list_end)
    )
    if at < 0 or count > PROPERTY_FIELDS:
        return MALFORMED
    if cython.cast(uint32_t, field) >= count:
        return ABSENT
    while field > 0:
        at = skip_value(data, at, list_end)
        if at < 0:
            return MALFORMED
        field -= 1
    return read_string(data, at, list_end, value, value_size)


def find_to(
    data: octets, size: int64_t, value: cython.pointer(octets), value_size: cython.pointer(uint32_t)
) -> cython.int:
    """Find the UTF-8 of properties.to."""
    return find_property(data, size, TO_FIELD, value, value_size)


def find_header(data: octets, size: int64_t, header: cython.pointer(Header)) -> cython.int:
    """Read the header section; where it is absent, the fields are its defaults."""
    section = cython.declare(Section)
    result: cython.int
    clear_header(header)
    result = find_section(data, size, HEADER_RANK, cython.address(section))
    if result != FOUND:
        return result
    header.size_bytes = cython.cast(uint32_t, section.end)
    if read_header(data, section.value, section.end, header) != section.end:
        return MALFORMED
    return FOUND


# --- for tests and tools ---


def inspect(data: bytes) -> dict[str, object]:
    """Return what each finder says of an encoded message.

    Returns:
        For each finder's name the bytes found, None where they are absent, or False where the
        message is malformed; `header` has durable, priority, ttl in ms, first-acquirer,
        delivery-count and the section's size; `sections` is whether all sections were located.
    """
    layout = cython.declare(Layout)
    fields = cython.declare(Header)
    size: int64_t = len(data)
    header: object = False
    if find_header(octets_of(data), size, cython.address(fields)) != MALFORMED:
        header = (
            bool(fields.durable),
            fields.priority,
            fields.ttl_ms if fields.has_ttl else None,
            bool(fields.first_acquirer),
            fields.delivery_count,
            fields.size_bytes,
        )
    return {
        "sections": locate(octets_of(data), size, cython.address(layout)) == FOUND,
        "header": header,
        "to": shown(data, TO_FIELD),
        "subject": shown(data, SUBJECT_FIELD),
        "group_id": shown(data, GROUP_ID_FIELD),
    }


@cython.cfunc
def shown(data: bytes, field: cython.int) -> object:
    found: octets = cython.NULL
    found_size: uint32_t = 0
    result: cython.int = find_property(
        octets_of(data), len(data), field, cython.address(found), cython.address(found_size)
    )
    if result == FOUND:
        return bytes_from(found, found_size)
    return None if result == ABSENT else False
