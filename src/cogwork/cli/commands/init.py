"""`cogwork init`: the configuration of one machine, or of several that are linked."""

from __future__ import annotations

import json
import shlex
import socket
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cogwork.cli.initial.machines import BadMachine, machines_of
from cogwork.cli.initial.plans import FILE, plan_mesh, plan_single
from cogwork.cli.terminal.visible import visible

if TYPE_CHECKING:
    from cogwork.cli.initial.machines import Machine
    from cogwork.cli.initial.plans import Plan

__all__ = ("init",)

FOLDER = click.Path(file_okay=False, path_type=Path)

UNENCRYPTED = "without --tls passwords and messages cross the network unencrypted"


@click.command()
@click.argument("folder", metavar="[DIR]", type=FOLDER, default=Path())
@click.option(
    "--machines",
    metavar="NAME[=HOST[:PORT]],...",
    help="Machines that are linked, each with a folder of its own in DIR. HOST is where it is "
    "reached, NAME itself by default.",
)
@click.option("--tls", is_flag=True, help="Encrypt, with certificates of a private authority.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def init(folder: Path, machines: str | None, tls: bool, as_json: bool) -> None:
    """Write a configuration with comments.

    For one machine, DIR/cogwork.toml; DIR is the present directory by default. Linked machines and
    those with --tls get a user `admin`, whose password is in DIR/admin.password. Files that exist
    are never overwritten.
    """
    if tls and find_spec("cryptography") is None:
        raise click.UsageError("--tls needs cryptography: pip install 'cogwork[tls]'")
    plan = _plan(machines, tls=tls)
    existing = plan.existing(folder)
    if existing:
        raise click.ClickException(
            f"{', '.join(map(str, existing[:3]))}{' and more' if existing[3:] else ''}: already "
            "there, and not overwritten (expected a directory without them)"
        )
    plan.write(folder)
    if as_json:
        click.echo(json.dumps(_facts(plan, folder), ensure_ascii=False))
        return
    count = len(plan.files)
    noun = "file" if count == 1 else "files"
    click.echo(visible(f"{count} {noun} written in {folder.resolve()}"))
    for line in _next_steps(plan, folder):
        click.echo(visible(line))
    if machines is not None and not tls:
        click.echo(f"cogwork: warning: {UNENCRYPTED}", err=True)


def _plan(machines: str | None, *, tls: bool) -> Plan:
    if machines is None:
        name = socket.gethostname()
        try:
            (own,) = machines_of(name, tls=tls)
        except BadMachine:  # as of a machine that nobody has named
            return plan_single("cogwork", "localhost", tls=tls)
        return plan_single(own.id, own.host, tls=tls)
    try:
        return plan_mesh(machines_of(machines, tls=tls), tls=tls)
    except BadMachine as error:
        raise click.BadParameter(str(error), param_hint="--machines") from error


def _facts(plan: Plan, folder: Path) -> dict[str, object]:
    return {
        "folder": str(folder.resolve()),
        "files": [str(name) for name in plan.files],
        "machines": [
            {"id": each.id, "url": _url(plan, each), "config": str(plan.folders[each.id] / FILE)}
            for each in plan.machines
        ],
        "user": plan.admin,
        "password_file": f"{plan.admin}.password" if plan.admin else None,
        "ca_file": "ca/ca.pem" if plan.tls else None,
    }


def _url(plan: Plan, machine: Machine) -> str:
    if plan.admin is None:
        return "amqp://localhost"
    return f"{'amqps' if plan.tls else 'amqp'}://{plan.admin}@{machine.place}"


def _next_steps(plan: Plan, folder: Path) -> list[str]:
    """List the commands that come next."""
    several = len(plan.folders) > 1
    steps = []
    for machine in plan.machines:
        file = folder / plan.folders[machine.id] / FILE
        where = f"copy {file.parent} to {machine.host}, and there" if several else "start it"
        shown = FILE if several else shlex.quote(str(file))
        steps.append(f"  {where}: cogwork serve --config {shown}")
    options = []
    if plan.tls:
        options += ["--ca-file", str(folder / "ca" / "ca.pem")]
    if plan.admin is not None:
        options += ["--password-file", str(folder / f"{plan.admin}.password")]
    command = ("cogwork", "status", _url(plan, plan.machines[0]), *options)
    return [*steps, f"  look at it: {shlex.join(command)}"]
