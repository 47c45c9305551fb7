"""Values of field tables that no plain Python type stands for.

A plain `int` is encoded in 32 bits if it fits, else in 64, as RabbitMQ's clients do. An integer
that came with another width keeps it, so that a table that was decoded encodes to the same octets.
All of these compare and compute as the numbers that they are.
"""

from __future__ import annotations

from typing import TypeAlias

__all__ = (
    "Float32",
    "Int8",
    "Int16",
    "Int64",
    "Table",
    "Timestamp",
    "UInt8",
    "UInt16",
    "UInt32",
    "Value",
)


class Int8(int):
    """A signed octet: `b`."""

    __slots__ = ()


class UInt8(int):
    """An unsigned octet: `B`."""

    __slots__ = ()


class Int16(int):
    """A signed integer of 16 bits: `s`."""

    __slots__ = ()


class UInt16(int):
    """An unsigned integer of 16 bits: `u`."""

    __slots__ = ()


class UInt32(int):
    """An unsigned integer of 32 bits: `i`."""

    __slots__ = ()


class Int64(int):
    """A signed integer of 64 bits that would fit into 32: `l`."""

    __slots__ = ()


class Timestamp(int):
    """Seconds since 1970 (UTC), unsigned, of 64 bits: `T`; more than a `datetime` holds."""

    __slots__ = ()


class Float32(float):
    """A floating-point number of 32 bits: `f`."""

    __slots__ = ()


Value: TypeAlias = object
"""None, bool, int, float, str, bytes, Decimal, a list, a `Table`, or one of the classes above."""

Table: TypeAlias = dict[str, Value]
