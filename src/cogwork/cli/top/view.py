"""What a person has chosen to see, and what each key changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cogwork.cli.top.pages import PAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ("HELP", "View", "chosen", "pressed")

HELP = "1-5: page   arrows: sort by, scroll   r: reverse   space: pause   q: quit"

SCROLL_ROWS = 10


class View(NamedTuple):
    """What is shown.

    Attributes:
        page: Which page.
        order: The column that rows are sorted by.
        is_rising: Whether the smallest comes first.
        first: Which row is the first one that is shown.
        is_paused: Whether what is shown stays.
        has_ended: Whether it is over.
    """

    page: str
    order: str
    is_rising: bool = False
    first: int = 0
    is_paused: bool = False
    has_ended: bool = False

    @classmethod
    def of(cls, page: str) -> View:
        """Show a page as it is at first."""
        return cls(page, PAGES[page].order)


def pressed(view: View, key: str) -> View:
    """Return what is shown after a key; the same after one that means nothing.

    Args:
        view: What is shown.
        key: A character, or the name of a key.
    """
    if key.isdecimal():
        names = list(PAGES)
        number = int(key) - 1
        return _turned(view, names[number]) if 0 <= number < len(names) else view
    change = KEYS.get(key)
    return change(view) if change is not None else view


def chosen(view: View, rows: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return the rows that are shown, sorted.

    Args:
        view: How.
        rows: All of them.
        count: For how many there is room.
    """
    order = view.order
    found = sorted(rows, key=lambda row: _rank(row.get(order)), reverse=not view.is_rising)
    first = min(view.first, max(0, len(found) - count))
    return found[first : first + count]


def _rank(value: object) -> tuple[int, float, str]:
    """Order values of all kinds: what is missing, texts, numbers."""
    if isinstance(value, (int, float)):
        return 2, value, ""
    return (0, 0.0, "") if value in (None, "") else (1, 0.0, str(value))


def _turned(view: View, page: str) -> View:
    return View.of(page)._replace(is_paused=view.is_paused)


def _next_page(view: View) -> View:
    names = list(PAGES)
    return _turned(view, names[(names.index(view.page) + 1) % len(names)])


def _sorted_by(step: int) -> Callable[[View], View]:
    def change(view: View) -> View:
        columns = list(PAGES[view.page].columns)
        at = (columns.index(view.order) + step) % len(columns)
        return view._replace(order=columns[at], first=0)

    return change


def _scrolled(step: int) -> Callable[[View], View]:
    return lambda view: view._replace(first=max(0, view.first + step))


KEYS: dict[str, Callable[[View], View]] = {
    "q": lambda view: view._replace(has_ended=True),
    "tab": _next_page,
    "left": _sorted_by(-1),
    "right": _sorted_by(1),
    "up": _scrolled(-1),
    "down": _scrolled(1),
    "page up": _scrolled(-SCROLL_ROWS),
    "page down": _scrolled(SCROLL_ROWS),
    "r": lambda view: view._replace(is_rising=not view.is_rising, first=0),
    " ": lambda view: view._replace(is_paused=not view.is_paused),
}
"""What each key does, but for the numbers of pages."""
