"""Tables for people, and the way sizes and counts are written in them.

A table fits the terminal: columns without room are left out and named below it. First go those in
which no row has anything to tell, then those at the right, but never the first one, nor one that
tells of a problem. `--wide` prints all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from cogwork.cli.lazy import ReaderLeftError
from cogwork.cli.terminal.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ("as_markup", "console", "in_bytes", "in_words", "table", "widened")

C = TypeVar("C", bound="Callable[..., Any]")

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024
WIDTH_OF_FILES = 200
"""Columns where nobody's terminal says how many there are."""

WIDTH_MAX = 10_000
"""Of a table with `--wide`, in characters."""

WIDE = "cogwork.wide"
"""Where click's context keeps whether `--wide` was given."""

TEXT_WIDTH = 20
"""A text that is longer may be folded to this before a column is left out."""

PADDING = 3
"""Around each cell, with the space between columns; and beside the table."""

SECONDS_END = len("2026-11-28T22:45:29")
"""People are shown times in UTC without fractions of a second."""

TELLING = ("problem", "error", "unreachable", "status")
"""Columns that stay as long as a row has something in them."""


class _Results(Console):
    """A console that tells when nobody reads what it prints, where rich would exit with 1."""

    def on_broken_pipe(self) -> NoReturn:
        raise ReaderLeftError


def console() -> Console:
    """Make the console for results: what it prints is shown as it is, but for `markup=True`.

    An address of IPv6 in brackets and the `[etcd]` of an extra are no styles.
    """
    made = _Results(highlight=False, markup=False, emoji=False)
    if _is_wide():
        made.width = WIDTH_MAX
    elif not made.is_terminal:
        made.width = WIDTH_OF_FILES
    return made


def widened(command: C) -> C:
    """Add `--wide` to a command that prints tables; the console heeds it."""
    return click.option(
        "--wide",
        is_flag=True,
        expose_value=False,
        callback=_keep_wide,
        help="Print all columns, however wide.",
    )(command)


def _keep_wide(ctx: click.Context, _parameter: click.Parameter, wide: bool) -> None:
    ctx.meta[WIDE] = wide


def _is_wide() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(WIDE))


def in_bytes(size_bytes: float) -> str:
    """Write a size: `17 B`, `1.5 MiB`."""
    size, unit = float(size_bytes), 0
    while size >= _STEP and unit < len(_UNITS) - 1:
        size /= _STEP
        unit += 1
    return f"{size:.0f} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def in_words(duration_s: float) -> str:
    """Write a duration in its two greatest units: `2 h 5 min`, `40 s`."""
    left = int(duration_s)
    parts: list[str] = []
    for name, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if left >= length or (name == "s" and not parts):
            parts.append(f"{left // length} {name}")
            left %= length
    return " ".join(parts[:2])


def table(
    title: str,
    columns: Mapping[str, str],
    rows: Sequence[Mapping[str, Any]],
    total: int,
    *,
    width: int | None = None,
) -> Iterable[Table | Text]:
    """Make a table of rows.

    Args:
        title: What the rows are.
        columns: The heading of each attribute that is shown; those in bytes end in `_bytes`.
        rows: Some of them.
        total: How many there are.
        width: In characters; that of the console without it.

    Returns:
        What a console prints.
    """
    cells = {key: [visible(_cell(key, row.get(key))) for row in rows] for key in columns}
    shown = _fitting(columns, cells, rows, width or console().width)
    heading = Text(visible(f"{title} ({total:,})"))
    made = Table(title=heading, title_justify="left", box=SIMPLE_HEAD, title_style="bold")
    for key in shown:
        is_number = any(_is_number(row.get(key)) for row in rows)
        made.add_column(columns[key], justify="right" if is_number else "left", overflow="fold")
    for at in range(len(rows)):
        made.add_row(*(Text(cells[key][at]) for key in shown))
    yield made
    left_out = [columns[key] or key for key in columns if key not in shown]
    if left_out:
        named = ", ".join(left_out)
        yield Text(f"  not shown: {named} (--wide and --json have all)", style="dim")
    if total > len(rows):
        yield Text(f"  … and {total - len(rows):,} more; --json has all of them", style="dim")


def _fitting(
    columns: Mapping[str, str],
    cells: Mapping[str, Sequence[str]],
    rows: Sequence[Mapping[str, Any]],
    width: int,
) -> list[str]:
    """Choose the columns that a table of a width has room for.

    Args:
        columns: The heading of each attribute.
        cells: The text of each row's cell, by attribute.
        rows: The values behind the texts.
        width: In characters.

    Returns:
        Attributes, in the order of the columns.
    """
    shown = list(columns)
    needed = {key: _width_of(columns[key], cells[key]) for key in columns}
    telling = {key for key in columns if any(row.get(key) for row in rows)}
    kept = {shown[0], *(key for key in TELLING if key in telling)}
    silent = [key for key in reversed(shown) if key not in telling | kept]
    others = [key for key in reversed(shown) if key in telling - kept]
    for key in (*silent, *others):
        if sum(needed[each] + PADDING for each in shown) + PADDING <= width:
            break
        shown.remove(key)
    return shown


def _width_of(heading: str, texts: Sequence[str]) -> int:
    """Return how narrow a column may be: texts may be folded, headings and numbers not."""
    longest = max(map(cell_len, texts), default=0)
    return max(min(longest, TEXT_WIDTH), cell_len(heading))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def as_markup(text: str) -> str:
    """Write a text so that it may stand amid a console's markup, and is shown as it is."""
    return escape(visible(text))


def _cell(key: str, value: object) -> str:
    if key == "since" and value is not None:
        return str(value)[:SECONDS_END].replace("T", " ")
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
