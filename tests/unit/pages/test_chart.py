"""Plots of what others have named."""

from __future__ import annotations

import pytest

from cogwork.pages.chart import draw, lines

NAMES = ("orders", "_events", "$telemetry → a$b", r"queue/$\frac$")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_stands_in_the_legend_as_it_is(name: str) -> None:
    chart = draw("a", "b", lambda axes: lines(axes, [1], [(name, [1.0])], ylabel="c"))
    assert f">{name}<" in chart.svg.replace("> ", ">")
