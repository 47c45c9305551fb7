"""Composites to bytes and back, compiled: performatives, termini, delivery states, SASL frames.

Theory of operation. A `Plan` is a composite class's table in C. Encoding walks it over the object's
attributes and writes the frequent kinds of field without a detour by wire types; decoding checks
and converts the items of the decoded list. Where anything is not as it should be, the reference,
`cogwork.amqp.composite`, does the same again and says what is wrong.

`decode` can be given to `decode_performative` and `decode_sasl` in place of the codec's.
"""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.encoding.composites import (
    AS_IS,
    CONVERTED,
    FLAG,
    NAME,
    NAMED,
    NAMES,
    NESTED,
    TEXT,
    UNSIGNED_32,
)
from cython.cimports.cogwork.dataplane.encoding.encoder import (
    put_names,
    put_symbol,
    put_text,
    put_value,
)
from cython.cimports.cogwork.dataplane.encoding.writer import (
    Writer,
    begin_compound,
    close_writer,
    end_compound,
    open_writer,
    put_byte,
    put_descriptor,
    put_uint,
    written,
)
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH

from cogwork.amqp import kinds
from cogwork.amqp.errors import ProtocolError
from cogwork.amqp.kinds import COMPOSITES
from cogwork.amqp.types import Described, Symbol, ULong
from cogwork.dataplane.encoding import codec

__all__ = ("SOURCE_HASH", "decode", "encode")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

PLANS = {}

WRITINGS = {
    kinds.UINT: UNSIGNED_32,
    kinds.STRING: TEXT,
    kinds.BOOLEAN: FLAG,
    kinds.SYMBOL: NAME,
    kinds.SYMBOLS: NAMES,
    kinds.FIELDS: NAMED,
}


class Row:
    """A field: what its class's table says of it."""

    def __init__(self, field: object) -> None:
        kind = field.kind
        self.attribute = field.attribute
        self.default = field.default
        self.is_mandatory = field.is_mandatory
        self.wire_types = kind.wire_types
        self.to_wire = kind.to_wire
        self.from_wire = kind.from_wire
        self.members = kind.members
        self.writing = WRITINGS.get(kind, AS_IS if kind.to_wire is None else CONVERTED)
        if kind.members:
            self.writing = NESTED


class Plan:
    """A composite class."""

    def __init__(self, made: object) -> None:
        self.made = made
        self.new = made.__new__
        self.name = made.NAME
        self.code = made.DESCRIPTOR
        self.rows = [Row(field) for field in made.TABLE]


class Unfit(Exception):  # never leaves this module
    """The reference says why."""


def plan_of(composite_class: object) -> Plan:
    """Return the plan of a composite class."""
    plan = PLANS.get(composite_class)
    if plan is None:
        plan = PLANS[composite_class] = Plan(composite_class)
    return plan


# --- encoding ---


def encode(composite: object) -> bytes:
    """Encode a composite.

    Raises:
        EncodeError: A field is missing, out of range or of the wrong type; it is named.
    """
    out = cython.declare(Writer)
    open_writer(cython.address(out))
    try:
        put_composite(cython.address(out), composite, 0)
        return written(cython.address(out))
    except Unfit:
        return codec.encode(composite.to_described())
    finally:
        close_writer(cython.address(out))


def put_composite(out: cython.pointer(Writer), composite: object, depth: cython.int) -> cython.int:
    """Write a composite as a described list without trailing nulls."""
    row: Row
    plan: Plan = plan_of(type(composite))
    count: cython.Py_ssize_t = 0
    length: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t
    start: cython.Py_ssize_t = out.size
    put_descriptor(out, plan.code)
    start = begin_compound(out)
    size = out.size
    for row in plan.rows:
        value = getattr(composite, row.attribute)
        count += 1
        if value is None or (not row.is_mandatory and value == row.default):
            if row.is_mandatory:
                raise Unfit
            put_byte(out, 0x40)
            continue
        put_field(out, row, value, depth)
        size = out.size
        length = count
    out.size = size
    if length == 0:
        out.size = start
        return put_byte(out, 0x45)
    return end_compound(out, start, 0xC0, length)


