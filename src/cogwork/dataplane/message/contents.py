"""What a message holds: its sections, each decoded when it is first opened, and written.

Theory of operation. A message that was received keeps its bytes and knows where the sections lie in
them; whoever looks at the body pays for the body only. Writing copies the sections that were never
opened. The reference, `cogwork.amqp.message`, words the errors: bytes that cannot be decoded are
given to it, and it raises.

`Message`, in `cogwork.dataplane.message.messages`, has the attributes, and calls what is here.
"""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.encoding.decoder import Reader, read_value
from cython.cimports.cogwork.dataplane.encoding.octets import octets, octets_of
from cython.cimports.cogwork.dataplane.encoding.writer import Writer, put_bytes
from cython.cimports.cogwork.dataplane.message.messages import Message  # noqa: TC002  # compiled
from cython.cimports.cogwork.dataplane.message.section_writer import (
    put_annotations,
    put_body,
    put_fields,
    put_header,
    put_properties,
)
from cython.cimports.cogwork.dataplane.message.sections import (
    APPLICATION_PROPERTIES_RANK,
    BODY_RANK,
    DATA,
    DELIVERY_ANNOTATIONS,
    DELIVERY_ANNOTATIONS_RANK,
    FOOTER,
    HEADER_RANK,
    MALFORMED,
    MESSAGE_ANNOTATIONS,
    MESSAGE_ANNOTATIONS_RANK,
    PROPERTIES_RANK,
    PROPERTY_FIELDS,
    RANKS,
    SEQUENCE,
    VALUE,
    Section,
    find_header,
    locate,
    next_section,
)
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_GET_SIZE

from cogwork.amqp.errors import DecodeError
from cogwork.amqp.message import Properties, decode_sections
from cogwork.amqp.types import ULong
from cogwork.dataplane.encoding.decoder import Malformed

__all__ = ("SOURCE_HASH",)

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

WORDED_SIZE_MAX = cython.declare(cython.Py_ssize_t, 64 * 1024)

FIELD_TYPES = [row.kind.wire_types for row in Properties.TABLE]


def fill(message: Message, raw: bytes) -> cython.int:
    """Let new contents be what `raw` says."""
    rank: cython.int
    message._raw = raw
    if locate(octets_of(raw), PyBytes_GET_SIZE(raw), cython.address(message._layout)) == MALFORMED:
        refuse(message)
    for rank in range(RANKS):
        if message._layout.sections[rank].start >= 0:
            message._pending |= 1 << rank
    message._body_code = message._layout.body_code
    message._is_intact = True
    return 0


def load_section(message: Message, rank: cython.int) -> cython.int:
    """Decode a section."""
    try:
        if rank == BODY_RANK:
            load_body(message)
        elif rank == HEADER_RANK:
            load_header(message)
        elif rank == PROPERTIES_RANK:
            load_fields(message, section_value(message, rank))
        elif rank == APPLICATION_PROPERTIES_RANK:
            message._properties = checked_keys(section_value(message, rank), False)
        elif rank == MESSAGE_ANNOTATIONS_RANK:
            message._annotations = checked_keys(section_value(message, rank), True)
        elif rank == DELIVERY_ANNOTATIONS_RANK:
            message._delivery_annotations = checked_keys(section_value(message, rank), True)
        else:
            message._footer = checked_keys(section_value(message, rank), True)
    except (Malformed, UnicodeDecodeError, TypeError):
        refuse(message)
    return 0


@cython.cfunc
@cython.exceptval(-1)
def load_header(message: Message) -> cython.int:
    """Decode the header."""
    size: cython.Py_ssize_t = PyBytes_GET_SIZE(message._raw)
    if find_header(octets_of(message._raw), size, cython.address(message._header)) == MALFORMED:
        raise Malformed
    return 0


