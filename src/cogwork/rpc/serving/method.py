"""A method of a service: what it takes, and how arguments become that."""

from __future__ import annotations

import inspect
import typing
from typing import TYPE_CHECKING, Any

from cogwork.amqp.errors import CogworkError, Condition
from cogwork.rpc.conversion import converted
from cogwork.rpc.serving.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ("Method", "WrongArgumentsError")


class WrongArgumentsError(CogworkError, TypeError):
    """Arguments that a method does not take; the text names the one that is wrong."""

    condition = Condition.INVALID_FIELD


class Method:
    """A function that callers may run.

    Attributes:
        name: What callers call it.
        function: What is run.
        is_async: Whether it is a coroutine function.
        is_stream: Whether it yields its reply in parts.
        pace: How long it takes.
    """

    __slots__ = (
        "_names",
        "_required",
        "_takes_any",
        "_types",
        "function",
        "is_async",
        "is_stream",
        "name",
        "pace",
    )

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        """Read a function's signature.

        Args:
            function: With parameters that may be given by name.
            name: What callers call it; None for the function's own name.

        Raises:
            TypeError: A parameter cannot be given by name, or the name is a reserved one.
        """
        self.function = function
        self.pace = Pace()
        self.name: str = function.__name__ if name is None else name
        if self.name.startswith("$"):
            raise TypeError(f"{self.name}: names that begin with $ are reserved")
        self.is_async = inspect.iscoroutinefunction(function)
        self.is_stream = inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(
            function
        )
        self._names: set[str] = set()
        self._required: set[str] = set()
        self._takes_any = False
        self._types: dict[str, Any] = {}
        self._read_signature()

    def _read_signature(self) -> None:
        hints = _hints(self.function)
        for parameter in inspect.signature(self.function).parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                self._takes_any = True
                continue
            if parameter.kind in {parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL}:
                raise TypeError(
                    f"{self.name}: arguments come by name, and parameter {parameter} has none"
                )
            self._names.add(parameter.name)
            if parameter.default is parameter.empty:
                self._required.add(parameter.name)
            hint = hints.get(parameter.name, Any)
            if hint is not Any and hint is not object:
                self._types[parameter.name] = hint

    def arguments(self, given: object) -> Mapping[str, Any]:
        """Return what to run the function with.

        Args:
            given: What the request holds.

        Raises:
            WrongArgumentsError: The function does not take it.
        """
        if given is None:
            given = {}
        if not isinstance(given, dict):
            kind = type(given).__name__
            raise WrongArgumentsError(f"{self.name}: a map of arguments is expected, not {kind}")
        if not self._names.issuperset(given) and not self._takes_any:
            extra = sorted(f"{name!r:.80}" for name in given if name not in self._names)
            raise WrongArgumentsError(f"{self.name}: takes no argument {', '.join(extra[:10])}")
        if not self._required <= given.keys():
            missing = sorted(self._required - given.keys())
            raise WrongArgumentsError(f"{self.name}: lacks {', '.join(missing)}")
        types = self._types
        if not types:
            return given
        return {
            name: value
            if (wanted := types.get(name)) is None or type(value) is wanted
            else self._converted(name, value, wanted)
            for name, value in given.items()
        }

    def _converted(self, name: str, value: object, kind: Any) -> object:  # noqa: ANN401  # any type
        try:
            return converted(value, kind)
        except Exception as error:
            problem = str(error).replace("`$", f"`{name}")
            raise WrongArgumentsError(f"{self.name}: {name}: {problem}") from error


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of a function's parameters, as far as they can be found."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError:  # of a type that is imported for type checkers alone
        return {
            name: hint
            for name, hint in inspect.get_annotations(function).items()
            if not isinstance(hint, str)
        }
