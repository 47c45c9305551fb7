"""Plots, as SVG for a page and as PNG for a file.

Theory of operation. Matplotlib draws without a display; text stays text in the SVG, so that a page
has it in its own font. All plots have the same few colours, which people with a colour deficiency
can tell apart, thin lines and no frame.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

__all__ = ("COLOURS", "Chart", "bars", "draw", "heat", "lines", "short")

COLOURS = ("#3565c4", "#e0792b", "#2f9e77", "#b04a8f", "#8a6d1f", "#5b6b7c", "#c0392b", "#3aa6c9")
INK, FAINT = "#27313b", "#d9dfe5"

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "text.parse_math": False,  # a name may have any number of `$`
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 11,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "cogwork",
    "figure.facecolor": "white",
}

WIDTH_INCHES, HEIGHT_INCHES = 7.2, 3.0
DOTS_PER_INCH = 150

LEGEND_LETTERS = 60
"""What fits into one line of a legend."""


class Chart(NamedTuple):
    """A plot.

    Attributes:
        name: What its file is called, without a suffix.
        title: What it shows.
        svg: The drawing, for a page.
        png: The same, for a file.
    """

    name: str
    title: str
    svg: str
    png: bytes

    def save(self, directory: Path) -> Path:
        """Write the PNG; return where it is."""
        directory.mkdir(parents=True, exist_ok=True)
        file = directory / f"{self.name}.png"
        file.write_bytes(self.png)
        return file


def draw(
    name: str,
    title: str,
    paint: Callable[[Axes], object],
    *,
    height_inches: float = HEIGHT_INCHES,
    is_wide: bool = False,
) -> Chart:
    """Make a plot.

    Args:
        name: What its file is called, without a suffix.
        title: What it shows.
        paint: Draws into the axes.
        height_inches: How high it is.
        is_wide: Whether it takes the whole width of a page.
    """
    with mpl.rc_context(STYLE):
        width_inches = WIDTH_INCHES * (2 if is_wide else 1)
        figure = Figure(figsize=(width_inches, height_inches), layout="constrained")
        FigureCanvasAgg(figure)
        paint(figure.add_subplot())
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None}, transparent=True)
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        pixels = io.BytesIO()
        figure.savefig(pixels, format="png", dpi=DOTS_PER_INCH)
    svg = re.sub(r"^.*?(?=<svg )", "", drawn.getvalue(), flags=re.DOTALL)
    return Chart(name, title, _unique(svg, name), pixels.getvalue())


def _unique(svg: str, name: str) -> str:
    """Keep the ids of several drawings on a page apart, and let the page say how wide."""
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = svg.replace('href="#', f'href="#{name}-').replace("url(#", f"url(#{name}-")
    return re.sub(r'(<svg [^>]*?) width="[^"]*"', r"\1", svg, count=1).replace(
        ' height="', ' data-height="', 1
    )


def lines(
    axes: Axes,
    xs: Sequence[Any],
    series: Sequence[tuple[str, Sequence[float]]],
    *,
    ylabel: str,
    is_log: bool = False,
) -> None:
    """Draw a line for each series, with its name in a legend above."""
    for at, (name, values) in enumerate(series):
        axes.plot(
            xs,
            values,
            label=f" {name}" if name.startswith("_") else name,  # else no legend has it
            color=COLOURS[at % len(COLOURS)],
            linewidth=1.8,
            marker="o" if len(xs) <= 48 else None,
            markersize=3,
        )
    axes.set_ylabel(ylabel)
    if is_log:
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(_ShortBetween())
    else:
        axes.set_ylim(bottom=0)
    _legend(axes, len(series))


def bars(
    axes: Axes,
    names: Sequence[str],
    series: Sequence[tuple[str, Sequence[float]]],
    *,
    label: str,
    is_log: bool = False,
) -> None:
    """Draw horizontal bars, a group for each name, the first name at the top."""
    height = 0.8 / max(1, len(series))
    for at, (name, values) in enumerate(series):
        places = [each + (at - (len(series) - 1) / 2) * height for each in range(len(names))]
        colour = COLOURS[at % len(COLOURS)]
        drawn = axes.barh(places, values, height * 0.9, label=name, color=colour)
        axes.bar_label(drawn, labels=[short(each) for each in values], padding=3, fontsize=8)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(label)
    axes.margins(x=0.12)
    if is_log:
        axes.set_xscale("symlog", linthresh=1)
    axes.xaxis.set_major_formatter(lambda value, _: short(value))
    if len(series) > 1:
        _legend(axes, len(series))


def heat(
    axes: Axes,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float]],
    *,
    label: Callable[[float], str],
) -> None:
    """Draw a table whose cells are the darker, the greater their value is."""
    axes.imshow(values, cmap="Blues", aspect="auto", vmin=0)
    greatest = max((value for row in values for value in row), default=0.0) or 1.0
    for y, row in enumerate(values):
        for x, value in enumerate(row):
            if value:
                colour = "white" if value > greatest * 0.55 else INK
                axes.text(x, y, label(value), ha="center", va="center", fontsize=9, color=colour)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def short(value: float) -> str:
    """Write a number in few digits: `950`, `12.5k`, `3.1M`."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{unit}"
    return f"{value:.3g}"


class _ShortBetween(LogFormatter):
    """Writes numbers between powers of ten in few digits, where there is room for them.

    Matplotlib's own are formulas, which are not read here.
    """

    def __call__(self, x: float, pos: int | None = None) -> str:
        return short(x) if super().__call__(x, pos) else ""


def _legend(axes: Axes, count: int) -> None:
    letters = sum(map(len, axes.get_legend_handles_labels()[1]))
    columns = min(count, 5 if letters < LEGEND_LETTERS else 3)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        borderaxespad=0.2,
        handlelength=1.2,
        columnspacing=1.4,
    )