@cython.cfunc
@cython.exceptval(-1)
def load_fields(message: Message, values: list) -> cython.int:
    """Take over the list of the properties section."""
    index: cython.Py_ssize_t
    if values is None or len(values) > PROPERTY_FIELDS:
        raise Malformed
    for index in range(len(values)):
        value = values[index]
        if value is not None and type(value) not in FIELD_TYPES[index]:
            raise Malformed
    values.extend([None] * (PROPERTY_FIELDS - len(values)))
    message._fields = values
    return 0


@cython.cfunc
@cython.exceptval(-1)
def load_body(message: Message) -> cython.int:
    """Decode all body sections."""
    section = cython.declare(Section)
    parts: list
    wanted: object = bytes if message._body_code == DATA else list
    data: octets = octets_of(message._raw)
    if message._layout.body_sections == 1:
        value = section_value(message, BODY_RANK)
        if message._body_code != VALUE and type(value) is not wanted:
            raise Malformed
        message._body = [value] if message._body_code == SEQUENCE else value
        return 0
    parts = []
    section.end = message._layout.sections[BODY_RANK].start
    while section.end < message._layout.sections[BODY_RANK].end:
        next_section(data, PyBytes_GET_SIZE(message._raw), section.end, cython.address(section))
        value = value_in(message._raw, section.value, section.end)
        if type(value) is not wanted:
            raise Malformed
        parts.append(value)
    message._body = parts
    return 0


@cython.cfunc
def section_value(message: Message, rank: cython.int) -> object:
    """Decode the value of a section."""
    return value_in(
        message._raw, message._layout.sections[rank].value, message._layout.sections[rank].end
    )


@cython.cfunc
@cython.exceptval(-1)
def refuse(message: Message) -> cython.int:
    """Have the reference say what is wrong with the bytes; of so many it would take too long."""
    if PyBytes_GET_SIZE(message._raw) > WORDED_SIZE_MAX:
        raise DecodeError("the bytes are no message, or there is none in one of its sections", 0)
    decode_sections(message._raw)
    raise DecodeError("the decoders disagree", 0)


def write_sections(message: Message, out: cython.pointer(Writer)) -> cython.int:
    """Write all sections: those never opened as they came."""
    rank: cython.int
    start: cython.Py_ssize_t
    for rank in range(RANKS):
        if message._pending & (1 << rank):
            start = message._layout.sections[rank].start
            put_bytes(
                out,
                PyBytes_AS_STRING(message._raw) + start,
                message._layout.sections[rank].end - start,
            )
        else:
            write_rank(message, out, rank)
    return 0


@cython.cfunc
@cython.exceptval(-1)
def write_rank(  # noqa: PLR0911  # a return for each rank
    message: Message, out: cython.pointer(Writer), rank: cython.int
) -> cython.int:
    """Write one section."""
    if rank == HEADER_RANK:
        return put_header(out, cython.address(message._header))
    if rank == DELIVERY_ANNOTATIONS_RANK:
        return put_annotations(out, DELIVERY_ANNOTATIONS, message._delivery_annotations)
    if rank == MESSAGE_ANNOTATIONS_RANK:
        return put_annotations(out, MESSAGE_ANNOTATIONS, message._annotations)
    if rank == PROPERTIES_RANK:
        return put_fields(out, message._fields)
    if rank == APPLICATION_PROPERTIES_RANK:
        return put_properties(out, message._properties)
    if rank == BODY_RANK:
        return put_body(out, message._body_code, message._body)
    return put_annotations(out, FOOTER, message._footer)


@cython.cfunc
def value_in(raw: bytes, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> object:
    """Decode the value that lies between `at` and `end`, which `locate` found."""
    source = cython.declare(Reader)
    source.data = octets_of(raw)
    source.at = at
    source.end = end
    return read_value(cython.address(source), 1)


@cython.cfunc
def checked_keys(value: object, are_annotations: cython.bint) -> dict:
    """Return a section's map if its keys are what the section takes."""
    if type(value) is not dict:
        raise Malformed
    for key in cython.cast(dict, value):
        if not isinstance(key, str) and not (are_annotations and type(key) is ULong):
            raise Malformed
    return value
