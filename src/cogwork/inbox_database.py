"""The application's database as the inbox needs it: any driver (PEP 249), within a transaction."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, Literal, Protocol

from cogwork.amqp.errors import CogworkError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ("Connection", "Cursor", "Database", "NoTransaction", "ParamStyle", "RowcountUnknown")

ParamStyle = Literal["qmark", "numeric", "named", "format", "pyformat"]
"""How a driver wants parameters, as PEP 249 names it."""

IDLE = 0
"""What libpq says of a connection without a transaction, and its drivers with it."""

_PARAMETER = re.compile(r":(\w+)")


class Cursor(Protocol):
    """What is needed of a cursor (PEP 249)."""

    @property
    def rowcount(self) -> int:
        """How many rows the last statement has changed."""

    def execute(self, operation: str, parameters: Any = ..., /) -> object:  # noqa: ANN401  # drivers differ
        """Execute a statement."""

    def fetchone(self) -> Sequence[Any] | None:
        """Return the next row."""

    def close(self) -> None:
        """End it."""


class Connection(Protocol):
    """What is needed of a connection (PEP 249)."""

    def cursor(self) -> Cursor:
        """Make a cursor."""


class NoTransaction(CogworkError):
    """No transaction is open: effect and note would not be one."""

    def __init__(self) -> None:
        super().__init__(
            "no transaction is open, so that the effect and the inbox would be committed apart: "
            "begin one first, or do not use the connection in autocommit mode"
        )


class RowcountUnknown(CogworkError):
    """The driver does not count the rows that it changes; roll back, for one may have been."""

    def __init__(self, driver: str) -> None:
        super().__init__(
            f"the driver {driver} does not say how many rows a statement has changed, and the "
            "inbox needs to know: use a driver whose cursors have a rowcount (PEP 249)"
        )


class Database:
    """A connection whose changes are all part of the application's transaction."""

    def __init__(self, connection: Connection, paramstyle: ParamStyle | None) -> None:
        """Touch nothing yet.

        Args:
            connection: To the database.
            paramstyle: How the driver wants parameters; if None, what the driver's module says.

        Raises:
            ValueError: The style is wrong, or nobody says it.
        """
        self._connection = connection
        self._style = _style_of(connection) if paramstyle is None else paramstyle
        if self._style not in _PLACEHOLDERS:
            raise ValueError(f"{self._style!r} is no paramstyle: {', '.join(_PLACEHOLDERS)}")

    def define(self, statement: str) -> None:
        """Execute what makes a table, in a transaction or not."""
        cursor = self._connection.cursor()
        try:
            cursor.execute(statement)
        finally:
            cursor.close()

    def change(self, statement: str, values: Mapping[str, object], *, probe: str) -> int:
        """Execute a change; return how many rows it has changed.

        Args:
            statement: With `:name` where a parameter belongs.
            values: The parameters by name.
            probe: A statement that changes nothing, with the same parameters.

        Raises:
            NoTransaction: None is open.
            RowcountUnknown: The driver does not say.
        """
        if self._commits_each():
            self.fetch(probe, values)  # a driver may begin with the first statement of a `with`
            if self._commits_each():
                raise NoTransaction
        cursor = self._connection.cursor()
        try:
            cursor.execute(*self._prepared(statement, values))
            changed = cursor.rowcount
        finally:
            cursor.close()
        if self._is_without_transaction():
            raise NoTransaction
        if changed < 0:
            raise RowcountUnknown(type(self._connection).__module__.partition(".")[0])
        return changed

    def fetch(self, statement: str, values: Mapping[str, object]) -> Sequence[Any] | None:
        """Return the first row of what a statement selects."""
        cursor = self._connection.cursor()
        try:
            cursor.execute(*self._prepared(statement, values))
            return cursor.fetchone()
        finally:
            cursor.close()

    def _prepared(
        self, statement: str, values: Mapping[str, object]
    ) -> tuple[str, dict[str, object] | list[object]]:
        """Put a statement and its parameters into the driver's style."""
        names = _PARAMETER.findall(statement)
        count = iter(range(1, len(names) + 1))
        placeholder = _PLACEHOLDERS[self._style]
        text = _PARAMETER.sub(lambda found: placeholder(found[1], next(count)), statement)
        if self._style in ("named", "pyformat"):
            return text, {name: values[name] for name in names}
        return text, [values[name] for name in names]

    def _is_without_transaction(self) -> bool:
        """Say so of SQLite, psycopg2 and psycopg 3; others cannot be asked in one way."""
        if getattr(self._connection, "in_transaction", True) is False:
            return True
        info = getattr(self._connection, "info", None)
        status = getattr(info, "transaction_status", None)
        return isinstance(status, int) and status == IDLE

    def _commits_each(self) -> bool:
        """Return whether the next change would be committed by itself, in autocommit mode.

        Else the driver begins a transaction before it.
        """
        is_in_autocommit = getattr(self._connection, "autocommit", None)
        if not isinstance(is_in_autocommit, bool):  # SQLite's older way to say it
            is_in_autocommit = getattr(self._connection, "isolation_level", "") is None
        return is_in_autocommit and self._is_without_transaction()


_PLACEHOLDERS: dict[str, Callable[[str, int], str]] = {
    "qmark": lambda _, __: "?",
    "numeric": lambda _, number: f":{number}",
    "named": lambda name, _: f":{name}",
    "format": lambda _, __: "%s",
    "pyformat": lambda name, _: f"%({name})s",
}


def _style_of(connection: Connection) -> str:
    """Ask the driver's module, which PEP 249 has say it."""
    for kind in type(connection).__mro__:
        module = sys.modules.get(kind.__module__.partition(".")[0])
        style = getattr(module, "paramstyle", None)
        if isinstance(style, str):
            return style
    raise ValueError(
        f"the driver of {type(connection).__qualname__} does not say its paramstyle: name it"
    )
