"""An analysis as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.pipeline.analytics.capacity import WORKING_DAY_S, tm_per_wd
from cogwork.pipeline.analytics.charts import charts_of
from cogwork.pipeline.analytics.sums import by_key, latencies_of, total
from cogwork.pipeline.pages.chart import short
from cogwork.pipeline.pages.page import Page, chart_card, count_text, table_card, time_text

if TYPE_CHECKING:
    from cogwork.pipeline.analytics.analysis import Analysis
    from cogwork.pipeline.pages.chart import Chart

__all__ = ("page_of",)

ROWS_MAX = 20
CONTAINER_HEADS = (
    "container",
    "in",
    "out",
    "in/s",
    "out/s",
    "peak out/s",
    "MB in",
    "MB out",
    "CPU %",
    "memory MB",
)
RUN_HEADS = (
    "rate",
    "bytes",
    "B",
    "Q",
    "KM/s",
    "TM/wd",
    "one broker",
    "efficiency",
    "by broker, M/s",
    "asked for",
    "estimated KM/s",
    "TM/wd",
)
LIMIT_HEADS = (
    "capacity",
    "bytes",
    "KM/s a broker",
    "usable outside",
    "inside",
    "network KM/s",
    "largest Q",
    "B",
    "cluster",
    "XSR KM/s",
    "TM/wd",
)

KILO, MEGA = 1e3, 1e6


def page_of(analysis: Analysis, charts: dict[str, Chart] | None = None) -> str:
    """Make the page.

    Args:
        analysis: The figures.
        charts: Its plots, where they are drawn already.
    """
    drawn = charts_of(analysis) if charts is None else charts
    page = Page("Analytics", f"{analysis.archive} · {analysis.made_at}")
    _tiles(page, analysis)
    _streams(page, analysis, drawn)
    if analysis.containers:
        _containers(page, analysis, drawn)
        _addresses(page, analysis, drawn)
        _traffic(page, analysis, drawn)
    else:
        page.heading("Containers")
        page.note("No heartbeats are archived: run containers with [telemetry].")
    _capacity(page, analysis, drawn)
    page.html(
        "<footer>Times are UTC. TM: thousand million (10⁹). wd: a working day of 8 hours. "
        "KM/s: thousand messages a second.</footer>"
    )
    return page.text()


def _cards(page: Page, *cards: str | None) -> None:
    page.cards(card for card in cards if card)


def _drawn(
    charts: dict[str, Chart], name: str, note: str = "", *, is_wide: bool = False
) -> str | None:
    return chart_card(charts[name], note, is_wide=is_wide) if name in charts else None


def _tiles(page: Page, analysis: Analysis) -> None:
    records = total(analysis.streams, "records")
    figures = {
        "records archived": short(records),
        "of bodies": f"{short(total(analysis.streams, 'bytes'))}B",
    }
    if analysis.containers:
        came, went = (
            total(analysis.containers, "messages_in"),
            total(analysis.containers, "messages_out"),
        )
        figures |= {
            "containers": str(len({row["container"] for row in analysis.containers})),
            "messages came": short(came),
            "deliveries": short(went),
            "peak of a container": f"{short(max(r['peak_out'] for r in analysis.containers))}/s",
        }
    slowest = latencies_of(analysis.addresses)
    if slowest:
        figures["longest p99 of a queue"] = f"{count_text(slowest[0]['p99'] / KILO)} ms"
    if analysis.runs:
        figures["best switching rate"] = f"{short(max(run.rate for run in analysis.runs))}/s"
    page.tiles(figures)


def _streams(page: Page, analysis: Analysis, charts: dict[str, Chart]) -> None:
    page.heading("Streams", "what is archived")
    _cards(page, _drawn(charts, "records"), _drawn(charts, "sizes"))
    rows = [
        (
            each["stream"],
            each["records"],
            each["bytes"],
            *(each["sizes"][:3] or (None,) * 3),
            time_text(each["from_us"]) if each["from_us"] is not None else None,
            time_text(each["to_us"]) if each["to_us"] is not None else None,
        )
        for each in sorted(analysis.streams, key=lambda each: -each["records"])[:ROWS_MAX]
    ]
    names = ("stream", "records", "bytes", "size p50", "p90", "p99", "from", "to")
    page.html('<p class="note"></p>')
    _cards(page, table_card("", names, rows, is_wide=True))


def _containers(page: Page, analysis: Analysis, charts: dict[str, Chart]) -> None:
    page.heading("Containers", "from their heartbeats")
    names = ("messages_in", "messages_out", "bytes_in", "bytes_out", "cpu_s", "seconds")
    rows = [
        (
            row["container"],
            row["messages_in"],
            row["messages_out"],
            row["messages_in"] / row["seconds"],
            row["messages_out"] / row["seconds"],
            max(r["peak_out"] for r in analysis.containers if r["container"] == row["container"]),
            row["bytes_in"] / MEGA,
            row["bytes_out"] / MEGA,
            100 * row["cpu_s"] / row["seconds"],
            max(
                r["memory_bytes"] or 0
                for r in analysis.containers
                if r["container"] == row["container"]
            )
            / MEGA,
        )
        for row in by_key(analysis.containers, ["container"], names)
    ]
    _cards(
        page,
        _drawn(charts, "messages_in"),
        _drawn(charts, "messages_out"),
        table_card("", CONTAINER_HEADS, rows[:ROWS_MAX], is_wide=True),
    )


def _addresses(page: Page, analysis: Analysis, charts: dict[str, Chart]) -> None:
    page.heading("Addresses and latency")
    rows = [
        (
            row["address"],
            row["kind"],
            row["in"],
            row["out"],
            row["bytes_in"] / row["in"] if row["in"] else None,
        )
        for row in by_key(analysis.addresses, ["address", "kind"], ["in", "out", "bytes_in"])
    ]
    waits = [
        (
            row["address"],
            row["container"],
            *(row[name] / KILO for name in ("p50", "p90", "p99", "p999")),
        )
        for row in latencies_of(analysis.addresses)
    ]
    note = (
        "How long items waited for their first attempt. Of several heartbeats p50 is the mean, "
        "weighted by items, the others are the greatest; values stand in bins of powers of two."
    )
    heads = ("queue", "container", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms")
    _cards(
        page,
        _drawn(charts, "addresses"),
        _drawn(charts, "latency"),
        table_card("Addresses", ("address", "kind", "in", "out", "bytes each"), rows[:ROWS_MAX]),
        table_card("Latency", heads, waits[:ROWS_MAX], note) if waits else None,
    )


def _traffic(page: Page, analysis: Analysis, charts: dict[str, Chart]) -> None:
    if not analysis.links and not analysis.flows:
        return
    page.heading("Traffic between containers")
    names = ("bytes_out", "bytes_in", "out", "in")
    links = [
        (
            f"{row['container']} → {row['to']}",
            row["out"],
            row["in"],
            row["bytes_out"] / MEGA,
            row["bytes_in"] / MEGA,
        )
        for row in by_key(analysis.links, ["container", "to"], names)
    ]
    moves = [
        (
            f"{move.address}: from {move.source} to {move.target}",
            move.messages,
            move.size_bytes / MEGA,
            f"{move.share:.0%}",
        )
        for move in analysis.moves
    ]
    advice = (
        table_card(
            "Where to move consumers",
            ("consumers of", "messages saved", "MB saved", "of all between containers"),
            moves,
            "What would not go between containers any more, less what would begin to.",
            is_wide=True,
        )
        if moves
        else '<div class="card wide"><h3>Where to move consumers</h3>'
        '<p class="note">No move would save anything worth it.</p></div>'
    )
    heads = ("link", "messages out", "in", "MB out", "in")
    _cards(
        page,
        _drawn(charts, "matrix"),
        _drawn(charts, "links"),
        table_card("Links", heads, links[:ROWS_MAX], is_wide=True) if links else None,
        advice,
    )


def _capacity(page: Page, analysis: Analysis, charts: dict[str, Chart]) -> None:
    gigabits = analysis.bandwidth_bit_s / 1e9
    page.heading("Capacity", f"internal and external switching rates; {gigabits:g} Gbit/s a broker")
    runs = [
        (
            run.bench.upper(),
            run.size_bytes,
            run.brokers,
            run.queues,
            run.rate / KILO,
            tm_per_wd(run.rate),
            run.single_rate / KILO if run.single_rate else None,
            f"{run.efficiency:.0%}" if run.efficiency else None,
            " ".join(short(each["rate"] or 0) for each in run.by_broker),
            f"B = {run.wanted_brokers}, Q = {run.wanted_queues}",
            run.estimate / KILO,
            tm_per_wd(run.estimate),
        )
        for run in analysis.runs
    ]
    limits = [
        (
            each.source,
            each.size_bytes,
            each.capacity / KILO,
            f"{each.outside:.0%}",
            f"{each.inside:.0%}",
            each.network_rate / KILO,
            f"{each.q} ({each.q_exact:.2f})",
            each.brokers,
            each.cluster_size,
            each.xsr / KILO,
            each.tm_per_wd,
        )
        for each in analysis.capacity
    ]
    measured = (
        "Measured on what was there: where brokers, faucets and clients share a machine, a figure "
        "is theirs together. Estimated is B · Q · capacity, with 10 KM/s of 1000 bytes or 25 KM/s "
        "of 250 bytes a broker."
    )
    _cards(
        page,
        _drawn(charts, "switching", is_wide=True),
        table_card("Switching rates", RUN_HEADS, runs, measured, is_wide=True)
        if runs
        else '<div class="card wide"><p class="note">Nothing measured is archived: '
        "cogwork bench isr --telemetry, and xsr.</p></div>",
        table_card(
            "How large fan-out and cluster may be",
            LIMIT_HEADS,
            limits,
            "Q = bandwidth / (message size · capacity of a broker), to the nearest; B has the "
            f"same limit inside; the cluster is 1 + B. A working day has {WORKING_DAY_S:,} s. A "
            "measured capacity is what came in at the broker that fans out, in the newest external "
            "run.",
            is_wide=True,
        ),
    )
