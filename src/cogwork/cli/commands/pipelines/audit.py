"""`cogwork pipeline audit`: proves from an archive that nothing was lost, doubled or swapped."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from cogwork.cli.commands.pipelines.extra import needs_the_extra
from cogwork.cli.commands.pipelines.looking import looking
from cogwork.cli.commands.pipelines.page_file import PageFile
from cogwork.cli.commands.pipelines.session import spark_session
from cogwork.cli.commands.pipelines.spark_options import (
    explain_option,
    explained,
    master_option,
    where_spark_runs,
)
from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.options.quantities import Finite

if TYPE_CHECKING:
    from pathlib import Path

    from cogwork.pipeline.audit.report import Check, Report

__all__ = ("audit",)

ROWS_SHOWN = 10

COLOURS = {"holds": "green", "unproven": "yellow", "violated": "red"}


@click.command()
@click.option(
    "--archive", "place", required=True, metavar="DIR|CATALOG", help="Archive directory or catalog."
)
@click.option(
    "--stream", "streams", multiple=True, metavar="NAME", help="Audit only this; repeatable."
)
@click.option(
    "--queue", "queues", multiple=True, metavar="ADDRESS", help="Audit only this; repeatable."
)
@click.option(
    "--grace",
    "grace_s",
    type=Finite(min=0),
    default=60.0,
    show_default=True,
    metavar="S",
    help="Seconds an item may be neither settled nor held.",
)
@click.option("--html", type=PageFile(), help="Write a report to FILE.")
@master_option
@click.option("--remote", help="Spark Connect server, sc://HOST:PORT.")
@explain_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def audit(
    place: str,
    *,
    streams: tuple[str, ...],
    queues: tuple[str, ...],
    grace_s: float,
    html: Path | None,
    master: str | None,
    remote: str | None,
    explain: bool,
    as_json: bool,
) -> ExitCode:
    """Prove from an archive that nothing was lost, duplicated or reordered.

    Checks the streams in the archive, the queues whose events are in `stream/$audit`, and what
    subscribers recorded there. Lists every violation and exits with 9 if there is one.
    """
    where_spark_runs(master, remote)
    with needs_the_extra():
        from cogwork.pipeline.archive import Archive
        from cogwork.pipeline.archive.catalog import shown
        from cogwork.pipeline.audit.run import audit as look
        from cogwork.pipeline.audit.run import chosen_streams
    with Archive.open(place) as tables:
        chosen_streams(tables.tables(), streams, is_about_queues=bool(queues))  # before Spark
        opened = spark_session("cogwork pipeline audit", master=master, remote=remote)
        with opened as session, looking(session) as tell, explained(session, is_wanted=explain):
            report = look(
                session,
                tables,
                name=shown(place),
                streams=streams,
                queues=queues,
                grace_s=grace_s,
                tell=tell,
            )
    if html is not None:
        with needs_the_extra():
            from cogwork.pipeline.audit.page import page_of
        html.write_text(page_of(report), encoding="utf-8")
    if as_json:
        click.echo(json.dumps(report.as_dict(), ensure_ascii=False, default=str))
    else:
        _show(report)
    return ExitCode.OK if report.is_clean else ExitCode.VIOLATED


def _show(report: Report) -> None:
    about = ""
    for check in report.checks:
        if check.about != about:
            about = check.about
            click.secho(about, bold=True)
        _show_check(check)
    proved = sum(check.verdict == "holds" for check in report.checks)
    click.echo(
        f"{proved} of {len(report.checks)} checks hold, {report.violations:,} violations, "
        f"{report.duration_s:.1f} s"
    )


def _show_check(check: Check) -> None:
    marks = {"holds": "✓", "unproven": "○", "violated": "✗"}
    mark = click.style(marks[check.verdict], fg=COLOURS[check.verdict])
    figures = ", ".join(
        f"{name.replace('_', ' ')} {value:,}" if isinstance(value, int) else f"{name} {value}"
        for name, value in check.figures.items()
        if value is not None and not name.endswith("_us")
    )
    click.echo(f"  {mark} {check.claim}" + (f" ({figures})" if figures else ""))
    if check.remark:
        click.echo(f"    {check.remark}")
    for row in check.rows[:ROWS_SHOWN]:
        click.echo(f"    {json.dumps(row, ensure_ascii=False, default=str)}")
    if check.violations > min(len(check.rows), ROWS_SHOWN):
        click.echo(f"    … {check.violations - min(len(check.rows), ROWS_SHOWN):,} more")
