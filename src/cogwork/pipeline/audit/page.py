"""An audit's report as a page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from cogwork.pipeline.audit.report import Verdict
from cogwork.pipeline.pages.chart import bars, draw
from cogwork.pipeline.pages.page import Page, chart_card, count_text, time_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cogwork.pipeline.audit.report import Check, Report

__all__ = ("MARKS", "figure_text", "page_of", "title_of")

MARKS = {Verdict.HOLDS: "✓", Verdict.UNPROVEN: "○", Verdict.VIOLATED: "✗"}

CLASSES = {Verdict.HOLDS: "good", Verdict.UNPROVEN: "open", Verdict.VIOLATED: "bad"}


def page_of(report: Report) -> str:
    """Make the page: the verdict, each thing with its checks, and how far out of order."""
    page = Page("Audit", f"{report.archive} · {report.made_at} · {report.duration_s:.1f} s")
    verdict = _verdict_of(report)
    page.html(
        f'<div class="verdict {CLASSES[verdict]}">{MARKS[verdict]} {escape(title_of(report))}'
        f"<small>{escape(_summary(report))}</small></div>"
    )
    for heading, checks in _sections(report):
        page.heading(heading)
        page.cards(_card(about, checks, about) for about in dict.fromkeys(c.about for c in checks))
    measured = [check for check in report.checks if check.figures.get("measured")]
    if measured:
        page.heading("Order of the queues", "how many later items went out before an item")
        chart = draw(
            "disorder",
            "Disorder by queue",
            lambda axes: _disorder(axes, measured),
            height_inches=1.2 + 0.7 * len(measured),
            is_wide=True,
        )
        page.cards([chart_card(chart, is_wide=True)])
    page.html("<footer>✓ proved · ○ in order as far as it was seen, no proof · ✗ violated</footer>")
    return page.text()


def title_of(report: Report) -> str:
    """Return the outcome in one line."""
    if not report.is_clean:
        return f"{report.violations:,} violation{'s' * (report.violations != 1)}"
    if _verdict_of(report) is Verdict.UNPROVEN:
        return "nothing wrong was found, and not everything is proved"
    return "nothing lost, nothing doubled, everything in order"


def _verdict_of(report: Report) -> Verdict:
    found = {check.verdict for check in report.checks}
    return next(
        each
        for each in (Verdict.VIOLATED, Verdict.UNPROVEN, Verdict.HOLDS)
        if each in found or each is Verdict.HOLDS
    )


def _summary(report: Report) -> str:
    records = sum(check.figures.get("records", 0) for check in report.checks if _is_whole(check))
    items = sum(check.figures.get("items", 0) for check in report.checks)
    return f"{len(report.checks)} checks of {records:,} records and {items:,} items"


def _is_whole(check: Check) -> bool:
    return "digest" in check.figures


def _sections(report: Report) -> list[tuple[str, list[Check]]]:
    streams = [check for check in report.checks if check.about.startswith("stream/")]
    queues = [check for check in report.checks if not check.about.startswith("stream/")]
    return [(name, each) for name, each in (("Queues", queues), ("Streams", streams)) if each]


def _card(title: str, checks: list[Check], about: str) -> str:
    own = [check for check in checks if check.about == about]
    rows = "".join(_line(check) for check in own)
    offending = "".join(_offending(check) for check in own if check.rows)
    return f'<div class="card"><h3>{escape(title)}</h3><table>{rows}</table>{offending}</div>'


def _line(check: Check) -> str:
    figures = " · ".join(
        f"{name.removesuffix('_us').replace('_', ' ')} {figure_text(name, value)}"
        for name, value in check.figures.items()
        if value is not None
    )
    remark = f'<p class="note">{escape(check.remark)}</p>' if check.remark else ""
    return (
        f'<tr><td class="mark {CLASSES[check.verdict]}">{MARKS[check.verdict]}</td>'
        f'<td>{escape(check.claim)}<p class="note">{escape(figures)}</p>{remark}</td></tr>'
    )


def figure_text(name: str, value: object) -> str:
    """Write a figure for a person; those that end in `_us` are times."""
    if name.endswith("_us") and isinstance(value, int):
        return time_text(value)
    return count_text(value) if isinstance(value, int | float) else str(value)


def _offending(check: Check) -> str:
    rows = "".join(map(_row, check.rows))
    more = check.violations - len(check.rows)
    tail = f'<p class="note">and {more:,} more</p>' if more > 0 else ""
    return f'<h3 class="bad">Not so: {escape(check.claim)}</h3>{rows}{tail}'


def _row(row: dict[str, Any]) -> str:
    """Show what is wrong, and below it the events that say so."""
    said = _told({name: value for name, value in row.items() if name not in ("kind", "events")})
    events = "".join(f'<p class="note">{_told(each)}</p>' for each in row.get("events", ()))
    return f'<div class="row"><b class="bad">{escape(row["kind"])}</b>{said}{events}</div>'


def _told(fields: dict[str, Any]) -> str:
    parts = (
        f"{name.removesuffix('_us').replace('_', ' ')} <code>"
        f"{escape(time_text(value) if name.endswith('_us') else str(value))}</code>"
        for name, value in fields.items()
        if value is not None
    )
    return " · ".join(parts)


def _disorder(axes: Axes, checks: list[Check]) -> None:
    names = [check.about for check in checks]
    kinds = (("half", "disorder_p50"), ("99 of 100", "disorder_p99"), ("all", "disorder_max"))
    series = [(label, [check.figures[name] for check in checks]) for label, name in kinds]
    bars(axes, names, series, label="disorder that so many items did not exceed", is_log=True)
