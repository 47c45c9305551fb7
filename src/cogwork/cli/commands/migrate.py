"""`cogwork migrate`: what other brokers have, declared here."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.migration.definitions import plan_of
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.single_url import single_url
from cogwork.cli.terminal.visible import visible
from cogwork.cli.unknown_commands import HelpfulGroup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.cli.migration.definitions import Left, Plan

__all__ = ("migrate",)

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

KINDS = ("vhosts", "users", "permissions", "policies", "exchanges", "queues", "bindings")


@click.group(cls=HelpfulGroup, no_args_is_help=False)
def migrate() -> None:
    """Take over the definitions of another broker."""


def _optional_url(
    context: click.Context, parameter: click.Parameter, url: str | None
) -> str | None:
    return None if url is None else single_url(context, parameter, url)


@migrate.command()
@click.argument("file", type=FILE)
@click.argument("url", required=False, callback=_optional_url)
@click.option("--dry-run", is_flag=True, help="Declare nothing; URL is not needed.")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def rabbitmq(file: Path, url: str | None, dry_run: bool, as_json: bool) -> ExitCode:
    """Declare what RabbitMQ has exported.

    FILE is what `rabbitmqctl export_definitions` writes. Virtual hosts, users, permissions,
    policies, exchanges, queues and bindings are declared at the container at URL; what is there
    already stays. What cannot be taken is listed, and makes the exit code 1.
    """
    if url is None and not dry_run:
        raise click.UsageError("give a URL, or --dry-run")
    if url is not None and find_spec("pika") is None:
        raise click.UsageError("pika is missing: pip install 'cogwork[rabbitmq]'")
    plan = plan_of(file.read_bytes())
    failures: list[Left] = []
    if url is not None and not dry_run:
        from cogwork.cli.migration.declaring import declare  # noqa: PLC0415  # needs pika

        failures = declare(url, plan)
    left = [*plan.left, *failures]
    if as_json:
        click.echo(json.dumps(_facts(plan, left, dry_run=dry_run), ensure_ascii=False))
    else:
        _tell(plan, left, "would be declared" if dry_run else "declared", len(failures))
    return ExitCode.ERROR if left else ExitCode.OK


def _facts(plan: Plan, left: Sequence[Left], *, dry_run: bool) -> dict[str, object]:
    counts = {kind: len(getattr(plan, kind)) for kind in KINDS}
    notes = [asdict(each) for each in plan.notes]
    return {**counts, "dry_run": dry_run, "left": [asdict(each) for each in left], "notes": notes}


def _tell(plan: Plan, left: Sequence[Left], verb: str, failed: int) -> None:
    counts = ", ".join(f"{len(getattr(plan, kind)):,} {kind}" for kind in KINDS)
    refused = f", of which {failed:,} were refused" if failed else ""
    click.echo(f"{verb}: {counts}{refused}")
    for title, entries in (("to do", plan.notes), ("not taken", left)):
        for each in entries:
            click.echo(visible(f"{title}: {each.kind} {each.name}: {each.reason}"))
