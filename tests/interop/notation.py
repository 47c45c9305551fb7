"""Builders of the typed notation that the peers take and print.

A typed value is a list: the name of the AMQP type, then the value. 64-bit integers are decimal
strings, since readers of JSON round them; floats, doubles and decimals are their bits in
hexadecimal digits, since JSON knows no infinity; binaries are hexadecimal digits, or size and
checksum where they are long.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any, TypeAlias

from .peers.commands import INLINE_LIMIT_BYTES, generated_body

Typed: TypeAlias = list[Any]
Json: TypeAlias = Any

NULL: Typed = ["null", None]
WIDE_INTEGERS = ("ulong", "long", "timestamp")


def integer(name: str, value: int) -> Typed:
    """Return an integer of the named type; `timestamp` counts milliseconds since 1970."""
    return [name, str(value) if name in WIDE_INTEGERS else value]


def float32(value: float) -> Typed:
    return ["float", struct.pack(">f", value).hex()]


def double(value: float) -> Typed:
    return ["double", struct.pack(">d", value).hex()]


def string(value: str) -> Typed:
    return ["string", value]


def symbol(value: str) -> Typed:
    return ["symbol", value]


def binary(value: bytes) -> Typed:
    return ["binary", value.hex()]


def sequence(*items: Typed) -> Typed:
    return ["list", list(items)]


def mapping(*pairs: tuple[Typed, Typed]) -> Typed:
    return ["map", [list(pair) for pair in pairs]]


def array(element: str | Typed, *values: Json) -> Typed:
    """Return an array; `element` names the type, or is `["described", descriptor, name]`."""
    return ["array", element, list(values)]


def described(descriptor: Typed, value: Typed) -> Typed:
    return ["described", descriptor, value]


def value_message(body: Typed, **sections: Json) -> Json:
    """Return a message with an amqp-value body."""
    return {"body": {"value": body}, **sections}


def data_message(size_bytes: int) -> Json:
    """Return a message with one generated data section."""
    return {"body": {"data": [{"size_bytes": size_bytes}]}}


def data_report(size_bytes: int) -> Json:
    """Return what a receiver prints for the body of `data_message`."""
    content = generated_body(size_bytes)
    if size_bytes <= INLINE_LIMIT_BYTES:
        return {"data": [content.hex()]}
    return {"data": [{"size_bytes": size_bytes, "sha256": hashlib.sha256(content).hexdigest()}]}
