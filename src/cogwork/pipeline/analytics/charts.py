"""The plots of an analysis."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

from cogwork.pipeline.analytics.sums import by_key, latencies_of, over_time
from cogwork.pipeline.pages.chart import Chart, bars, draw, heat, lines, short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from cogwork.pipeline.analytics.analysis import Analysis

__all__ = ("charts_of",)

SERIES_MAX = 6
BARS_MAX = 10
MATRIX_MAX = 16

KIB = 1024.0


def charts_of(analysis: Analysis) -> dict[str, Chart]:
    """Draw what there is something to see of, by name."""
    made = (
        _records(analysis),
        _sizes(analysis),
        _rates(analysis, "messages_in", "messages that came, a second"),
        _rates(analysis, "messages_out", "deliveries, a second"),
        _addresses(analysis),
        _latency(analysis),
        _links(analysis),
        _matrix(analysis),
        _switching(analysis),
    )
    return {chart.name: chart for chart in made if chart is not None}


def _timed(
    axes: Axes,
    times: Sequence[int],
    series: Sequence[tuple[str, Sequence[float]]],
    ylabel: str,
    *,
    is_log: bool = False,
) -> None:
    xs = [datetime.fromtimestamp(at / 1e6, UTC) for at in times]
    lines(axes, xs, series, ylabel=ylabel, is_log=is_log)
    locator = AutoDateLocator(tz=UTC, minticks=3, maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC))
    axes.yaxis.set_major_formatter(lambda value, _: short(value))


def _records(analysis: Analysis) -> Chart | None:
    rows = [
        {"stream": each["stream"], **interval}
        for each in analysis.streams
        for interval in each["intervals"]
    ]
    kept = [row["stream"] for row in by_key(rows, ["stream"], ["records"])[:SERIES_MAX]]
    times, series = over_time(rows, "stream", "records", analysis.interval_us, kept)
    if not times:
        return None
    return draw(
        "records",
        "Records of the streams, a second",
        lambda axes: _timed(axes, times, series, "records/s"),
    )


def _sizes(analysis: Analysis) -> Chart | None:
    rows = [each for each in analysis.streams if each["sizes"]]
    rows = sorted(rows, key=lambda each: -each["records"])[:BARS_MAX]
    if not rows:
        return None
    kinds = (("half", 0), ("99 of 100", 2), ("largest", 3))
    series = [(name, [each["sizes"][at] for each in rows]) for name, at in kinds]
    return draw(
        "sizes",
        "Sizes of bodies that so many records do not exceed",
        lambda axes: bars(
            axes, [each["stream"] for each in rows], series, label="bytes", is_log=True
        ),
        height_inches=1.2 + 0.5 * len(rows),
    )


def _rates(analysis: Analysis, name: str, title: str) -> Chart | None:
    rows = analysis.containers
    kept = [row["container"] for row in by_key(rows, ["container"], [name])[:SERIES_MAX]]
    times, series = over_time(rows, "container", name, analysis.interval_us, kept)
    if not times:
        return None
    return draw(
        name, f"By container: {title}", lambda axes: _timed(axes, times, series, "messages/s")
    )


def _addresses(analysis: Analysis) -> Chart | None:
    rows = by_key(analysis.addresses, ["address"], ["out", "in"])[:BARS_MAX]
    rows = [row for row in rows if row["in"] or row["out"]]
    if not rows:
        return None
    series = [("came", [row["in"] for row in rows]), ("delivered", [row["out"] for row in rows])]
    return draw(
        "addresses",
        "The busiest addresses",
        lambda axes: bars(axes, [row["address"] for row in rows], series, label="messages"),
        height_inches=1.2 + 0.4 * len(rows),
    )


def _latency(analysis: Analysis) -> Chart | None:
    slowest = list(dict.fromkeys(row["address"] for row in latencies_of(analysis.addresses)))
    if not slowest:
        return None
    rows = [row for row in analysis.addresses if row["measured"]]
    times = sorted({row["at_us"] for row in rows})
    series = []
    for address in slowest[: SERIES_MAX // 2]:
        own = [row for row in rows if row["address"] == address]
        for name in ("p50", "p99"):
            found = {at: [row[name] for row in own if row["at_us"] == at] for at in times}
            values = [max(each) / 1000 if each else float("nan") for each in found.values()]
            series.append((f"{address} {name}", values))

    return draw(
        "latency",
        "How long items waited, the slowest queues",
        lambda axes: _timed(axes, times, series, "ms", is_log=True),
    )


def _links(analysis: Analysis) -> Chart | None:
    rows = [{**row, "link": f"{row['container']} → {row['to']}"} for row in analysis.links]
    kept = [row["link"] for row in by_key(rows, ["link"], ["bytes_out"])[:SERIES_MAX]]
    times, series = over_time(rows, "link", "bytes_out", analysis.interval_us, kept)
    if not times:
        return None
    series = [(name, [value / KIB for value in values]) for name, values in series]
    return draw(
        "links",
        "Over the links, KiB a second",
        lambda axes: _timed(axes, times, series, "KiB/s"),
    )


def _matrix(analysis: Analysis) -> Chart | None:
    names = sorted({name for flow in analysis.flows for name in (flow.source, flow.target)})
    if not names or len(names) > MATRIX_MAX:
        return None
    values = [
        [
            float(sum(f.messages for f in analysis.flows if (f.source, f.target) == (row, column)))
            for column in names
        ]
        for row in names
    ]

    def paint(axes: Axes) -> None:
        heat(axes, names, names, values, label=short)
        axes.set_ylabel("from")
        axes.set_xlabel("to the consumers of")

    return draw(
        "matrix",
        "Messages between containers",
        paint,
        height_inches=min(6.0, 1.4 + 0.42 * len(names)),
    )


def _switching(analysis: Analysis) -> Chart | None:
    runs = analysis.runs[-BARS_MAX:]
    if not runs:
        return None
    names = [
        f"{run.bench.upper()} {run.size_bytes} B, B = {run.brokers}, Q = {run.queues}"
        for run in runs
    ]
    series = [
        ("measured", [run.rate for run in runs]),
        ("estimated for what was asked", [run.estimate for run in runs]),
    ]
    return draw(
        "switching",
        "Switching rates, messages a second",
        lambda axes: bars(axes, names, series, label="messages/s"),
        height_inches=1.2 + 0.5 * len(runs),
        is_wide=True,
    )
