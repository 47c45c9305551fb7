"""Between the typed notation and Cogwork's values."""

from __future__ import annotations

import struct
import uuid
from datetime import datetime
from types import NoneType
from typing import TYPE_CHECKING

from commands import Json, binary_content, binary_notation

from cogwork.amqp import codec, types

if TYPE_CHECKING:
    from collections.abc import Callable

DECIMAL_CODES = {"decimal32": b"\x74", "decimal64": b"\x84", "decimal128": b"\x94"}


def _bits(code: bytes) -> Callable[[Json], object]:
    """Read bits as the decoder does: `Decimal` has no constructor for them."""
    return lambda digits: codec.decode(code + bytes.fromhex(digits))[0]


FROM_NOTATION: dict[str, Callable[[Json], object]] = {
    "null": lambda _: None,
    "boolean": bool,
    "ubyte": types.UByte,
    "ushort": types.UShort,
    "uint": types.UInt,
    "ulong": lambda text: types.ULong(int(text)),
    "byte": types.Byte,
    "short": types.Short,
    "int": types.Int,
    "long": int,
    "float": lambda digits: types.Float32(struct.unpack(">f", bytes.fromhex(digits))[0]),
    "double": lambda digits: struct.unpack(">d", bytes.fromhex(digits))[0],
    **{name: _bits(code) for name, code in DECIMAL_CODES.items()},
    "char": lambda code: types.Char(chr(code)),
    "timestamp": lambda text: types.datetime_from_ms(int(text)),
    "uuid": uuid.UUID,
    "binary": binary_content,
    "string": str,
    "symbol": types.Symbol,
    "list": lambda items: [to_cogwork(item) for item in items],
    "map": lambda pairs: {to_cogwork(key): to_cogwork(value) for key, value in pairs},
}

CLASSES: dict[str, type] = {
    "null": NoneType,
    "boolean": bool,
    "ubyte": types.UByte,
    "ushort": types.UShort,
    "uint": types.UInt,
    "ulong": types.ULong,
    "byte": types.Byte,
    "short": types.Short,
    "int": types.Int,
    "long": int,
    "float": types.Float32,
    "double": float,
    "decimal32": types.Decimal32,
    "decimal64": types.Decimal64,
    "decimal128": types.Decimal128,
    "char": types.Char,
    "timestamp": datetime,
    "uuid": uuid.UUID,
    "binary": bytes,
    "string": str,
    "symbol": types.Symbol,
    "list": list,
    "map": dict,
}
NAMES = {python: name for name, python in CLASSES.items()} | {types.Timestamp: "timestamp"}


def _digits(value: object) -> Json:
    return codec.encode(value)[1:].hex()


def _milliseconds(value: datetime | types.Timestamp) -> Json:
    return str(types.ms_from_datetime(value) if isinstance(value, datetime) else int(value))


TO_NOTATION: dict[str, Callable[..., Json]] = {
    "null": lambda _: None,
    "boolean": bool,
    "ulong": lambda value: str(int(value)),
    "long": lambda value: str(int(value)),
    "float": _digits,
    "double": _digits,
    "decimal32": _digits,
    "decimal64": _digits,
    "decimal128": _digits,
    "char": ord,
    "timestamp": _milliseconds,
    "uuid": str,
    "binary": binary_notation,
    "string": str,
    "symbol": str,
    "list": lambda items: [from_cogwork(item) for item in items],
    "map": lambda pairs: [[from_cogwork(key), from_cogwork(it)] for key, it in pairs.items()],
}


def to_cogwork(typed: Json) -> object:
    """Return the Python value that Cogwork encodes as the type that the notation names."""
    name = typed[0]
    if name == "described":
        return types.Described(to_cogwork(typed[1]), to_cogwork(typed[2]))
    if name == "array":
        return _array(typed[1], typed[2])
    return FROM_NOTATION[name](typed[1])


def _array(element: Json, values: Json) -> types.Array:
    descriptor: object = None
    if isinstance(element, list):
        descriptor, element = to_cogwork(element[1]), element[2]
    items = [to_cogwork([element, value]) for value in values]
    return types.Array(items, CLASSES[element], descriptor)


def from_cogwork(value: object) -> Json:
    """Return the notation of a value that Cogwork decoded."""
    if isinstance(value, types.Described):
        return ["described", from_cogwork(value.descriptor), from_cogwork(value.value)]
    if isinstance(value, types.Array):
        element: Json = NAMES[value.element_type]
        if value.descriptor is not None:
            element = ["described", from_cogwork(value.descriptor), element]
        return ["array", element, [from_cogwork(item)[1] for item in value.items]]
    name = NAMES[type(value)]
    return [name, TO_NOTATION.get(name, int)(value)]
