"""What a message holds: its sections, each decoded when it is first opened.

Theory of operation. Contents that were read keep their bytes and know where the sections lie in
them; whoever looks at the body pays for the body only. Writing copies the sections that were never
opened. The reference, `cogwork.amqp.message`, words the errors: bytes that cannot be decoded are
given to it, and it raises.
"""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.decoder import Reader, read_value
from cython.cimports.cogwork.dataplane.header import clear_header
from cython.cimports.cogwork.dataplane.octets import octets, octets_of
from cython.cimports.cogwork.dataplane.section_writer import (
    put_annotations,
    put_body,
    put_fields,
    put_header,
    put_properties,
)
from cython.cimports.cogwork.dataplane.sections import (
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
from cython.cimports.cogwork.dataplane.writer import Writer, put_bytes
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_GET_SIZE
from cython.cimports.libc.stdint import uint32_t

from cogwork.amqp.errors import DecodeError, EncodeError
from cogwork.amqp.message import Properties, decode_sections
from cogwork.amqp.types import ULong
from cogwork.dataplane.decoder import Malformed

__all__ = ("SOURCE_HASH", "Contents")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

UINT_MAX = cython.declare(cython.longlong, 0xFFFFFFFF)
MS_PER_S = cython.declare(cython.double, 1000.0)

FIELD_TYPES = [row.kind.wire_types for row in Properties.TABLE]


class Contents:
    """The sections of a message; `cogwork.dataplane.messages` has their attributes."""

    def __cinit__(self) -> None:
        clear_header(cython.address(self._header))

    def fill(self, raw: bytes) -> cython.int:
        """Lets new contents be what `raw` says."""
        rank: cython.int
        self._raw = raw
        if locate(octets_of(raw), PyBytes_GET_SIZE(raw), cython.address(self._layout)) == MALFORMED:
            self.refuse()
        for rank in range(RANKS):
            if self._layout.sections[rank].start >= 0:
                self._pending |= 1 << rank
        self._body_code = self._layout.body_code
        self._is_intact = True
        return 0

    # --- holding ---

    def field(self, index: cython.int) -> object:
        """Returns a field of the properties section."""
        self.open_section(PROPERTIES_RANK)
        return None if self._fields is None else self._fields[index]

    def set_field(self, index: cython.int, value: object) -> cython.int:
        """Sets a field of the properties section."""
        self.open_section(PROPERTIES_RANK)
        if self._fields is None:
            self._fields = [None] * PROPERTY_FIELDS
        self._fields[index] = value
        return 0

    def set_body(self, body: object) -> cython.int:
        """Holds bytes as data, anything else as value."""
        if type(body) is bytes:
            self._body_code = DATA
            self._body = body
        elif isinstance(body, (bytes, bytearray, memoryview)):
            self._body_code = DATA
            self._body = bytes(body)
        else:
            self._body_code = VALUE
            self._body = body
        return 0

    def set_ttl(self, ttl_s: object) -> cython.int:
        """Holds a time to live in the header's unit."""
        ttl_ms: cython.double
        self._header.has_ttl = ttl_s is not None
        self._header.ttl_ms = 0
        if ttl_s is not None:
            ttl_ms = float(ttl_s) * MS_PER_S
            if not 0 <= ttl_ms <= UINT_MAX:
                limit = UINT_MAX / MS_PER_S
                raise EncodeError(f"ttl_s: 0 to {limit} is expected, not {ttl_s!r:.80}")
            self._header.ttl_ms = cython.cast(uint32_t, ttl_ms + 0.5)
        return 0

    # --- reading ---

    def open_section(self, rank: cython.int) -> cython.int:
        """Decodes a section, if that is still to be done; it may be changed from now on."""
        self._is_intact = False
        if self._pending & (1 << rank):
            self.load(rank)
            self._pending &= ~(1 << rank)
        return 0

    def load(self, rank: cython.int) -> cython.int:
        """Decodes a section."""
        try:
            if rank == BODY_RANK:
                self.load_body()
            elif rank == HEADER_RANK:
                self.load_header()
            elif rank == PROPERTIES_RANK:
                self.load_fields(self.section_value(rank))
            elif rank == APPLICATION_PROPERTIES_RANK:
                self._properties = checked_keys(self.section_value(rank), False)
            elif rank == MESSAGE_ANNOTATIONS_RANK:
                self._annotations = checked_keys(self.section_value(rank), True)
            elif rank == DELIVERY_ANNOTATIONS_RANK:
                self._delivery_annotations = checked_keys(self.section_value(rank), True)
            else:
                self._footer = checked_keys(self.section_value(rank), True)
        except (Malformed, UnicodeDecodeError, TypeError):
            self.refuse()
        return 0

    def load_header(self) -> cython.int:
        """Decodes the header."""
        size: cython.Py_ssize_t = PyBytes_GET_SIZE(self._raw)
        if find_header(octets_of(self._raw), size, cython.address(self._header)) == MALFORMED:
            raise Malformed
        return 0

    def load_fields(self, values: list) -> cython.int:
        """Takes over the list of the properties section."""
        index: cython.Py_ssize_t
        if values is None or len(values) > PROPERTY_FIELDS:
            raise Malformed
        for index in range(len(values)):
            value = values[index]
            if value is not None and type(value) not in FIELD_TYPES[index]:
                raise Malformed
        values.extend([None] * (PROPERTY_FIELDS - len(values)))
        self._fields = values
        return 0

    def load_body(self) -> cython.int:
        """Decodes all body sections."""
        section = cython.declare(Section)
        parts: list
        wanted: object = bytes if self._body_code == DATA else list
        data: octets = octets_of(self._raw)
        if self._layout.body_sections == 1:
            value = self.section_value(BODY_RANK)
            if self._body_code != VALUE and type(value) is not wanted:
                raise Malformed
            self._body = [value] if self._body_code == SEQUENCE else value
            return 0
        parts = []
        section.end = self._layout.sections[BODY_RANK].start
        while section.end < self._layout.sections[BODY_RANK].end:
            next_section(data, PyBytes_GET_SIZE(self._raw), section.end, cython.address(section))
            value = value_in(self._raw, section.value, section.end)
            if type(value) is not wanted:
                raise Malformed
            parts.append(value)
        self._body = parts
        return 0

    def section_value(self, rank: cython.int) -> object:
        """Decodes the value of a section."""
        return value_in(
            self._raw, self._layout.sections[rank].value, self._layout.sections[rank].end
        )

    def refuse(self) -> cython.int:
        """Has the reference say what is wrong with the bytes."""
        decode_sections(self._raw)
        raise DecodeError("the decoders disagree", 0)

    # --- writing ---

    def write(self, out: cython.pointer(Writer)) -> cython.int:
        """Writes all sections: those never opened as they came."""
        rank: cython.int
        start: cython.Py_ssize_t
        for rank in range(RANKS):
            if self._pending & (1 << rank):
                start = self._layout.sections[rank].start
                put_bytes(
                    out,
                    PyBytes_AS_STRING(self._raw) + start,
                    self._layout.sections[rank].end - start,
                )
            else:
                self.write_rank(out, rank)
        return 0

    def write_rank(  # noqa: PLR0911  # a return for each rank
        self, out: cython.pointer(Writer), rank: cython.int
    ) -> cython.int:
        """Writes one section."""
        if rank == HEADER_RANK:
            return put_header(out, cython.address(self._header))
        if rank == DELIVERY_ANNOTATIONS_RANK:
            return put_annotations(out, DELIVERY_ANNOTATIONS, self._delivery_annotations)
        if rank == MESSAGE_ANNOTATIONS_RANK:
            return put_annotations(out, MESSAGE_ANNOTATIONS, self._annotations)
        if rank == PROPERTIES_RANK:
            return put_fields(out, self._fields)
        if rank == APPLICATION_PROPERTIES_RANK:
            return put_properties(out, self._properties)
        if rank == BODY_RANK:
            return put_body(out, self._body_code, self._body)
        return put_annotations(out, FOOTER, self._footer)


@cython.cfunc
def value_in(raw: bytes, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> object:
    """Decodes the value that lies between `at` and `end`, which `locate` found."""
    source = cython.declare(Reader)
    source.data = octets_of(raw)
    source.at = at
    source.end = end
    return read_value(cython.address(source), 1)


@cython.cfunc
def checked_keys(value: object, are_annotations: cython.bint) -> dict:
    """Returns a section's map if its keys are what the section takes."""
    if type(value) is not dict:
        raise Malformed
    for key in cython.cast(dict, value):
        if not isinstance(key, str) and not (are_annotations and type(key) is ULong):
            raise Malformed
    return value
