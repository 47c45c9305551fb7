"""What is wrong with a configuration, and what its checks have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from cogwork.config.toml_lines import Path

__all__ = ("Problem", "each", "named_twice", "twice")

T = TypeVar("T")


class Problem(NamedTuple):
    """What is wrong, and what would be right."""

    path: Path
    found: str
    expected: str

    def below(self, *path: str | int) -> Problem:
        """Return the same, seen from a table further out."""
        return self._replace(path=(*path, *self.path))


def each(
    table: str, entries: Iterable[T], check: Callable[[T], Iterator[Problem]]
) -> Iterator[Problem]:
    """Check each of several tables.

    Args:
        table: Their name.
        entries: The tables.
        check: Finds what is wrong with one.
    """
    for at, entry in enumerate(entries):
        for problem in check(entry):
            yield problem.below(table, at)


def twice(table: str, key: str, values: Sequence[Hashable]) -> Iterator[Problem]:
    """Find the second of two tables that name the same thing; None names nothing."""
    seen: dict[Hashable, int] = {}
    for at, value in enumerate(values):
        if value is not None and seen.setdefault(value, at) != at:
            found = f'"{value}" as in {table}[{seen[value]}]'
            yield Problem((table, at, key), found, f"each {key} once")


def named_twice(key: str, names: Sequence[str] | None) -> Iterator[Problem]:
    """Find a name that stands in one array twice; None is no array."""
    for at, name in enumerate(names or ()):
        if name in (names or ())[:at]:
            yield Problem((key, at), f'"{name}" twice', "each name once")
