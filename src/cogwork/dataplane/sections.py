"""Finds the sections and fields of an encoded message, in C, without decoding them.

Theory of operation. A message is a run of sections, each a described value (AMQP 1.0 §3.2). Walking
it needs only each value's width, which its format code tells. Every function works on a pointer and
a size, never passes the end, allocates nothing, raises nothing and needs no GIL; what it returns is
FOUND, ABSENT or MALFORMED. The finders stop as soon as they know: they work on the first frame of a
delivery of many, as long as what they look for lies in it whole.
"""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.codec import Octets, load_u32, load_u64
from cython.cimports.cogwork.dataplane.sections import (
    ABSENT,
    APPLICATION_PROPERTIES,
    BODY_RANK,
    COGWORK_SOURCE_HASH,
    DATA,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    FOOTER_RANK,
    FOUND,
    GROUP_ID_FIELD,
    HEADER,
    MALFORMED,
    MESSAGE_ANNOTATIONS,
    MESSAGE_ID_FIELD,
    PROPERTIES,
    PROPERTY_FIELDS,
    RANKS,
    SEQUENCE,
    SUBJECT_FIELD,
    TO_FIELD,
    VALUE,
    HeaderFields,
    Layout,
    Section,
    Span,
)
from cython.cimports.libc.stdint import uint32_t, uint64_t
from cython.cimports.libc.string import memcmp

__all__ = ("SOURCE_HASH", "inspect")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

DEFAULT_PRIORITY = cython.declare(cython.uchar, 4)
HEADER_FIELDS = cython.declare(cython.Py_ssize_t, 5)


# --- walking values ---


