"""Between the typed notation and python-qpid-proton's values.

Towards proton the ordinary Python types of its `Message` are used. From proton the `Data` tree is
walked instead: `get_object` would fold maps whose keys differ in type only.
"""

from __future__ import annotations

import struct
import uuid
from typing import TYPE_CHECKING, Any, TypeAlias

import proton
from commands import Json, binary_content, binary_notation
from proton import Array, Data, Described, ulong
from proton._data import UNDESCRIBED

if TYPE_CHECKING:
    from collections.abc import Callable

ProtonValue: TypeAlias = Any

FROM_NOTATION: dict[str, Callable[[Json], ProtonValue]] = {
    "null": lambda _: None,
    "boolean": bool,
    "ubyte": proton.ubyte,
    "ushort": proton.ushort,
    "uint": proton.uint,
    "ulong": lambda text: ulong(int(text)),
    "byte": proton.byte,
    "short": proton.short,
    "int": proton.int32,
    "long": int,
    "float": lambda digits: proton.float32(struct.unpack(">f", bytes.fromhex(digits))[0]),
    "double": lambda digits: struct.unpack(">d", bytes.fromhex(digits))[0],
    "decimal32": lambda digits: proton.decimal32(int(digits, 16)),
    "decimal64": lambda digits: proton.decimal64(int(digits, 16)),
    "decimal128": lambda digits: proton.decimal128(bytes.fromhex(digits)),
    "char": lambda code: proton.char(chr(code)),
    "timestamp": lambda text: proton.timestamp(int(text)),
    "uuid": uuid.UUID,
    "binary": binary_content,
    "string": str,
    "symbol": proton.symbol,
    "list": lambda items: [to_proton(item) for item in items],
    "map": lambda pairs: {to_proton(key): to_proton(value) for key, value in pairs},
}

TYPE_CODES = {
    "boolean": Data.BOOL,
    **{
        name: getattr(Data, name.upper())
        for name in (*FROM_NOTATION, "array", "described")
        if name != "boolean"
    },
}
TYPE_NAMES = {code: name for name, code in TYPE_CODES.items()}

LEAF_READERS: dict[str, Callable[[Data], Json]] = {
    "null": lambda _: None,
    "boolean": lambda data: bool(data.get_bool()),
    "ubyte": lambda data: int(data.get_ubyte()),
    "ushort": lambda data: int(data.get_ushort()),
    "uint": lambda data: int(data.get_uint()),
    "ulong": lambda data: str(int(data.get_ulong())),
    "byte": lambda data: int(data.get_byte()),
    "short": lambda data: int(data.get_short()),
    "int": lambda data: int(data.get_int()),
    "long": lambda data: str(int(data.get_long())),
    "float": lambda data: struct.pack(">f", data.get_float()).hex(),
    "double": lambda data: struct.pack(">d", data.get_double()).hex(),
    "decimal32": lambda data: f"{int(data.get_decimal32()):08x}",
    "decimal64": lambda data: f"{int(data.get_decimal64()):016x}",
    "decimal128": lambda data: bytes(data.get_decimal128()).hex(),
    "char": lambda data: ord(data.get_char()),
    "timestamp": lambda data: str(int(data.get_timestamp())),
    "uuid": lambda data: str(data.get_uuid()),
    "binary": lambda data: binary_notation(bytes(data.get_binary())),
    "string": lambda data: str(data.get_string()),
    "symbol": lambda data: str(data.get_symbol()),
}


def to_proton(typed: Json) -> ProtonValue:
    """Return the Python value that proton encodes as the type that the notation names."""
    name = typed[0]
    if name == "described":
        return Described(to_proton(typed[1]), to_proton(typed[2]))
    if name == "array":
        return _array(typed[1], typed[2])
    return FROM_NOTATION[name](typed[1])


def _array(element: Json, values: Json) -> Array:
    descriptor: ProtonValue = UNDESCRIBED
    if isinstance(element, list):
        descriptor, element = to_proton(element[1]), element[2]
    return Array(
        descriptor, TYPE_CODES[element], *(to_proton([element, value]) for value in values)
    )


def read(data: Data) -> Json:
    """Return the notation of the value at the cursor of `data`."""
    name = TYPE_NAMES[data.type()]
    if name in LEAF_READERS:
        return [name, LEAF_READERS[name](data)]
    if name == "described":
        return ["described", *_children(data)]
    if name == "array":
        return _read_array(data)
    children = _children(data)
    if name == "map":
        return ["map", [list(pair) for pair in zip(children[::2], children[1::2], strict=True)]]
    return [name, children]


def _read_array(data: Data) -> Json:
    _, described, code = data.get_array()
    children = _children(data)
    element: Json = TYPE_NAMES[code]
    if described:
        element = ["described", children.pop(0), element]
    return ["array", element, [child[1] for child in children]]


def _children(data: Data) -> list[Json]:
    children = []
    data.enter()
    while data.next() is not None:
        children.append(read(data))
    data.exit()
    return children


def read_sections(encoded: bytes) -> list[Json]:
    """Return the notation of every section of an encoded message."""
    sections = []
    while encoded:
        data = Data()
        encoded = encoded[data.decode(encoded) :]
        data.rewind()
        data.next()
        sections.append(read(data))
    return sections
