"""A version of an address's schema, compiled when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.schema.errors import InvalidSchema
from cogwork.schema.schema import make_schema

if TYPE_CHECKING:
    from cogwork.schema.events import Registered
    from cogwork.schema.schema import Schema

__all__ = ("Version",)


class Version:
    """One version.

    Attributes:
        event: What was registered.
    """

    __slots__ = ("_problem", "_schema", "event")

    def __init__(self, event: Registered) -> None:
        self.event = event
        self._schema: Schema | None = None
        self._problem = ""

    @property
    def is_compiled(self) -> bool:
        """Whether `schema` takes no time."""
        return self._schema is not None or bool(self._problem)

    def forget(self) -> None:
        """Give back what was compiled."""
        self._schema = None

    def schema(self) -> Schema:
        """Return the schema.

        Raises:
            InvalidSchema: It is none, or what it needs is not installed here.
        """
        if self._problem:
            raise InvalidSchema(self._problem)
        schema = self._schema
        if schema is None:
            try:
                event = self.event
                schema = make_schema(event.kind, event.definition, event.message)
            except InvalidSchema as error:
                self._problem = str(error)
                raise
            self._schema = schema
        return schema
