"""The types of AMQP by their format codes, for errors that say what was found (AMQP 1.0 §1.6)."""

from __future__ import annotations

from typing import Final

__all__ = ("OUT_OF_RANGE", "not_understood", "type_of")

_TYPES: Final = {
    0x00: "described value",
    0x40: "null",
    0x41: "boolean", 0x42: "boolean", 0x56: "boolean",
    0x50: "ubyte", 0x60: "ushort",
    0x43: "uint", 0x52: "uint", 0x70: "uint",
    0x44: "ulong", 0x53: "ulong", 0x80: "ulong",
    0x51: "byte", 0x61: "short",
    0x54: "int", 0x71: "int",
    0x55: "long", 0x81: "long",
    0x72: "float", 0x82: "double",
    0x74: "decimal32", 0x84: "decimal64", 0x94: "decimal128",
    0x73: "char", 0x83: "timestamp", 0x98: "uuid",
    0xA0: "binary", 0xB0: "binary",
    0xA1: "string", 0xB1: "string",
    0xA3: "symbol", 0xB3: "symbol",
    0x45: "list", 0xC0: "list", 0xD0: "list",
    0xC1: "map", 0xD1: "map",
    0xE0: "array", 0xF0: "array",
}  # fmt: skip  # a row for each type

_AN: Final = frozenset({"array", "int"})

OUT_OF_RANGE: Final = 0x01
"""No format code of AMQP: for a value of the right type that is out of range."""


def type_of(code: int) -> str:
    """Return the name of the type that a format code belongs to."""
    return _TYPES.get(code, f"value of the unknown type 0x{code:02x}")


def not_understood(name: str, code: int, expected: str) -> str:
    """Words the error of a field that is not understood.

    Args:
        name: The field or annotation.
        code: The format code of its value; OUT_OF_RANGE where only its
            size is wrong.
        expected: What would be right.
    """
    if code == OUT_OF_RANGE:
        return f"{name} is out of range (expected {expected})"
    found = type_of(code)
    article = "" if found == "null" else "an " if found in _AN else "a "
    return f"{name} is {article}{found} (expected {expected})"
