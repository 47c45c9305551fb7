"""Plots of what others have named."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from cogwork.pipeline.pages.chart import draw, lines, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = ("orders", "_events", "$telemetry → a$b", r"queue/$\frac$")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_stands_in_the_legend_as_it_is(name: str) -> None:
    chart = draw("a", "b", lambda axes: lines(axes, [1], [(name, [1.0])], ylabel="c"))
    assert f">{name}<" in chart.svg.replace("> ", ">")


@pytest.mark.parametrize("values", [[200.0, 2100.0], [0.3, 0.9], [1.0, 1e6]])
def test_a_logarithmic_axis_has_numbers_and_no_formulas(values: list[float]) -> None:
    def paint(axes: Axes) -> None:
        lines(axes, [1, 2], [("orders", values)], ylabel="ms", is_log=True)
        axes.yaxis.set_major_formatter(lambda value, _: short(value))

    svg = draw("a", "b", paint).svg
    assert "$" not in svg
    assert re.search(r">\s?(200|0\.3|100k)<", svg)
