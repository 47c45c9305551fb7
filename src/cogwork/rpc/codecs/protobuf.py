"""Protocol Buffers: values as messages of a small schema, which `docs/rpc.md` shows.

The schema is built here, so that no generated module is needed; other languages generate theirs of
the text in the documentation. It needs `protobuf`, which comes with `cogwork[schema]`.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

from cogwork.amqp.errors import CogworkError
from cogwork.rpc.codecs.amqp import AmqpCodec

__all__ = ("ProtobufCodec",)

DEPTH_MAX = 32
"""Levels that a value may nest, as in AMQP; what comes from elsewhere may be meant to be deep."""

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
INT_MAX = 2**63

_SCALARS = (  # number, name, type in descriptor.proto
    (2, "boolean", 8),
    (3, "integer", 18),
    (4, "number", 1),
    (5, "text", 9),
    (6, "binary", 12),
    (7, "microseconds", 16),
    (8, "uuid", 12),
    (9, "decimal", 9),
)
_MESSAGE, _OPTIONAL, _REPEATED, _BOOL = 11, 1, 3, 8


class ProtobufError(CogworkError, ValueError):
    """Bytes that are no value of the schema, or a value that it has nothing for."""


class ProtobufCodec:
    """Bodies are data sections that hold a `cogwork.rpc.Value`."""

    content_type: str | None = "application/x-protobuf"

    def __init__(self) -> None:
        """Build the schema.

        Raises:
            CogworkError: `protobuf` is not installed.
        """
        self._value = _schema()
        self._plain = AmqpCodec()

    def encode(self, value: object) -> bytes:
        """Return a value in the schema."""
        made = self._value()
        _write(made, self._plain.encode(value), 0)
        return bytes(made.SerializeToString())

    def decode(self, body: object) -> object:
        """Return what the bytes say.

        Raises:
            ProtobufError: They are no value.
        """
        if not isinstance(body, bytes):
            raise ProtobufError(f"bytes are expected, not {type(body).__name__}")
        found = self._value()
        try:
            found.ParseFromString(body)
        except Exception as error:  # of the library's own
            raise ProtobufError(f"these bytes are no cogwork.rpc.Value: {error}") from error
        return _read(found, 0)


@lru_cache(1)
def _schema() -> Any:  # noqa: ANN401  # a generated class
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: PLC0415  # optional
    except ImportError as error:
        raise CogworkError(
            "the protobuf codec needs protobuf: pip install cogwork[schema]"
        ) from error
    file = descriptor_pb2.FileDescriptorProto(
        name="cogwork/rpc.proto", package="cogwork.rpc", syntax="proto3"
    )
    value = file.message_type.add(name="Value")
    value.oneof_decl.add(name="kind")
    value.field.add(name="null", number=1, type=_BOOL, label=_OPTIONAL, oneof_index=0)
    for number, name, kind in _SCALARS:
        value.field.add(name=name, number=number, type=kind, label=_OPTIONAL, oneof_index=0)
    for number, name in ((10, "list"), (11, "map")):
        value.field.add(
            name=name,
            number=number,
            type=_MESSAGE,
            label=_OPTIONAL,
            type_name=f".cogwork.rpc.{name.title()}",
            oneof_index=0,
        )
    several = {"type": _MESSAGE, "label": _REPEATED}
    file.message_type.add(name="List").field.add(
        name="items", number=1, type_name=".cogwork.rpc.Value", **several
    )
    file.message_type.add(name="Map").field.add(
        name="entries", number=1, type_name=".cogwork.rpc.Entry", **several
    )
    entry = file.message_type.add(name="Entry")
    for number, name in ((1, "key"), (2, "value")):
        entry.field.add(
            name=name,
            number=number,
            type=_MESSAGE,
            label=_OPTIONAL,
            type_name=".cogwork.rpc.Value",
        )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("cogwork.rpc.Value"))


def _write(made: Any, value: object, depth: int) -> None:  # noqa: ANN401  # a generated class
    if depth > DEPTH_MAX:
        raise RecursionError("too deep")
    if isinstance(value, dict):
        made.map.SetInParent()
        for key, part in value.items():
            entry = made.map.entries.add()
            _write(entry.key, key, depth + 1)
            _write(entry.value, part, depth + 1)
    elif isinstance(value, (list, tuple)):
        made.list.SetInParent()
        for part in value:
            _write(made.list.items.add(), part, depth + 1)
    else:
        _write_scalar(made, value)


def _write_scalar(made: Any, value: object) -> None:  # noqa: ANN401  # a generated class
    if value is None:
        made.null = True
    elif isinstance(value, bool):
        made.boolean = value
    elif isinstance(value, int):
        if not -INT_MAX <= value < INT_MAX:
            raise ProtobufError(f"int {value} is out of range")
        made.integer = value
    elif isinstance(value, dt.datetime):
        if value.tzinfo is None:
            raise ProtobufError(f"a datetime needs a time zone; {value} has none")
        made.microseconds = (value - EPOCH) // dt.timedelta(microseconds=1)
    elif isinstance(value, UUID):
        made.uuid = value.bytes
    else:
        _write_text(made, value)


def _write_text(made: Any, value: object) -> None:  # noqa: ANN401  # a generated class
    if isinstance(value, str):
        made.text = value
    elif isinstance(value, float):
        made.number = value
    elif isinstance(value, (bytes, bytearray, memoryview)):
        made.binary = bytes(value)
    elif isinstance(value, Decimal):
        made.decimal = str(value)
    else:
        raise ProtobufError(f"the schema has nothing for {type(value).__name__}")


def _read(found: Any, depth: int) -> object:  # noqa: ANN401  # a generated class
    if depth > DEPTH_MAX:
        raise ProtobufError(f"a value nests deeper than {DEPTH_MAX} levels")
    kind = found.WhichOneof("kind")
    if kind is None or kind == "null":
        return None
    if kind == "list":
        return [_read(part, depth + 1) for part in found.list.items]
    if kind == "map":
        return _read_map(found.map, depth + 1)
    value = getattr(found, kind)
    read = _READERS.get(kind)
    try:
        return value if read is None else read(value)
    except (ArithmeticError, ValueError) as error:
        raise ProtobufError(f"{kind}: {value!r:.80} is none") from error


def _read_map(found: Any, depth: int) -> dict[object, object]:  # noqa: ANN401  # a generated class
    entries: dict[object, object] = {}
    for entry in found.entries:
        key = _read(entry.key, depth)
        if isinstance(key, (list, dict)):
            raise ProtobufError("a map's key is a map or a list")
        entries[key] = _read(entry.value, depth)
    return entries


_READERS: dict[str, Any] = {
    "microseconds": lambda value: EPOCH + dt.timedelta(microseconds=value),
    "uuid": lambda value: UUID(bytes=value),
    "decimal": Decimal,
}
