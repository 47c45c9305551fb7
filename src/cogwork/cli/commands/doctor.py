"""`cogwork doctor`: checks of containers and configurations, with advice."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cogwork.cli.doctor.configurations import check_configuration
from cogwork.cli.doctor.examination import examine_all
from cogwork.cli.doctor.finding import Status, worst
from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.options.certificates import certified
from cogwork.cli.terminal.tables import console
from cogwork.cli.terminal.visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.cli.doctor.finding import Finding

__all__ = ("doctor",)

PATH = click.Path(dir_okay=False, path_type=Path)

STYLES = {Status.OK: "green", Status.WARNING: "yellow", Status.FAIL: "bold red"}


@click.command()
@click.argument("urls", metavar="[URL]...", nargs=-1)
@click.option("--config", type=PATH, metavar="FILE", help="Configuration file to check.")
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings, too.")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor(urls: tuple[str, ...], config: Path | None, strict: bool, as_json: bool) -> ExitCode:
    """Check containers and a configuration, and advise.

    Of the containers at URL: clock, memory, descriptors, disk, certificates, versions, links,
    queues, streams and their cluster. Of a configuration, before a container is started: the file
    itself, its certificates, and the disk of its data directory. Exits with 1 if a check fails.
    """
    if not urls and config is None:
        raise click.UsageError("nothing to check: give a URL or --config")
    # What is about to expire is a finding, and need not be logged besides.
    logging.getLogger("cogwork").addHandler(logging.NullHandler())
    findings = [] if config is None else list(check_configuration(config))
    findings += examine_all(urls) if urls else []
    counts = {status: sum(each.status == status for each in findings) for status in Status}
    if as_json:
        told = {
            "checks": [each.as_dict() for each in findings],
            "ok": counts[Status.OK],
            "warnings": counts[Status.WARNING],
            "failed": counts[Status.FAIL],
        }
        click.echo(json.dumps(told, ensure_ascii=False))
    else:
        _show(findings)
        ok, warnings, failed = counts.values()
        click.echo(f"{ok} OK, {warnings} WARNING, {failed} FAIL")
    bad = (Status.FAIL, Status.WARNING) if strict else (Status.FAIL,)
    return ExitCode.ERROR if worst(findings) in bad else ExitCode.OK


def _show(findings: Sequence[Finding]) -> None:
    screen = console()
    for each in findings:
        screen.print(f"{each.status:8}", style=STYLES[each.status], end="")
        screen.print(visible(f"{each.check}, {each.subject}: {each.found}"), soft_wrap=True)
        for text in filter(None, (each.meaning, each.advice and f"To do: {each.advice}")):
            screen.print(visible(f"        {text}"), soft_wrap=True)
