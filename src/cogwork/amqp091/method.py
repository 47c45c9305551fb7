"""How methods are declared, found by their numbers, read and written (AMQP 0-9-1 §4.2.4).

Consecutive bits share an octet, the first in the lowest bit; no method has more than eight.
"""

from __future__ import annotations

import dataclasses
import struct
from enum import Flag, auto
from typing import TYPE_CHECKING, ClassVar, Final, Self, TypeVar, dataclass_transform

from cogwork.amqp091.arguments import BIT, Argument, argument, rows_of, write_argument
from cogwork.amqp091.cursor import Cursor
from cogwork.amqp091.errors import EncodeError, ProtocolError, ReplyCode

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("METHODS", "Method", "Role", "decode_method", "method", "method_ids")

T = TypeVar("T", bound="Method")

_IDS = struct.Struct(">HH")


class Role(Flag):
    """Which end of a connection speaks."""

    CLIENT = auto()
    SERVER = auto()


METHODS: Final[dict[tuple[int, int], type[Method]]] = {}
"""All methods by class and method id."""


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(argument,))
def method(
    class_id: int, method_id: int, name: str, sent_by: Role, *, has_content: bool = False
) -> Callable[[type[T]], type[T]]:
    """Make a frozen, slotted class with keyword constructor and registry entry of a declaration.

    Args:
        class_id: The number of its class.
        method_id: The number of the method in the class.
        name: Both names, as `queue.declare-ok`.
        sent_by: Who may send it.
        has_content: Whether a content header and a body follow.
    """

    def decorate(declaration: type[T]) -> type[T]:
        made = dataclasses.dataclass(slots=True, kw_only=True, frozen=True)(declaration)
        made.CLASS_ID = class_id
        made.METHOD_ID = method_id
        made.NAME = name
        made.SENT_BY = sent_by
        made.HAS_CONTENT = has_content
        made.TABLE = rows_of(made)
        METHODS[class_id, method_id] = made
        return made

    return decorate


class Method:
    """What all methods can do."""

    __slots__ = ()

    CLASS_ID: ClassVar[int]
    METHOD_ID: ClassVar[int]
    NAME: ClassVar[str]
    SENT_BY: ClassVar[Role]
    HAS_CONTENT: ClassVar[bool]
    TABLE: ClassVar[tuple[Argument, ...]]

    def encode(self) -> bytes:
        """Return the payload of its frame.

        Raises:
            EncodeError: An argument is of the wrong type or out of range; it is named.
        """
        out = bytearray(_IDS.pack(self.CLASS_ID, self.METHOD_ID))
        try:
            self._write_arguments(out)
        except EncodeError as error:
            raise EncodeError(f"{self.NAME}: {error}") from None
        return bytes(out)

    def _write_arguments(self, out: bytearray) -> None:
        place = 0
        for row in self.TABLE:
            value = getattr(self, row.name)
            if row.kind is not BIT:
                place = 0
                write_argument(out, row, value)
            elif place == 0:
                row.kind.write(out, bool(value))
                place = 1
            else:
                out[-1] |= bool(value) << place
                place += 1

    @classmethod
    def from_arguments(cls, cursor: Cursor) -> Self:
        """Read all arguments; nothing may follow them.

        Raises:
            ProtocolError: They are damaged, or of other length.
        """
        values: dict[str, object] = {}
        bits = place = 0
        for row in cls.TABLE:
            if row.kind is not BIT:
                place = 0
                values[row.name] = row.kind.read(cursor)
                continue
            if place == 0:
                bits = row.kind.read(cursor)
            values[row.name] = bool(bits >> place & 1)
            place += 1
        cursor.finish()
        return cls(**values)


def method_ids(payload: bytes) -> tuple[int, int]:
    """Return class and method id of a method frame, without looking further.

    Raises:
        ProtocolError: The payload is shorter.
    """
    if len(payload) < _IDS.size:
        raise ProtocolError(
            ReplyCode.FRAME_ERROR, f"method frame of {len(payload)} octets (at least {_IDS.size})"
        )
    class_id, method_id = _IDS.unpack_from(payload)
    return class_id, method_id


def decode_method(payload: bytes) -> Method:
    """Decode the payload of a method frame.

    Raises:
        ProtocolError: There is no such method, or its arguments are wrong; it carries the ids.
    """
    ids = method_ids(payload)
    declared = METHODS.get(ids)
    if declared is None:
        class_id, method_id = ids
        explanation = f"unknown method {method_id} of class {class_id}"
        raise ProtocolError(ReplyCode.NOT_IMPLEMENTED, explanation, *ids)
    try:
        return declared.from_arguments(Cursor(payload, _IDS.size))
    except ProtocolError as error:
        explanation = f"cannot decode {declared.NAME}: {error.explanation}"
        raise ProtocolError(error.code, explanation, *ids) from None
