"""Tables for people, and the way sizes and counts are written in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from cogwork.cli.lazy import ReaderLeftError
from cogwork.cli.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ("as_markup", "console", "in_bytes", "in_words", "table")

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024
WIDTH_OF_FILES = 200
"""Columns where nobody's terminal says how many there are."""


class _Results(Console):
    """A console that tells when nobody reads what it prints, where rich would exit with 1."""

    def on_broken_pipe(self) -> NoReturn:
        raise ReaderLeftError


def console() -> Console:
    """Makes the console for results: what it prints is shown as it is, but for `markup=True`.

    An address of IPv6 in brackets and the `[etcd]` of an extra are no styles.
    """
    made = _Results(highlight=False, markup=False, emoji=False)
    if not made.is_terminal:
        made.width = WIDTH_OF_FILES
    return made


def in_bytes(size_bytes: float) -> str:
    """Writes a size: `17 B`, `1.5 MiB`."""
    size, unit = float(size_bytes), 0
    while size >= _STEP and unit < len(_UNITS) - 1:
        size /= _STEP
        unit += 1
    return f"{size:.0f} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def in_words(duration_s: float) -> str:
    """Writes a duration in its two greatest units: `2 h 5 min`, `40 s`."""
    left = int(duration_s)
    parts: list[str] = []
    for name, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if left >= length or (name == "s" and not parts):
            parts.append(f"{left // length} {name}")
            left %= length
    return " ".join(parts[:2])


def table(
    title: str, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]], total: int
) -> Iterable[object]:
    """Makes a table of rows.

    Args:
        title: What the rows are.
        columns: The heading of each attribute that is shown; those in bytes end in `_bytes`.
        rows: Some of them.
        total: How many there are.

    Returns:
        What a console prints.
    """
    shown = Text(visible(f"{title} ({total:,})"))
    made = Table(title=shown, title_justify="left", box=SIMPLE_HEAD, title_style="bold")
    for key, heading in columns.items():
        is_number = any(_is_number(row.get(key)) for row in rows)
        made.add_column(heading, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(visible(_cell(key, row.get(key)))) for key in columns))
    yield made
    if total > len(rows):
        yield Text(f"  … and {total - len(rows):,} more; --json has all of them", style="dim")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def as_markup(text: str) -> str:
    """Writes a text so that it may stand amid a console's markup, and is shown as it is."""
    return escape(visible(text))


def _cell(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, (int, float)):
        return in_bytes(value) if "bytes" in key else f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        told = ((name, _cell(name, item)) for name, item in value.items())
        return ", ".join(f"{name} {text}" for name, text in told if text)
    return "" if value is None else str(value)
