"""Lists of what a container has: searched, sorted and cut into pages on the server."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ("PAGE_ROWS", "Asked", "Column", "Kind", "Listing", "listing_of")

Row = dict[str, Any]

PAGE_ROWS = 50
SEARCH_CHARACTERS_MAX = 200


@dataclass(frozen=True, slots=True)
class Column:
    """An attribute in a list.

    Attributes:
        key: Its name in `$management`.
        title: What people call it.
        form: How it is written, as in `text.FORMS`.
    """

    key: str
    title: str
    form: str = "text"

    @property
    def is_number(self) -> bool:
        """Whether it stands at the right."""
        return self.form in ("count", "bytes", "seconds")


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of entity as the console lists it.

    Attributes:
        path: Where its list is: `queues`.
        type: Its name in `$management`.
        title: What several are called.
        one: What one is called.
        columns: What the list shows; the first one leads to the entity's own page.
        searched: The attributes that a search looks into.
        also: Attributes that are read besides, for searches and filters.
        key: The attribute that names an entity.
        page: Where the page of each one is; empty where it has none.
        actions: Names of actions for which the list has a form.
        every_s: How often the list is read again.
    """

    path: str
    type: str
    title: str
    one: str
    columns: tuple[Column, ...]
    searched: tuple[str, ...]
    also: tuple[str, ...] = ()
    key: str = "name"
    page: str = ""
    actions: tuple[str, ...] = ()
    every_s: float = 3

    @property
    def attributes(self) -> tuple[str, ...]:
        """What is read of each entity."""
        keys = (self.key, *(each.key for each in self.columns), *self.searched, *self.also)
        return tuple(dict.fromkeys(keys))


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody wants to see of a list.

    Attributes:
        search: A text that is to be found in a row.
        sort: The column to sort by; empty for the order in which rows came.
        is_descending: Whether the greatest come first.
        page: Which page, from 1 on.
        only: Attributes that rows must have exactly, as texts.
    """

    search: str = ""
    sort: str = ""
    is_descending: bool = False
    page: int = 1
    only: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, query: Mapping[str, str], kind: Kind) -> Asked:
        """Read a query; what makes no sense in it counts for nothing."""
        page = query.get("page", "1")
        known = {each.key for each in kind.columns}
        sort = query.get("sort", "")
        return cls(
            search=query.get("search", "")[:SEARCH_CHARACTERS_MAX],
            sort=sort if sort in known else "",
            is_descending=query.get("order") == "down",
            page=int(page) if page.isascii() and page.isdigit() and len(page) < 8 else 1,
            only=tuple((key, query[f"only_{key}"]) for key in kind.also if f"only_{key}" in query),
        )

    def query(self) -> str:
        """Write it as a query."""
        pairs = {
            "search": self.search,
            "sort": self.sort,
            "order": "down" if self.is_descending else "",
            "page": str(self.page) if self.page > 1 else "",
            **{f"only_{key}": text for key, text in self.only},
        }
        return urlencode({key: text for key, text in pairs.items() if text})

    def sorted_by(self, column: Column) -> Asked:
        """Sort by a column: the greatest numbers first, and the other way at the next click."""
        is_descending = column.is_number if self.sort != column.key else not self.is_descending
        return replace(self, sort=column.key, is_descending=is_descending, page=1)

    def at(self, page: int) -> Asked:
        """Go to another page."""
        return replace(self, page=page)


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of a list.

    Attributes:
        kind: Of what.
        asked: What somebody wants to see.
        rows: The rows of this page.
        found: How many rows fit.
        total: How many there are.
        pages: How many pages they fill.
    """

    kind: Kind
    asked: Asked
    rows: Sequence[Row]
    found: int
    total: int
    pages: int


def listing_of(kind: Kind, rows: Sequence[Row], asked: Asked) -> Listing:
    """Search, sort and cut.

    Args:
        kind: Of what.
        rows: All of them.
        asked: What somebody wants to see; a page beyond the last one becomes the last one.
    """
    fitting: Iterable[Row] = rows
    for key, text in asked.only:
        fitting = [row for row in fitting if str(row.get(key)) == text]
    if asked.search:
        wanted = asked.search.casefold()
        fitting = [row for row in fitting if _has(row, kind.searched, wanted)]
    found = list(fitting)
    if asked.sort:
        found.sort(key=lambda row: _rank(row.get(asked.sort)), reverse=asked.is_descending)
    pages = max(1, -(-len(found) // PAGE_ROWS))
    page = min(max(asked.page, 1), pages)
    first = (page - 1) * PAGE_ROWS
    shown = found[first : first + PAGE_ROWS]
    return Listing(kind, asked.at(page), shown, len(found), len(rows), pages)


def _has(row: Row, keys: Sequence[str], wanted: str) -> bool:
    return any(wanted in str(row.get(key, "")).casefold() for key in keys)


def _rank(value: Any) -> tuple[int, float, str]:  # noqa: ANN401  # whatever a row may hold
    """Return what a value is sorted by: nothing, then numbers, then texts."""
    if value is None:
        return (0, 0, "")
    if isinstance(value, bool | int | float):
        return (1, float(value), "")
    return (2, 0, str(value).casefold())
