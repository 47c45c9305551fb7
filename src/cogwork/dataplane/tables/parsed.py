"""Where in a record its fields, pairs and body lie, and whether all of it is as it should be.

Theory of operation. A record is looked at as a whole before anything of it is used: so it is either
read as a message, or taken as octets that are none. Nothing here allocates, raises or needs the GIL.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import octets
from cython.cimports.cogwork.dataplane.encoding.values import (
    list_header,
    map_header,
    read_binary,
    skip_short,
)
from cython.cimports.cogwork.dataplane.message.sections import (
    APPLICATION_PROPERTIES_RANK,
    BODY_RANK,
    DATA,
    DELIVERY_ANNOTATIONS_RANK,
    FOUND,
    HEADER_RANK,
    MALFORMED,
    MESSAGE_ANNOTATIONS_RANK,
    PROPERTIES_RANK,
    PROPERTY_FIELDS,
    Section,
    locate,
    next_section,
)

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


def parse(p, size, parsed):
    """Find what a record holds; `is_whole` says whether all of it is as it should be."""
    field: cython.int
    for field in range(FIELDS):
        parsed.start[field] = -1
    parsed.pairs = -1
    parsed.pairs_end = 0
    parsed.is_whole = False
    if locate(p, size, cython.address(parsed.layout)) != FOUND:
        parsed.layout.sections[HEADER_RANK].start = -1
        parsed.layout.sections[DELIVERY_ANNOTATIONS_RANK].start = -1
        parsed.layout.sections[MESSAGE_ANNOTATIONS_RANK].start = -1
        return 0
    parsed.is_whole = parse_fields(p, parsed) and parse_pairs(p, parsed) and parse_body(p, parsed)
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def parse_fields(p: octets, parsed: cython.pointer(Parsed)) -> cython.bint:
    section: cython.pointer(Section) = cython.address(parsed.layout.sections[PROPERTIES_RANK])
    count: uint32_t = 0
    end: int64_t = 0
    following: int64_t
    at: int64_t
    field: uint32_t
    if section.start < 0 or p[section.value] == 0x40:
        return True
    at = list_header(p, section.value, section.end, cython.address(count), cython.address(end))
    if at < 0 or count > PROPERTY_FIELDS:
        return False
    for field in range(count):
        following = skip_short(p, at, end)
        if following < 0:
            return False
        if field < FIELDS:
            parsed.start[field] = at
            parsed.end[field] = following
        at = following
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def parse_pairs(p: octets, parsed: cython.pointer(Parsed)) -> cython.bint:
    section: cython.pointer(Section) = cython.address(
        parsed.layout.sections[APPLICATION_PROPERTIES_RANK]
    )
    at: int64_t
    if section.start < 0 or p[section.value] == 0x40:
        return True
    at = map_header(p, section.value, section.end, cython.address(parsed.pairs_end))
    if at < 0:
        return False
    parsed.pairs = at
    while at < parsed.pairs_end:
        at = skip_short(p, at, parsed.pairs_end)
        if at < 0:
            return False
        at = skip_short(p, at, parsed.pairs_end)
        if at < 0:
            return False
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def parse_body(p: octets, parsed: cython.pointer(Parsed)) -> cython.bint:
    """See that the data sections hold binaries."""
    section = cython.declare(Section)
    data: octets = cython.NULL
    size: uint32_t = 0
    end: int64_t = parsed.layout.sections[BODY_RANK].end
    at: int64_t = parsed.layout.sections[BODY_RANK].start
    if at < 0 or parsed.layout.body_code != DATA:
        return True
    if parsed.layout.body_sections == 1:
        at = parsed.layout.sections[BODY_RANK].value
        return read_binary(p, at, end, cython.address(data), cython.address(size)) == end
    while at < end:
        if next_section(p, end, at, cython.address(section)) == MALFORMED:
            return False
        if (
            read_binary(p, section.value, section.end, cython.address(data), cython.address(size))
            != section.end
        ):
            return False
        at = section.end
    return True


def size_without_annotations(size, parsed):
    """Count what a record holds besides annotations, which differ by how it came."""
    section: cython.pointer(cython.const[Section])
    section = cython.address(parsed.layout.sections[DELIVERY_ANNOTATIONS_RANK])
    if section.start >= 0:
        size -= section.end - section.start
    section = cython.address(parsed.layout.sections[MESSAGE_ANNOTATIONS_RANK])
    if section.start >= 0:
        size -= section.end - section.start
    return size
