"""Rows of a table, encoded as messages without an object for each of their fields.

Theory of operation. An encoder is told where the columns of one batch lie in memory, as Arrow lays
them out (validity bits, offsets of 32 bits, octets), and walks over them row by row. It copies nothing:
whoever calls holds the batch until `encode` has returned, and vouches for its layout.

A row becomes properties, application-properties and a body (AMQP 1.0 §3.2); a null is left out, and
a null body is the value null.
"""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import octets
from cython.cimports.cogwork.dataplane.encoding.writer import (
    Writer,
    begin_compound,
    close_writer,
    end_compound,
    open_writer,
    put_byte,
    put_descriptor,
    put_variable,
    written,
)
from cython.cimports.cogwork.dataplane.message.sections import (
    APPLICATION_PROPERTIES,
    CONTENT_TYPE_FIELD,
    DATA,
    PROPERTIES,
    VALUE,
)
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.cogwork.dataplane.tables.rows import Column
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t
from cython.cimports.libc.string import memset

from cogwork.amqp.errors import EncodeError

__all__ = ("FIELDS_MAX", "SOURCE_HASH", "RowEncoder")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

FIELDS_MAX = 11
"""Fields of the properties section that a row may have: up to the group-id."""

BINARY = cython.declare(uint8_t, 0xA0)
STRING = cython.declare(uint8_t, 0xA1)
SYMBOL = cython.declare(uint8_t, 0xA3)
NULL_VALUE = cython.declare(uint8_t, 0x40)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def is_null(column: cython.pointer(Column), at: int64_t) -> cython.bint:
    """Return whether a value is null."""
    return column.validity != cython.NULL and ((column.validity[at >> 3] >> (at & 7)) & 1) == 0


@cython.cfunc
@cython.exceptval(check=False)
def place(
    column: cython.pointer(Column),
    validity: cython.size_t,
    offsets: cython.size_t,
    data: cython.size_t,
    first: int64_t,
) -> cython.void:
    """Note where a column lies."""
    column.is_there = True
    column.validity = cython.cast(octets, validity)
    column.offsets = cython.cast(cython.pointer(cython.const[int32_t]), offsets)
    column.data = cython.cast(octets, data)
    column.first = first


