"""AMQP's own types: what two programs that speak AMQP have in common anyway."""

from __future__ import annotations

import datetime as dt
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from uuid import UUID

import msgspec

__all__ = ("AmqpCodec",)

SCALARS = frozenset(
    {str, int, float, bool, type(None), bytes, dt.datetime, UUID, Decimal, memoryview, bytearray}
)
"""What has a type of AMQP as it is."""

NATIVE = (bytes, bytearray, memoryview, dt.datetime, UUID, Decimal)

DEPTH_MAX = 100
"""Far more than what is carried (32 levels): whatever nests deeper contains itself, or might."""


class AmqpCodec:
    """Bodies are amqp-value sections, or data where they are bytes.

    Dataclasses and Structs become maps, sets become lists, members of enumerations their values,
    dates, times and durations text as in ISO 8601: a typed parameter has them back.
    """

    content_type: str | None = None

    def encode(self, value: object) -> object:
        """Returns a value that has a type of AMQP in all its parts, if it can."""
        return value if type(value) in SCALARS else _plain(value, 0)

    def decode(self, body: object) -> object:
        """Returns the body: it was decoded when the message was."""
        return body


def _plain(value: object, depth: int) -> object:
    kind = type(value)
    if kind in SCALARS:
        return value
    if depth > DEPTH_MAX:
        raise RecursionError("too deep")
    depth += 1
    if kind is dict:
        return {
            key if type(key) in SCALARS else _plain(key, depth): part
            if type(part) in SCALARS
            else _plain(part, depth)
            for key, part in value.items()  # type: ignore[attr-defined]  # it is a dict
        }
    if isinstance(value, (list, tuple, set, frozenset)) and not hasattr(value, "_fields"):
        return [_plain(part, depth) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name), depth) for each in fields(value)}
    if isinstance(value, Enum):
        return _plain(value.value, depth)
    if isinstance(value, (msgspec.Struct, dt.date, dt.time, dt.timedelta)):
        return msgspec.to_builtins(value, builtin_types=NATIVE)
    return value
