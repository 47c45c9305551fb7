"""A named mistake in the core."""

from __future__ import annotations

import inspect
import textwrap
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("Mutant", "Stale")


class Stale(Exception):
    """The core has changed: a mutant's piece of source is not there once."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mistake.

    Attributes:
        name: What is wrong.
        place: The function, as `module:function` or `module:Class.function`.
        right: The piece of its source to replace.
        wrong: What to put there.
        scene: The sort of scenario that finds it, where others find it too rarely.
        more: Further pieces, as (place, right, wrong), for a mistake of several.
    """

    name: str
    place: str
    right: str
    wrong: str
    scene: str = ""
    more: tuple[tuple[str, str, str], ...] = ()

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Put the mistake in, and take it out again.

        Raises:
            Stale: The source does not fit.
        """
        changes = [
            (_function(place), _mutated(place, right, wrong))
            for place, right, wrong in ((self.place, self.right, self.wrong), *self.more)
        ]
        kept = [(function, function.__code__) for function, _ in changes]
        try:
            for function, code in changes:
                function.__code__ = code
            yield
        finally:
            for function, code in kept:
                function.__code__ = code


def _function(place: str) -> FunctionType:
    module, _, path = place.partition(":")
    found: object = import_module(module)
    for name in path.split("."):
        found = inspect.getattr_static(found, name, None)
    if isinstance(found, property):
        found = found.fget
    if isinstance(found, classmethod | staticmethod):
        found = found.__func__
    if not isinstance(found, FunctionType):
        raise Stale(f"{place} is no function")
    return found


@cache
def _mutated(place: str, right: str, wrong: str) -> CodeType:
    function = _function(place)
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(right) != 1:
        raise Stale(f"{place} has {source.count(right)} times {right!r}")
    text = "from __future__ import annotations\n" + source.replace(right, wrong)
    code = compile(text, f"<mutant of {place}>", "exec")
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and constant.co_name == function.__name__:
            if constant.co_freevars != function.__code__.co_freevars:
                raise Stale(f"{place} uses names of its surroundings")
            return constant
    raise Stale(f"{place} is not in its own source")
