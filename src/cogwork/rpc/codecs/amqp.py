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
        """Return a value that has a type of AMQP in all its parts, if it can."""
        return value if type(value) in SCALARS else _plain(value, 0)

    def decode(self, body: object) -> object:
        """Return the body: it was decoded when the message was."""
        return body


def _plain(value: object, depth: int) -> object:
    if depth > DEPTH_MAX:
        raise RecursionError("too deep")
    depth += 1
    if isinstance(value, dict):
        return {
            (key if type(key) in SCALARS else _plain(key, depth)): (
                part if type(part) in SCALARS else _plain(part, depth)
            )
            for key, part in value.items()
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [part if type(part) in SCALARS else _plain(part, depth) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        return _plain({each.name: getattr(value, each.name) for each in fields(value)}, depth)
    if isinstance(value, (msgspec.Struct, Enum, dt.date, dt.time, dt.timedelta)):
        return msgspec.to_builtins(value, builtin_types=NATIVE)
    return value
