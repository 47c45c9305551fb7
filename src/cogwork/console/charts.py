"""Line charts as SVG, drawn here: a browser needs no script for them."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from cogwork.console.history import GAP_S, SPAN_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.console.history import Point

__all__ = ("Line", "line_chart")

WIDTH, HEIGHT = 600, 150
LEFT, RIGHT, TOP, BOTTOM = 8, 8, 22, 18
MINUTES = (0, 1, 2, 3, 4, 5)

_STEPS = (1, 2, 5, 10)


class Line(NamedTuple):
    """A line of a chart.

    Attributes:
        title: What it shows.
        points: In the order of their times.
    """

    title: str
    points: Sequence[Point]


def line_chart(
    title: str, lines: Sequence[Line], written: Callable[[float], str], *, is_binary: bool = False
) -> Markup:
    """Draw lines over the last five minutes.

    Args:
        title: What the chart shows, for those who do not see it, too.
        lines: At most four; their colours are those of the style sheet.
        written: How a number is written.
        is_binary: Whether round numbers are powers of two, as of sizes.
    """
    most = max((y for line in lines for _, y in line.points), default=0)
    most = _power_above(most) if is_binary else _round_above(most)
    parts = [
        Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
            WIDTH, HEIGHT, _told(title, lines, written)
        ),
        *_grid(most, written),
    ]
    for number, line in enumerate(lines, 1):
        parts += [_drawn(run, number, most) for run in _runs(line.points)]
    return Markup("").join([*parts, Markup("</svg>")])


def _drawn(run: Sequence[Point], number: int, most: float) -> Markup:
    points = " ".join(f"{_x(x):.1f},{_y(y, most):.1f}" for x, y in run)
    return Markup('<polyline class="line line{}" points="{}"/>').format(number, points)


def _told(title: str, lines: Sequence[Line], written: Callable[[float], str]) -> str:
    now = [f"{each.title} {written(each.points[-1][1])}" for each in lines if each.points]
    return f"{title}: {', '.join(now) or 'no figures yet'}"


def _grid(most: float, written: Callable[[float], str]) -> list[Markup]:
    """Draw the lines behind: minutes, and what the top is."""
    parts = [
        Markup('<line class="grid" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>').format(
            LEFT, WIDTH - RIGHT, f"{_y(share * most, most):.1f}"
        )
        for share in (0, 0.5, 1)
    ]
    parts.append(Markup('<text x="{}" y="{}">{}</text>').format(LEFT, TOP - 7, written(most)))
    for minute in MINUTES:
        place = "start" if minute == MINUTES[-1] else "middle" if minute else "end"
        text = "now" if minute == 0 else f"-{minute} min"
        parts.append(
            Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format(
                "minor" if minute in (1, 2, 3, 4) else "",
                f"{_x(-60 * minute):.1f}",
                HEIGHT - 4,
                place,
                text,
            )
        )
    return parts


def _runs(points: Sequence[Point]) -> list[list[Point]]:
    """Part a line where nobody looked for a while."""
    runs: list[list[Point]] = [[points[0]]] if points else []
    for (before_s, _), point in pairwise(points):
        if point[0] - before_s > GAP_S:
            runs.append([])
        runs[-1].append(point)
    return runs


def _round_above(value: float) -> float:
    """Return a round number that is not below a value."""
    if value <= 0:
        return 1
    power = 1.0
    while power * 10 < value:
        power *= 10
    while power > value:
        power /= 10
    return next(step * power for step in _STEPS if step * power >= value)


def _power_above(value: float) -> float:
    """Return a power of two that is not below a value."""
    return float(1 << max(0, math.ceil(value) - 1).bit_length())


def _x(seconds: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (1 + max(seconds, -SPAN_S) / SPAN_S)


def _y(value: float, most: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / most
