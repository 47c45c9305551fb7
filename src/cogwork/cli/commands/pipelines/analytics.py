"""`cogwork pipeline analytics`: rates, sizes, latencies, traffic and capacity from an archive."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from cogwork.cli.commands.pipelines.extra import needs_the_extra
from cogwork.cli.commands.pipelines.looking import looking
from cogwork.cli.commands.pipelines.page_file import PageFile, PlotFolder
from cogwork.cli.commands.pipelines.session import spark_session
from cogwork.cli.commands.pipelines.spark_options import (
    explain_option,
    explained,
    master_option,
    where_spark_runs,
)
from cogwork.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

    from cogwork.pipeline.analytics.analysis import Analysis

__all__ = ("analytics",)


@click.command()
@click.option(
    "--archive", "place", required=True, metavar="DIR|CATALOG", help="Archive directory or catalog."
)
@click.option("--html", type=PageFile(), help="Write a page to FILE.")
@click.option("--png", type=PlotFolder(), help="Write plots to this directory.")
@click.option(
    "--bandwidth",
    default="1Gbit",
    show_default=True,
    metavar="RATE",
    help="Bandwidth of a broker's network.",
)
@click.option(
    "--telemetry",
    default="$telemetry",
    show_default=True,
    metavar="STREAM",
    help="Stream of the heartbeats.",
)
@master_option
@click.option("--remote", help="Spark Connect server, sc://HOST:PORT.")
@explain_option
@click.option("--json", "as_json", is_flag=True, help="Print all figures as one JSON object.")
def analytics(
    place: str,
    *,
    html: Path | None,
    png: Path | None,
    bandwidth: str,
    telemetry: str,
    master: str | None,
    remote: str | None,
    explain: bool,
    as_json: bool,
) -> ExitCode:
    """Show rates, sizes, latencies, traffic and capacity.

    Traffic means traffic between containers. Figures of streams come from their tables; those of
    containers, addresses and links from the heartbeats in the archive; switching rates from the
    results of `cogwork bench isr` and `xsr`.
    """
    where_spark_runs(master, remote)
    with needs_the_extra():
        from cogwork.pipeline.analytics.analysis import analyse
        from cogwork.pipeline.analytics.capacity import parse_bandwidth
        from cogwork.pipeline.analytics.errors import AnalyticsError
        from cogwork.pipeline.archive import Archive
        from cogwork.pipeline.archive.catalog import shown
    try:
        bandwidth_bit_s = parse_bandwidth(bandwidth)
    except AnalyticsError as error:
        raise click.BadParameter(str(error), param_hint="--bandwidth") from error
    with Archive.open(place) as tables:
        opened = spark_session("cogwork pipeline analytics", master=master, remote=remote)
        with opened as session, looking(session) as tell, explained(session, is_wanted=explain):
            analysis = analyse(
                session,
                tables,
                bandwidth_bit_s,
                name=shown(place),
                telemetry=telemetry.removeprefix("/").removeprefix("stream/"),
                tell=tell,
            )
    if html is not None or png is not None:
        _draw(analysis, html, png)
    if as_json:
        click.echo(json.dumps(analysis.as_dict(), ensure_ascii=False, default=str))
    else:
        _show(analysis)
    return ExitCode.OK


def _draw(analysis: Analysis, html: Path | None, png: Path | None) -> None:
    with needs_the_extra():
        from cogwork.pipeline.analytics.charts import charts_of
        from cogwork.pipeline.analytics.page import page_of
    charts = charts_of(analysis)
    if png is not None:
        for chart in charts.values():
            chart.save(png)
    if html is not None:
        html.write_text(page_of(analysis, charts), encoding="utf-8")


def _show(analysis: Analysis) -> None:
    from cogwork.pipeline.analytics.sums import by_key, latencies_of

    for each in analysis.streams:
        click.echo(f"stream/{each['stream']}: {each['records']:,} records, {each['bytes']:,} bytes")
    for row in by_key(analysis.containers, ["container"], ["messages_in", "messages_out"]):
        came, went = row["messages_in"], row["messages_out"]
        click.echo(f"container {row['container']}: {came:,} messages came, {went:,} deliveries")
    for row in latencies_of(analysis.addresses):
        click.echo(
            f"{row['address']} at {row['container']}: items waited p50 {row['p50'] / 1000:.3g} ms, "
            f"p99 {row['p99'] / 1000:.3g} ms"
        )
    for move in analysis.moves:
        click.echo(
            f"move the consumers of {move.address} from {move.source} to {move.target}: "
            f"{move.messages:,} messages less between containers ({move.share:.0%})"
        )
    for run in analysis.runs:
        click.echo(
            f"{run.bench.upper()} of {run.brokers} brokers, {run.queues} queues, "
            f"{run.size_bytes} B: {run.rate:,.0f} messages/s"
        )
    for limit in analysis.capacity:
        click.echo(
            f"{limit.source}, {limit.size_bytes} B, {limit.outside:.0%} of the network outside, "
            f"{limit.inside:.0%} inside: Q {limit.q}, B {limit.brokers}, "
            f"cluster of {limit.cluster_size}, XSR {limit.xsr:,.0f} messages/s"
        )
