"""Writes the sections of a message from what the application says in them (AMQP 1.0 §3.2).

What has no plain type is left to the reference, `cogwork.amqp.message`: it converts it, or refuses.
"""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.encoding.encoder import put_symbol, put_text, put_value
from cython.cimports.cogwork.dataplane.encoding.writer import (
    Writer,
    begin_compound,
    end_compound,
    grow,
    put_byte,
    put_descriptor,
)
from cython.cimports.cogwork.dataplane.message.header import HEADER_SIZE_MAX, Header, write_header
from cython.cimports.cogwork.dataplane.message.section_writer import data_head_size, put_data_head
from cython.cimports.cogwork.dataplane.message.sections import (
    APPLICATION_PROPERTIES,
    CONTENT_ENCODING_FIELD,
    CONTENT_TYPE_FIELD,
    DATA,
    PROPERTIES,
    PROPERTY_FIELDS,
    SEQUENCE,
)
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.cpython.bytes import (
    PyBytes_AS_STRING,
    PyBytes_FromStringAndSize,
    PyBytes_GET_SIZE,
)
from cython.cimports.libc.stdint import uint8_t, uint32_t
from cython.cimports.libc.string import memcpy

from cogwork.amqp.errors import EncodeError
from cogwork.amqp.message import Properties
from cogwork.amqp.types import Symbol, ULong

__all__ = ("SOURCE_HASH",)

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

FIELD_NAMES = tuple(row.attribute for row in Properties.TABLE)
PLAIN_TYPES = [
    row.kind.wire_types | {str} if row.kind.wire_types == {Symbol} else row.kind.wire_types
    for row in Properties.TABLE
]
"""What is encoded without further ado."""


def put_header(out: cython.pointer(Writer), header: cython.pointer(Header)) -> cython.int:
    """Write the header, unless all of it is default."""
    grow(out, HEADER_SIZE_MAX)
    out.size += write_header(out.data + out.size, header)
    return 0


def put_fields(out: cython.pointer(Writer), fields: list | None) -> cython.int:
    """Write the properties section, if any field is set; trailing nulls are left out."""
    index: cython.Py_ssize_t
    start: cython.Py_ssize_t
    section: cython.Py_ssize_t = out.size
    count: cython.Py_ssize_t = PROPERTY_FIELDS
    if fields is None:
        return 0
    while count > 0 and fields[count - 1] is None:
        count -= 1
    if count == 0:
        return 0
    put_descriptor(out, PROPERTIES)
    start = begin_compound(out)
    for index in range(count):
        if not put_field(out, index, fields[index]):
            out.size = section
            return put_value(
                out, Properties(**dict(zip(FIELD_NAMES, fields, strict=True))).to_described(), 0
            )
    return end_compound(out, start, 0xC0, count)


@cython.cfunc
@cython.exceptval(-1)
def put_field(out: cython.pointer(Writer), index: cython.Py_ssize_t, value: object) -> cython.int:
    """Write a field of the plainest type; return whether it was of that type."""
    kind = type(value)
    if value is None:
        put_byte(out, 0x40)
    elif kind not in PLAIN_TYPES[index]:
        return 0
    elif index in (CONTENT_TYPE_FIELD, CONTENT_ENCODING_FIELD):
        put_symbol(out, value)
    else:
        put_value(out, value, 2)
    return 1


def put_body(out: cython.pointer(Writer), code: cython.uchar, body: object) -> cython.int:
    """Write all body sections."""
    if code == 0:
        return 0
    if code == SEQUENCE or (code == DATA and type(body) is list):
        for part in cython.cast(list, body):
            put_descriptor(out, code)
            put_value(out, part, 1)
        return 0
    put_descriptor(out, code)
    return put_value(out, body, 1)


def put_properties(out: cython.pointer(Writer), entries: dict | None) -> cython.int:
    """Write the application-properties, if there are any."""
    start: cython.Py_ssize_t
    if not entries:
        return 0
    put_descriptor(out, APPLICATION_PROPERTIES)
    start = begin_compound(out)
    for key, value in entries.items():
        if not isinstance(key, str):
            raise EncodeError(f"an application-property's key is a str, not {key!r:.80}")
        put_text(out, key)
        put_value(out, value, 2)
    return end_compound(out, start, 0xC1, 2 * len(entries))


def put_annotations(
    out: cython.pointer(Writer), code: cython.uchar, entries: dict | None
) -> cython.int:
    """Write annotations or the footer, if there are any."""
    start: cython.Py_ssize_t
    if not entries:
        return 0
    put_descriptor(out, code)
    start = begin_compound(out)
    for key, value in entries.items():
        if isinstance(key, str):
            put_symbol(out, key)
        elif isinstance(key, int) and not isinstance(key, bool):
            put_value(out, ULong(key), 2)
        else:
            raise EncodeError(f"an annotation's key is a symbol, not {key!r:.80}")
        put_value(out, value, 2)
    return end_compound(out, start, 0xC1, 2 * len(entries))


def data_section(body: bytes) -> bytes:
    """Return a message that is nothing but `body` in a data section."""
    size: uint32_t = cython.cast(uint32_t, PyBytes_GET_SIZE(body))
    message: bytes = PyBytes_FromStringAndSize(cython.NULL, data_head_size(size) + size)
    at: cython.pointer(uint8_t) = cython.cast(cython.pointer(uint8_t), PyBytes_AS_STRING(message))
    memcpy(put_data_head(at, size), PyBytes_AS_STRING(body), size)
    return message