def skip_value(  # noqa: C901  # a branch for each width
    data: Octets, at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Returns where the value at `at` ends, or MALFORMED where that is not before `end`."""
    values: cython.Py_ssize_t = 1
    width: cython.uchar
    while values > 0:
        if at >= end:
            return MALFORMED
        width = data[at] >> 4
        at += 1
        if data[at - 1] == 0x00:
            values += 1  # a descriptor and a value in place of one value
            continue
        if width == 0x4:
            pass
        elif 0x5 <= width <= 0x9:
            at += cython.cast(cython.Py_ssize_t, 1) << (width - 5)
        elif width in (0xA, 0xC, 0xE):
            if end - at < 1:
                return MALFORMED
            at += 1 + data[at]
        elif width in (0xB, 0xD, 0xF):
            if end - at < 4:
                return MALFORMED
            at += 4 + cython.cast(cython.Py_ssize_t, load_u32(data + at))
        else:
            return MALFORMED
        if at > end:
            return MALFORMED
        values -= 1
    return at


def enter_list(
    data: Octets,
    at: cython.Py_ssize_t,
    end: cython.pointer(cython.Py_ssize_t),
    count: cython.pointer(cython.Py_ssize_t),
) -> cython.Py_ssize_t:
    """Returns where the first item of the list at `at` starts, its end and its count; or MALFORMED.

    `end` goes in as the end of what can be read.
    """
    size: cython.Py_ssize_t
    left: cython.Py_ssize_t = end[0] - at
    if left >= 1 and data[at] == 0x45:
        count[0] = 0
        end[0] = at + 1
        return at + 1
    if left >= 3 and data[at] == 0xC0:
        size = data[at + 1]
        if size < 1 or size > left - 2:
            return MALFORMED
        count[0] = data[at + 2]
        end[0] = at + 2 + size
        return at + 3
    if left >= 9 and data[at] == 0xD0:
        size = load_u32(data + at + 1)
        if size < 4 or size > left - 5:
            return MALFORMED
        count[0] = load_u32(data + at + 5)
        end[0] = at + 5 + size
        return at + 9
    return MALFORMED


def text_in(value: cython.pointer(Span)) -> cython.int:
    """Narrows an encoded string to its UTF-8."""
    code: cython.uchar = value.start[0]
    if code == 0x40:
        return ABSENT
    if code == 0xA1 and value.size >= 2:
        value.start += 2
        value.size -= 2
        return FOUND
    if code == 0xB1 and value.size >= 5:
        value.start += 5
        value.size -= 5
        return FOUND
    return MALFORMED


# --- walking sections ---


def rank_of(code: cython.int) -> cython.int:
    """Returns the place of a section in the order of §3.2."""
    if code < DATA:
        return code - HEADER
    return FOOTER_RANK if code == FOOTER else BODY_RANK


def next_section(
    data: Octets, size: cython.Py_ssize_t, at: cython.Py_ssize_t, section: cython.pointer(Section)
) -> cython.int:
    """Returns the descriptor of the section at `at`, and where it lies; or MALFORMED."""
    code: cython.int
    section.start = at
    if size - at < 3 or data[at] != 0x00:
        return MALFORMED
    section.value = skip_value(data, at + 1, size)
    if section.value == MALFORMED:
        return MALFORMED
    code = section_code(data + at + 1, section.value - at - 1)
    if code == MALFORMED:
        return MALFORMED
    section.end = skip_value(data, section.value, size)
    return MALFORMED if section.end == MALFORMED else code


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def section_code(descriptor: Octets, size: cython.Py_ssize_t) -> cython.int:
    """Returns the numeric descriptor of a section, given in any of its forms; or MALFORMED."""
    number: uint64_t
    if descriptor[0] == 0x53 and size == 2:
        number = descriptor[1]
    elif descriptor[0] == 0x80 and size == 9:
        number = load_u64(descriptor + 1)
    elif descriptor[0] == 0xA3 and size >= 2:
        return named_code(descriptor + 2, size - 2)
    elif descriptor[0] == 0xB3 and size >= 5:
        return named_code(descriptor + 5, size - 5)
    else:
        return MALFORMED
    return cython.cast(cython.int, number) if HEADER <= number <= FOOTER else MALFORMED


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.nogil
def spells(
    name: Octets, size: cython.Py_ssize_t, text: cython.p_const_char, length: cython.Py_ssize_t
) -> cython.bint:
    return size == length and memcmp(name, text, length) == 0


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def named_code(name: Octets, size: cython.Py_ssize_t) -> cython.int:  # noqa: PLR0911  # nine names
    """Returns the numeric descriptor for a symbolic one; or MALFORMED."""
    if spells(name, size, b"amqp:header:list", 16):
        return HEADER
    if spells(name, size, b"amqp:delivery-annotations:map", 29):
        return DELIVERY_ANNOTATIONS
    if spells(name, size, b"amqp:message-annotations:map", 28):
        return MESSAGE_ANNOTATIONS
    if spells(name, size, b"amqp:properties:list", 20):
        return PROPERTIES
    if spells(name, size, b"amqp:application-properties:map", 31):
        return APPLICATION_PROPERTIES
    if spells(name, size, b"amqp:data:binary", 16):
        return DATA
    if spells(name, size, b"amqp:amqp-sequence:list", 23):
        return SEQUENCE
    if spells(name, size, b"amqp:amqp-value:*", 17):
        return VALUE
    if spells(name, size, b"amqp:footer:map", 15):
        return FOOTER
    return MALFORMED


def locate(data: Octets, size: cython.Py_ssize_t, layout: cython.pointer(Layout)) -> cython.int:
    """Finds all sections of a whole message; absent ones start at -1. FOUND or MALFORMED."""
    section = cython.declare(Section)
    at: cython.Py_ssize_t = 0
    rank: cython.int
    last: cython.int = -1
    code: cython.int
    for rank in range(RANKS):
        layout.sections[rank].start = -1
    layout.body_code = 0
    layout.body_sections = 0
    while at < size:
        code = next_section(data, size, at, cython.address(section))
        if code == MALFORMED:
            return MALFORMED
        rank = rank_of(code)
        if rank == BODY_RANK and last == BODY_RANK and code == layout.body_code and code != VALUE:
            layout.sections[rank].end = section.end
        elif rank > last:
            layout.sections[rank] = section
        else:
            return MALFORMED
        if rank == BODY_RANK:
            layout.body_code = code
            layout.body_sections += 1
        last = rank
        at = section.end
    return FOUND


# --- finding fields ---


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def find_section(
    data: Octets, size: cython.Py_ssize_t, wanted: cython.int, section: cython.pointer(Section)
) -> cython.int:
    """Walks to the section with the rank `wanted`."""
    at: cython.Py_ssize_t = 0
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
def passed(
    data: Octets, size: cython.Py_ssize_t, at: cython.Py_ssize_t, wanted: cython.int
) -> cython.bint:
    """Whether what is cut off at `at` is a later section than the one wanted."""
    value: cython.Py_ssize_t
    code: cython.int = MALFORMED
    if size - at >= 3 and data[at] == 0x00:
        value = skip_value(data, at + 1, size)
        if value != MALFORMED:
            code = section_code(data + at + 1, value - at - 1)
    return code != MALFORMED and rank_of(code) > wanted


def find_property(
    data: Octets, size: cython.Py_ssize_t, field: cython.int, found: cython.pointer(Span)
) -> cython.int:
    """Finds the encoded value of a field of the properties section; null counts as absent."""
    section = cython.declare(Section)
    at: cython.Py_ssize_t
    end: cython.Py_ssize_t
    start: cython.Py_ssize_t
    count: cython.Py_ssize_t = 0
    result: cython.int = find_section(data, size, rank_of(PROPERTIES), cython.address(section))
    if result != FOUND:
        return result
    end = section.end
    at = enter_list(data, section.value, cython.address(end), cython.address(count))
    if at == MALFORMED or count > PROPERTY_FIELDS:
        return MALFORMED
    if field >= count:
        return ABSENT
    while field > 0:
        at = skip_value(data, at, end)
        if at == MALFORMED:
            return MALFORMED
        field -= 1
    start = at
    at = skip_value(data, at, end)
    if at == MALFORMED:
        return MALFORMED
    found.start = data + start
    found.size = at - start
    return ABSENT if data[start] == 0x40 else FOUND


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def find_text(
    data: Octets, size: cython.Py_ssize_t, field: cython.int, found: cython.pointer(Span)
) -> cython.int:
    result: cython.int = find_property(data, size, field, found)
    return text_in(found) if result == FOUND else result


def find_to(data: Octets, size: cython.Py_ssize_t, found: cython.pointer(Span)) -> cython.int:
    """Finds the UTF-8 of properties.to."""
    return find_text(data, size, TO_FIELD, found)


def find_subject(data: Octets, size: cython.Py_ssize_t, found: cython.pointer(Span)) -> cython.int:
    """Finds the UTF-8 of properties.subject."""
    return find_text(data, size, SUBJECT_FIELD, found)


def find_group_id(data: Octets, size: cython.Py_ssize_t, found: cython.pointer(Span)) -> cython.int:
    """Finds the UTF-8 of properties.group-id."""
    return find_text(data, size, GROUP_ID_FIELD, found)


def find_message_id(
    data: Octets, size: cython.Py_ssize_t, found: cython.pointer(Span)
) -> cython.int:
    """Finds properties.message-id as encoded: equal bytes are equal ids of one type and form."""
    return find_property(data, size, MESSAGE_ID_FIELD, found)


def find_body(data: Octets, size: cython.Py_ssize_t, found: cython.pointer(Span)) -> cython.int:
    """Finds the encoded value of the first body section."""
    section = cython.declare(Section)
    result: cython.int = find_section(data, size, BODY_RANK, cython.address(section))
    if result == FOUND:
        found.start = data + section.value
        found.size = section.end - section.value
    return result


def read_header(
    data: Octets, size: cython.Py_ssize_t, fields: cython.pointer(HeaderFields)
) -> cython.int:
    """Reads the header section; where it is absent, the fields are its defaults."""
    section = cython.declare(Section)
    at: cython.Py_ssize_t
    end: cython.Py_ssize_t
    count: cython.Py_ssize_t = 0
    number: uint32_t = 0
    result: cython.int
    fields.durable = fields.first_acquirer = fields.has_ttl = False
    fields.priority = DEFAULT_PRIORITY
    fields.ttl_ms = fields.delivery_count = 0
    fields.section_size = 0
    result = find_section(data, size, rank_of(HEADER), cython.address(section))
    if result != FOUND:
        return result
    fields.section_size = section.end
    end = section.end
    at = enter_list(data, section.value, cython.address(end), cython.address(count))
    if at == MALFORMED or count > HEADER_FIELDS:
        return MALFORMED
    if count > 0:
        at = read_flag(data, at, end, cython.address(fields.durable))
    if count > 1:
        number = DEFAULT_PRIORITY
        at = read_number(data, at, end, 0x50, cython.address(number), cython.NULL)
        fields.priority = cython.cast(cython.uchar, number)
    if count > 2:
        at = read_number(
            data, at, end, 0x70, cython.address(fields.ttl_ms), cython.address(fields.has_ttl)
        )
    if count > 3:
        at = read_flag(data, at, end, cython.address(fields.first_acquirer))
    if count > 4:
        at = read_number(data, at, end, 0x70, cython.address(fields.delivery_count), cython.NULL)
    return FOUND if at == end else MALFORMED


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def read_flag(
    data: Octets,
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    flag: cython.pointer(cython.bint),
) -> cython.Py_ssize_t:
    """Reads a boolean, or null; returns where it ends."""
    code: cython.uchar
    if at == MALFORMED or at >= end:
        return MALFORMED
    code = data[at]
    if code == 0x56 and end - at >= 2 and data[at + 1] <= 1:
        flag[0] = data[at + 1]
        return at + 2
    if code == 0x41:
        flag[0] = True
    elif code == 0x42:
        flag[0] = False
    elif code != 0x40:
        return MALFORMED
    return at + 1


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def read_number(  # noqa: PLR0917  # C has no keywords
    data: Octets,
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    code: cython.uchar,
    number: cython.pointer(uint32_t),
    present: cython.pointer(cython.bint),
) -> cython.Py_ssize_t:
    """Reads an ubyte (`code` 0x50) or uint (`code` 0x70), or null; returns where it ends."""
    is_uint: cython.bint = code == 0x70
    if at == MALFORMED or at >= end:
        return MALFORMED
    if data[at] == 0x40:
        return at + 1
    if present != cython.NULL:
        present[0] = True
    if is_uint and data[at] == 0x43:
        number[0] = 0
        return at + 1
    if data[at] == (0x52 if is_uint else 0x50) and end - at >= 2:
        number[0] = data[at + 1]
        return at + 2
    if is_uint and data[at] == 0x70 and end - at >= 5:
        number[0] = load_u32(data + at + 1)
        return at + 5
    return MALFORMED


# --- for tests and tools ---


def inspect(data: bytes) -> dict[str, object]:
    """Returns what each finder says of an encoded message.

    Returns:
        For each finder's name the bytes found, None where they are absent, or False where the
        message is malformed; `header` has durable, priority, ttl in ms, first-acquirer,
        delivery-count and the section's size; `sections` is whether all sections were located.
    """
    layout = cython.declare(Layout)
    fields = cython.declare(HeaderFields)
    found = cython.declare(Span)
    size: cython.Py_ssize_t = len(data)
    octets: Octets = data
    header: object = False
    if read_header(octets, size, cython.address(fields)) != MALFORMED:
        ttl_ms = fields.ttl_ms if fields.has_ttl else None
        header = (
            fields.durable,
            fields.priority,
            ttl_ms,
            fields.first_acquirer,
            fields.delivery_count,
            fields.section_size,
        )
    return {
        "sections": locate(octets, size, cython.address(layout)) == FOUND,
        "header": header,
        "to": shown(find_to(octets, size, cython.address(found)), cython.address(found)),
        "subject": shown(find_subject(octets, size, cython.address(found)), cython.address(found)),
        "group_id": shown(
            find_group_id(octets, size, cython.address(found)), cython.address(found)
        ),
        "message_id": shown(
            find_message_id(octets, size, cython.address(found)), cython.address(found)
        ),
        "body": shown(find_body(octets, size, cython.address(found)), cython.address(found)),
    }


@cython.cfunc
def shown(result: cython.int, found: cython.pointer(Span)) -> object:
    if result == FOUND:
        return found.start[: found.size]
    return None if result == ABSENT else False
