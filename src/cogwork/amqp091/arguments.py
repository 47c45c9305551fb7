"""The types of arguments and properties, and what is declared with them (AMQP 0-9-1 §4.2.5).

A method is declared as a class with one row for each argument; the rows drive reading and writing,
as they do for the composites of AMQP 1.0.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogwork.amqp091.errors import EncodeError, ProtocolError, ReplyCode
from cogwork.amqp091.strings import is_utf8
from cogwork.amqp091.tables import read_table, write_short_string, write_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp091.cursor import Cursor

__all__ = (
    "BIT",
    "LONG",
    "LONG_LONG",
    "LONG_STRING",
    "NAME",
    "OCTET",
    "SHORT",
    "SHORT_STRING",
    "TABLE",
    "Argument",
    "Kind",
    "argument",
    "rows_of",
    "write_argument",
)


class Kind(NamedTuple):
    """A type of the specification.

    Attributes:
        name: What it is called there.
        read: Takes a value off a cursor.
        write: Appends a value.
    """

    name: str
    read: Callable[[Cursor], Any]
    write: Callable[[bytearray, Any], None]


class Argument(NamedTuple):
    """One row of a method's or property list's table.

    Attributes:
        name: The attribute in Python.
        kind: Its type.
    """

    name: str
    kind: Kind


def argument(
    kind: Kind,
    *,
    default: Any = dataclasses.MISSING,  # noqa: ANN401  # of any type
    default_factory: Any = dataclasses.MISSING,  # noqa: ANN401  # of any type
) -> Any:  # noqa: ANN401  # of any type
    """Declare an argument; without a default it must be given."""
    metadata = {"kind": kind}
    if default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=default_factory, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def rows_of(declared: type) -> tuple[Argument, ...]:
    """Return the rows of a declaration, in its order."""
    return tuple(Argument(row.name, row.metadata["kind"]) for row in dataclasses.fields(declared))


def write_argument(out: bytearray, row: Argument, value: object) -> None:
    """Append a value to `out`.

    Raises:
        EncodeError: It is of the wrong type or out of range; the argument is named.
    """
    try:
        row.kind.write(out, value)
    except (struct.error, EncodeError, TypeError, AttributeError) as error:
        found = f"{row.kind.name} is expected, not {type(value).__name__} {value!a:.80}"
        raise EncodeError(f"{row.name}: {found}: {error}") from None


def _numeric(name: str, form: struct.Struct) -> Kind:
    def write(out: bytearray, value: int) -> None:
        out += form.pack(value)

    return Kind(name, lambda cursor: cursor.number(form), write)


_OCTET = struct.Struct(">B")
_LONG = struct.Struct(">I")


def _write_long_string(out: bytearray, octets: bytes) -> None:
    out += _LONG.pack(len(octets))
    out += octets


def _read_name(cursor: Cursor) -> str:
    """Read a name, which others see too: AMQP 1.0 clients, the command line, the log."""
    text = cursor.short_string()
    if not is_utf8(text):
        raise ProtocolError(ReplyCode.FRAME_ERROR, "Malformed UTF-8 in shortstr")
    return text


BIT: Final = _numeric("bit", _OCTET)
"""Read and written as the octet that up to eight bits share."""

OCTET: Final = _numeric("octet", _OCTET)
SHORT: Final = _numeric("short", struct.Struct(">H"))
LONG: Final = _numeric("long", _LONG)
LONG_LONG: Final = _numeric("longlong", struct.Struct(">Q"))
SHORT_STRING: Final = Kind("shortstr", lambda cursor: cursor.short_string(), write_short_string)
LONG_STRING: Final = Kind("longstr", lambda cursor: cursor.long_string(), _write_long_string)
NAME: Final = Kind("shortstr", _read_name, write_short_string)
TABLE: Final = Kind("table", read_table, write_table)
