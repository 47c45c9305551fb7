"""One HTML page that needs nothing else: no script, no font, no picture from elsewhere."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cogwork.pipeline.pages.chart import Chart

__all__ = ("Page", "chart_card", "count_text", "table_card", "time_text")

STYLE = """
:root { --ink: #27313b; --soft: #5b6b7c; --faint: #e6eaee; --paper: #f6f8fa; --card: #fff;
  --good: #1d7a52; --bad: #b3261e; --open: #946200; --accent: #3565c4; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 36px 24px 64px; }
header h1 { font-size: 30px; margin: 0; letter-spacing: -.01em; }
header p { margin: 4px 0 0; color: var(--soft); }
h2 { font-size: 19px; margin: 36px 0 12px; }
h2 small { font-weight: 400; color: var(--soft); font-size: 14px; margin-left: 8px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(126px, 1fr)); gap: 12px;
  margin: 24px 0 8px; }
.tile, .card { background: var(--card); border: 1px solid var(--faint); border-radius: 10px;
  padding: 14px 18px; }
.tile b { display: block; font-size: 25px; font-weight: 650; line-height: 1.25;
  font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 13px; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(480px, 1fr)); gap: 16px; }
.card { overflow-x: auto; }
.card h3 { margin: 0 0 8px; font-size: 15px; }
.card svg { display: block; width: 100%; height: auto; }
.card + .card { margin-top: 0; }
.wide { grid-column: 1 / -1; }
.note { color: var(--soft); margin: 6px 0; font-size: 13.5px; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px;
  font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--soft); border-bottom: 1px solid var(--faint);
  padding: 4px 12px 4px 0; white-space: nowrap; }
td { padding: 5px 12px 5px 0; border-bottom: 1px solid var(--faint); vertical-align: top; }
tr:last-child td { border-bottom: 0; }
td.n, th.n { text-align: right; }
code { font: 12.5px ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.mark { font-weight: 700; width: 1.6em; white-space: nowrap; }
.good { color: var(--good); } .bad { color: var(--bad); } .open { color: var(--open); }
.row { border-top: 1px solid var(--faint); padding: 6px 0; font-size: 13.5px; }
.row b { margin-right: 6px; } .row .note { margin: 2px 0 0 14px; }
.verdict { border-left: 6px solid; padding: 14px 20px; border-radius: 8px; background: var(--card);
  margin: 22px 0; font-size: 19px; font-weight: 600; }
.verdict small { display: block; font-size: 14px; font-weight: 400; color: var(--soft); }
footer { margin-top: 40px; color: var(--soft); font-size: 12.5px; }
@media (max-width: 560px) { .cards { grid-template-columns: 1fr; } }
@media print { body { background: #fff; } .card, .tile { break-inside: avoid; } }
"""


class Page:
    """A page that is written from top to bottom."""

    def __init__(self, title: str, about: str) -> None:
        """Begin with a heading.

        Args:
            title: The page's.
            about: One line below it.
        """
        self._title = title
        self._parts = [f"<header><h1>{escape(title)}</h1><p>{escape(about)}</p></header>"]

    def html(self, text: str) -> None:
        """Add markup as it is."""
        self._parts.append(text)

    def heading(self, text: str, remark: str = "") -> None:
        """Begin a section."""
        small = f"<small>{escape(remark)}</small>" if remark else ""
        self.html(f"<h2>{escape(text)}{small}</h2>")

    def note(self, text: str) -> None:
        """Add a remark."""
        self.html(f'<p class="note">{escape(text)}</p>')

    def tiles(self, figures: Mapping[str, str]) -> None:
        """Add figures that are seen first, each with what it is."""
        inner = "".join(
            f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
            for name, value in figures.items()
        )
        self.html(f'<div class="tiles">{inner}</div>')

    def cards(self, cards: Iterable[str]) -> None:
        """Add cards side by side."""
        self.html(f'<div class="cards">{"".join(cards)}</div>')

    def text(self) -> str:
        """Return the whole page."""
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self._title)}</title><style>{STYLE}</style></head>"
            f"<body><main>{''.join(self._parts)}</main></body></html>\n"
        )


def chart_card(chart: Chart, note: str = "", *, is_wide: bool = False) -> str:
    """Make a card of a plot."""
    below = f'<p class="note">{escape(note)}</p>' if note else ""
    wide = " wide" if is_wide else ""
    return f'<div class="card{wide}"><h3>{escape(chart.title)}</h3>{chart.svg}{below}</div>'


def table_card(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    note: str = "",
    *,
    is_wide: bool = False,
) -> str:
    """Make a card of a table; columns whose cells are numbers are set to the right."""
    body = [[_cell(each) for each in row] for row in rows]
    numeric = [
        bool(body) and all(is_number or not text for text, is_number in cells)
        for cells in zip(*body, strict=True)
    ] or [False] * len(columns)
    kinds = [' class="n"' if each else "" for each in numeric]
    heads = "".join(
        f"<th{kind}>{escape(name)}</th>" for kind, name in zip(kinds, columns, strict=True)
    )
    lines = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{cell[0]}</td>" for kind, cell in zip(kinds, row, strict=True))
        + "</tr>"
        for row in body
    )
    below = f'<p class="note">{escape(note)}</p>' if note else ""
    wide = " wide" if is_wide else ""
    heading = f"<h3>{escape(title)}</h3>" if title else ""
    return (
        f'<div class="card{wide}">{heading}<table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{lines}</tbody></table>{below}</div>"
    )


def _cell(value: object) -> tuple[str, bool]:
    if value is None:
        return "", False
    if isinstance(value, bool):
        return ("yes" if value else "no"), False
    if isinstance(value, int | float):
        return escape(count_text(value)), True
    return escape(str(value)), re.fullmatch(r"[0-9.,]+%?", str(value)) is not None


def count_text(value: float) -> str:
    """Write a number for a person: `1,234,567`, `12.3`, `0.045`."""
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def time_text(time_us: int) -> str:
    """Write a time in microseconds as UTC, to the second."""
    return datetime.fromtimestamp(time_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")