class RowEncoder:
    """Encodes the rows of one batch."""

    def __cinit__(self):
        memset(cython.address(self.fields), 0, cython.sizeof(Column) * 11)
        memset(cython.address(self.body), 0, cython.sizeof(Column))
        memset(cython.address(self.properties), 0, cython.sizeof(Column))

    def set_field(
        self,
        index: cython.int,
        validity: cython.size_t,
        offsets: cython.size_t,
        data: cython.size_t,
        first: int64_t,
    ) -> None:
        """Say where the texts of one field of the properties section are.

        Args:
            index: The field's place in the section.
            validity: The address of its validity bits; 0 where no value is null.
            offsets: The address of its offsets.
            data: The address of its octets.
            first: The number of the first value in there.

        Raises:
            EncodeError: Rows have no such field.
        """
        if not 0 <= index < FIELDS_MAX:
            raise EncodeError(f"rows have no field {index}")
        place(cython.address(self.fields[index]), validity, offsets, data, first)
        self.field_count = max(self.field_count, index + 1)

    def set_body(
        self,
        is_text: cython.bint,
        validity: cython.size_t,
        offsets: cython.size_t,
        data: cython.size_t,
        first: int64_t,
    ) -> None:
        """Say where the bodies are; a text becomes one value, octets a data section."""
        place(cython.address(self.body), validity, offsets, data, first)
        self.body_is_text = is_text

    def set_properties(
        self, validity: cython.size_t, offsets: cython.size_t, first: int64_t
    ) -> None:
        """Say which entries of the maps belong to which row."""
        place(cython.address(self.properties), validity, offsets, 0, first)

    def set_keys(self, offsets: cython.size_t, data: cython.size_t, first: int64_t) -> None:
        """Say where the keys of all entries are; none is null."""
        place(cython.address(self.keys), 0, offsets, data, first)

    def set_values(
        self,
        validity: cython.size_t,
        offsets: cython.size_t,
        data: cython.size_t,
        first: int64_t,
    ) -> None:
        """Say where the values of all entries are."""
        place(cython.address(self.values), validity, offsets, data, first)

    def encode(self, count: int64_t) -> list:
        """Encode rows.

        Args:
            count: How many, from the first one on.

        Raises:
            EncodeError: One has a content-type that is not ASCII.
        """
        out: Writer
        row: int64_t
        messages: list = []
        if not self.body.is_there:
            raise EncodeError("rows have no body")
        open_writer(cython.address(out))
        try:
            for row in range(count):
                out.size = 0
                self.put_row(cython.address(out), row)
                messages.append(written(cython.address(out)))
        finally:
            close_writer(cython.address(out))
        return messages

    def put_row(self, out, row):
        if self.field_count:
            self.put_fields(out, row)
        if self.properties.is_there:
            self.put_map(out, row)
        return self.put_body(out, row)

    def put_fields(self, out, row):
        """Write the properties section, unless all of it is null; trailing nulls are left out."""
        index: cython.int
        count: cython.int = self.field_count
        start: cython.Py_ssize_t
        column: cython.pointer(Column)
        while count > 0:
            column = cython.address(self.fields[count - 1])
            if column.is_there and not is_null(column, column.first + row):
                break
            count -= 1
        if count == 0:
            return 0
        put_descriptor(out, PROPERTIES)
        start = begin_compound(out)
        for index in range(count):
            column = cython.address(self.fields[index])
            if not column.is_there or is_null(column, column.first + row):
                put_byte(out, NULL_VALUE)
            elif index == CONTENT_TYPE_FIELD:
                check_ascii(column, column.first + row)
                put_at(out, SYMBOL, column, column.first + row)
            else:
                put_at(out, STRING, column, column.first + row)
        return end_compound(out, start, 0xC0, count)

    def put_map(self, out, row):
        at: int64_t = self.properties.first + row
        entry: int64_t
        end: int64_t
        start: cython.Py_ssize_t
        if is_null(cython.address(self.properties), at):
            return 0
        entry = self.properties.offsets[at]
        end = self.properties.offsets[at + 1]
        if entry == end:
            return 0
        put_descriptor(out, APPLICATION_PROPERTIES)
        start = begin_compound(out)
        count: int64_t = 2 * (end - entry)
        while entry < end:
            put_at(out, STRING, cython.address(self.keys), self.keys.first + entry)
            if is_null(cython.address(self.values), self.values.first + entry):
                put_byte(out, NULL_VALUE)
            else:
                put_at(out, STRING, cython.address(self.values), self.values.first + entry)
            entry += 1
        return end_compound(out, start, 0xC1, count)

    def put_body(self, out, row):
        at: int64_t = self.body.first + row
        if is_null(cython.address(self.body), at):
            put_descriptor(out, VALUE)
            return put_byte(out, NULL_VALUE)
        if self.body_is_text:
            put_descriptor(out, VALUE)
            return put_at(out, STRING, cython.address(self.body), at)
        put_descriptor(out, DATA)
        return put_at(out, BINARY, cython.address(self.body), at)


@cython.cfunc
@cython.exceptval(-1)
def put_at(
    out: cython.pointer(Writer), code: uint8_t, column: cython.pointer(Column), at: int64_t
) -> cython.int:
    """Write one value."""
    start: int32_t = column.offsets[at]
    return put_variable(out, code, column.data + start, column.offsets[at + 1] - start)


@cython.cfunc
@cython.exceptval(-1)
def check_ascii(column: cython.pointer(Column), at: int64_t) -> cython.int:
    """Raise where a symbol (§1.6.21) would hold something else."""
    index: int32_t
    for index in range(column.offsets[at], column.offsets[at + 1]):
        if column.data[index] & 0x80:
            raise EncodeError("a content-type is ASCII")
    return 0