@cython.cfunc
@cython.exceptval(-1)
def put_field(
    out: cython.pointer(Writer), row: Row, value: object, depth: cython.int
) -> cython.int:
    """Write the value of a field: plain types here, the others by way of their wire type."""
    kind = type(value)
    if row.writing == UNSIGNED_32:
        put_number(out, value)
    elif row.writing == TEXT and kind is str:
        put_text(out, value)
    elif row.writing == FLAG and kind is bool:
        put_byte(out, 0x41 if value is True else 0x42)
    elif row.writing == NAME and (kind is Symbol or kind is str):
        put_symbol(out, value)
    elif row.writing == NESTED:
        put_nested(out, row, value, depth + 2)
    elif row.writing == NAMED and kind is dict:
        put_named(out, value, depth + 2)
    elif row.writing != NAMES or kind is not tuple or not value or not put_names(out, value):
        put_converted(out, row, value, depth + 2)
    return 0


@cython.cfunc
@cython.exceptval(-1)
def put_converted(
    out: cython.pointer(Writer), row: Row, value: object, depth: cython.int
) -> cython.int:
    if row.writing == AS_IS:
        return put_value(out, value, depth)
    try:
        value = row.to_wire(value)
    except (TypeError, ValueError):
        raise Unfit from None
    if value is None and row.is_mandatory:
        raise Unfit
    return put_value(out, value, depth)


@cython.cfunc
@cython.exceptval(-1)
def put_nested(
    out: cython.pointer(Writer), row: Row, value: object, depth: cython.int
) -> cython.int:
    if getattr(type(value), "NAME", None) not in row.members:
        raise Unfit
    return put_composite(out, value, depth)


@cython.cfunc
@cython.exceptval(-1)
def put_named(out: cython.pointer(Writer), fields: dict, depth: cython.int) -> cython.int:
    """Write a map with symbols as keys."""
    start: cython.Py_ssize_t = begin_compound(out)
    for key, value in fields.items():
        if not isinstance(key, str):
            raise Unfit
        put_symbol(out, key)
        put_value(out, value, depth + 1)
    return end_compound(out, start, 0xC1, 2 * len(fields))


@cython.cfunc
@cython.exceptval(-1)
def put_number(out: cython.pointer(Writer), value: object) -> cython.int:
    """Write a uint."""
    if not isinstance(value, int) or not 0 <= value <= 0xFFFFFFFF:
        raise Unfit
    return put_uint(out, value)


# --- decoding ---


def decode(data: object, offset: object = 0, end: object = None) -> tuple[object, int]:
    """Decode a value; a described list that is a composite comes as that.

    Raises:
        DecodeError: The bytes are no AMQP value, or not a whole one.
        ProtocolError: It is described by no composite, or a field is wrong; it is named.
    """
    value, following = codec.decode(data, offset, end)
    if type(value) is not Described:
        return value, following
    try:
        return composite_of(value), following
    except (Unfit, ProtocolError):
        return kinds.composite_from(value), following


def composite_of(described: object) -> object:
    """Return the composite that a described list is."""
    row: Row
    index: cython.Py_ssize_t
    descriptor = described.descriptor
    values: list
    if type(descriptor) is not ULong and type(descriptor) is not Symbol:
        raise Unfit
    found = COMPOSITES.get(descriptor)
    if found is None or type(described.value) is not list:
        raise Unfit
    plan: Plan = plan_of(found)
    values = described.value
    if len(values) > len(plan.rows):
        raise Unfit
    made = plan.new(found)
    for index in range(len(plan.rows)):
        row = plan.rows[index]
        value = values[index] if index < len(values) else None
        if value is not None:
            value = field_from(row, value)
        elif row.is_mandatory:
            raise Unfit
        else:
            value = row.default
        setattr(made, row.attribute, value)
    return made


@cython.cfunc
def field_from(row: Row, value: object) -> object:
    if row.wire_types and type(value) not in row.wire_types:
        raise Unfit
    if row.from_wire is None:
        return value
    if row.writing == NESTED:
        made = composite_of(value)
        if plan_of(type(made)).name not in row.members:
            raise Unfit
        return made
    try:
        return row.from_wire(value)
    except ValueError:
        raise Unfit from None
