"""Composite types: described lists with named fields (AMQP 1.0 §1.4).

A class states its fields once, with kind and default; the table made of them drives both
directions. A field without a default is mandatory; one that equals its default is sent as null, and
trailing nulls are not sent at all.

    @composite(0x23, "received")
    class Received(Composite):
        section_number: int = field(UINT)
        section_offset: int = field(ULONG)
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, dataclass_transform

from cogwork.amqp.exceptions import Condition, EncodeError, ProtocolError
from cogwork.amqp.kinds import COMPOSITES, Kind
from cogwork.amqp.types import Described, Symbol, ULong

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Composite", "Field", "composite", "field")

T = TypeVar("T", bound="Composite")


class Field:
    """One row of a composite's table.

    Attributes:
        attribute: The name in Python.
        name: The name in the specification.
        kind: Its type.
        default: The value that null stands for.
        is_mandatory: Whether null is an error.
    """

    __slots__ = ("attribute", "default", "is_mandatory", "kind", "name")

    def __init__(self, attribute: str, kind: Kind, default: object) -> None:
        self.attribute = attribute
        self.name = attribute.replace("_", "-")
        self.kind = kind
        self.is_mandatory = default is dataclasses.MISSING
        self.default = None if self.is_mandatory else default


def field(kind: Kind, *, default: Any = dataclasses.MISSING) -> Any:  # noqa: ANN401  # of any type
    """Declare a field; without `default` it is mandatory."""
    return dataclasses.field(default=default, metadata={"kind": kind})


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def composite(descriptor: int, name: str) -> Callable[[type[T]], type[T]]:
    """Make a slotted class with keyword constructor, table and registry entry of a declaration.

    Args:
        descriptor: The numeric descriptor in the domain 0 (`amqp`).
        name: The wire name: `open` has the symbolic descriptor `amqp:open:list`.
    """

    def decorate(declaration: type[T]) -> type[T]:
        made = dataclasses.dataclass(slots=True, kw_only=True, repr=False)(declaration)
        made.DESCRIPTOR = ULong(descriptor)
        made.NAME = name
        made.TABLE = tuple(
            Field(row.name, row.metadata["kind"], row.default) for row in dataclasses.fields(made)
        )
        COMPOSITES[made.DESCRIPTOR] = COMPOSITES[Symbol(f"amqp:{name}:list")] = made
        return made

    return decorate


class Composite:
    """What all composite classes can do."""

    __slots__ = ()

    DESCRIPTOR: ClassVar[ULong]
    NAME: ClassVar[str]
    TABLE: ClassVar[tuple[Field, ...]]
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def __repr__(self) -> str:
        """Show the fields that differ from their defaults."""
        shown = (
            f"{row.attribute}={getattr(self, row.attribute)!r}"
            for row in self.TABLE
            if row.is_mandatory or getattr(self, row.attribute) != row.default
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def to_described(self) -> Described:
        """Return the described list to encode.

        Raises:
            EncodeError: A field is missing, out of range or of the wrong type.
        """
        values: list[object] = []
        length = 0
        for row in self.TABLE:
            value = getattr(self, row.attribute)
            if value is not None and (row.is_mandatory or value != row.default):
                value = self._to_wire(row, value)
                length = len(values) + 1
            else:
                value = None
            if value is None and row.is_mandatory:
                raise EncodeError(f"{self.NAME}.{row.name} is mandatory")
            values.append(value)
        del values[length:]
        return Described(self.DESCRIPTOR, values)

    def _to_wire(self, row: Field, value: object) -> object:
        to_wire = row.kind.to_wire
        if to_wire is None:
            return value
        try:
            return to_wire(value)
        except (TypeError, ValueError) as error:
            raise EncodeError(f"{self.NAME}.{row.name}: {error}") from error

    @classmethod
    def from_fields(cls, values: object) -> Self:
        """Build one from the decoded list; fields that the list leaves out are null.

        Raises:
            ProtocolError: A field is missing or wrong, or there are too many; it is named.
        """
        table = cls.TABLE
        if type(values) is not list or len(values) > len(table):
            raise _invalid(cls.NAME, f"a list of at most {len(table)} fields", values)
        made = cls.__new__(cls)
        present = len(values)
        for index, row in enumerate(table):
            value = values[index] if index < present else None
            if value is None:
                if row.is_mandatory:
                    raise _invalid(f"{cls.NAME}.{row.name}", "a value", None)
                value = row.default
            else:
                value = cls._from_wire(row, value)
            setattr(made, row.attribute, value)
        return made

    @classmethod
    def _from_wire(cls, row: Field, value: object) -> object:
        kind = row.kind
        if kind.wire_types and type(value) not in kind.wire_types:
            raise _invalid(f"{cls.NAME}.{row.name}", kind.name, value)
        if kind.from_wire is None:
            return value
        try:
            return kind.from_wire(value)
        except ValueError as error:
            raise ProtocolError(
                Condition.INVALID_FIELD, f"{cls.NAME}.{row.name}: {error}"
            ) from error


def _invalid(name: str, expected: str, value: object) -> ProtocolError:
    """Words the error of a field that is not what it should be."""
    found = f"{type(value).__name__} {value!r:.80}"
    return ProtocolError(Condition.INVALID_FIELD, f"{name}: {expected} is expected, not {found}")
