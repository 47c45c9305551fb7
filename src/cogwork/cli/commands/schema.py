"""`cogwork schema`: the schemas of addresses from the outside, through their stream."""

from __future__ import annotations

import base64
import json
import sys
from codecs import BOM_UTF8
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.management.reach import reach
from cogwork.cli.management.unopened import explained
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.given_addresses import an_address
from cogwork.cli.options.quantities import Whole
from cogwork.cli.terminal.tables import console, table, widened
from cogwork.cli.unknown_commands import HelpfulGroup
from cogwork.dataplane.message.messages import Message
from cogwork.schema.errors import InvalidAddress
from cogwork.schema.events import decode_event
from cogwork.schema.registry import SCHEMAS, demand_pattern

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from cogwork.client import Client
    from cogwork.schema import Registered

__all__ = ("schema",)

T = TypeVar("T")

JSON_SUFFIX = ".json"
PROTOBUF_SUFFIXES = (".binpb", ".desc", ".pb", ".protoset")

COLUMNS = {
    "address": "address",
    "kind": "kind",
    "message": "message",
    "version": "version",
    "size_bytes": "size",
}

FILE = click.Path(exists=True, dir_okay=False, allow_dash=True)


def a_pattern(ctx: click.Context, parameter: click.Parameter, text: str) -> str:
    """Refuse, as a parameter's callback, what nothing can have a schema at."""
    try:
        demand_pattern(an_address(ctx, parameter, text))
    except InvalidAddress as error:
        raise click.BadParameter(str(error)) from error
    return text


@click.group(cls=HelpfulGroup, no_args_is_help=False)
def schema() -> None:
    """Manage the schemas of addresses: register, list, show, check."""


@schema.command()
@click.argument("url")
@click.argument("address", callback=a_pattern)
@click.argument("file", type=FILE)
@click.option(
    "--kind",
    type=click.Choice(["json", "protobuf"]),
    show_default="as FILE is named",
    help="Kind of schema in FILE.",
)
@click.option("--message", default="", help="Full name of the message type (Protocol Buffers).")
@click.option(
    "--incompatible", is_flag=True, help="Register it even if it rejects messages that were valid."
)
@click.option("--dry-run", is_flag=True, help="Only report what is wrong with it.")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def register(
    url: str,
    address: str,
    file: str,
    *,
    kind: str | None,
    message: str,
    incompatible: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Register the schema in FILE for an address or a pattern.

    Adds a new version if it already has a schema.
    """
    definition = _read(file).removeprefix(BOM_UTF8)
    chosen = _kind_of(file, kind, message)

    async def work(client: Client) -> tuple[int, bool]:
        schemas = client.schemas
        before = await schemas.versions(address)
        version = before[-1].version if before else 0
        if before and before[-1].is_like(chosen, definition, message):
            return version, False
        if dry_run:
            registry = await schemas.registry()
            event = registry.register(
                address, chosen, definition, message, must_fit=not incompatible
            )
            return decode_event(event).version, True
        made = await schemas.register(
            address, definition, kind=chosen, message=message, must_fit=not incompatible
        )
        return made, True

    version, is_new = _reach(url, work)
    if as_json:
        found = {"address": address, "version": version, "is_new": is_new, "dry_run": dry_run}
        click.echo(json.dumps(found, ensure_ascii=False))
    elif not is_new:
        click.echo(f"{address} has this schema as version {version}")
    else:
        click.echo(f"{address} {'would have' if dry_run else 'has'} version {version}")


def _kind_of(file: str, kind: str | None, message: str) -> str:
    """Return what a file holds: what the user says, else what its name does.

    Raises:
        click.UsageError: A message is named, and the file is called JSON.
    """
    if kind is not None:
        return kind
    if message and file.endswith(JSON_SUFFIX):
        raise click.UsageError(
            f"--message names a message of Protocol Buffers, and {file} is a JSON Schema: leave it "
            "out, or say what the file holds by --kind"
        )
    return "protobuf" if message or file.endswith(PROTOBUF_SUFFIXES) else "json"


@schema.command()
@click.argument("url")
@click.argument("address", callback=a_pattern)
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def unregister(url: str, address: str, as_json: bool) -> None:
    """Remove the schema of an address or a pattern, with all versions."""

    async def work(client: Client) -> None:
        await client.schemas.unregister(address)

    _reach(url, work)
    if as_json:
        click.echo(json.dumps({"address": address, "unregistered": True}, ensure_ascii=False))
    else:
        click.echo(f"{address} has no schema any more")


@schema.command("list")
@click.argument("url")
@certified
@widened
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_(url: str, as_json: bool) -> None:
    """List the newest version of each schema."""

    async def work(client: Client) -> list[Registered]:
        return await client.schemas.all()

    rows = [_row(each) for each in _reach(url, work)]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    screen = console()
    for part in table("schemas", COLUMNS, rows, len(rows)):
        screen.print(part)


@schema.command()
@click.argument("url")
@click.argument("address", callback=an_address)
@click.option("--version", type=Whole(min=1), show_default="the newest", help="Version to show.")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(url: str, address: str, version: int | None, as_json: bool) -> int:
    """Show the schema of ADDRESS, or of the pattern that matches it."""

    async def work(client: Client) -> tuple[Registered | None, Sequence[Registered]]:
        found = await client.schemas.find(address, version)
        return found, await client.schemas.versions(found.address) if found is not None else ()

    found, versions = _reach(url, work)
    if found is None:
        demand_pattern(address)
        which = f"no version {version} of a schema" if version else "no schema"
        click.echo(f"cogwork: {address} has {which}", err=True)
        return ExitCode.NOT_FOUND
    if as_json:
        row = {**_row(found), "versions": [each.version for each in versions]}
        row["definition"] = _definition(found)
        click.echo(json.dumps(row, ensure_ascii=False))
        return ExitCode.OK
    message = f", message {found.message}" if found.message else ""
    click.echo(f"{found.address}: {found.kind}, version {found.version}{message}", err=True)
    if found.kind == "json":
        click.echo(json.dumps(_definition(found), ensure_ascii=False, indent=2))
    else:
        sys.stdout.buffer.write(found.definition)
        sys.stdout.buffer.flush()
    return ExitCode.OK


@schema.command()
@click.argument("url")
@click.argument("address", callback=an_address)
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@click.option("--content-type", help="Content type of the messages.")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per message.")
def check(
    url: str, address: str, files: tuple[str, ...], content_type: str | None, as_json: bool
) -> int:
    """Check whether each FILE is a valid message for ADDRESS. Sends nothing."""
    bodies = {file: _read(file) for file in files}

    async def work(client: Client) -> tuple[Registered | None, dict[str, str | None]]:
        found = await client.schemas.find(address)
        is_text = found is not None and found.kind == "json"
        reasons = {}
        for file, body in bodies.items():
            content = body.removeprefix(BOM_UTF8) if is_text else body
            message = Message(content, content_type=content_type)
            reasons[file] = await client.schemas.check(message, address)
        return found, reasons

    found, reasons = _reach(url, work)
    if found is None:
        demand_pattern(address)
        click.echo(f"cogwork: {address} has no schema", err=True)
        return ExitCode.NOT_FOUND
    for file, reason in reasons.items():
        if as_json:
            row = {"file": file, "is_valid": reason is None, "reason": reason}
            click.echo(json.dumps({**row, "version": found.version}, ensure_ascii=False))
        else:
            click.echo(f"{file}: {reason or 'valid'}")
    return ExitCode.NOT_ACCEPTED if any(reasons.values()) else ExitCode.OK


def _reach(url: str, work: Callable[[Client], Awaitable[T]]) -> T:
    """Work where the schemas are, and say on stderr why they cannot be read for a while."""

    async def explaining(client: Client) -> T:
        async with explained(client, SCHEMAS):
            return await work(client)

    return reach(url, explaining, force=True)


def _read(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()


def _row(found: Registered) -> dict[str, Any]:
    return {
        "address": found.address,
        "kind": found.kind,
        "message": found.message,
        "version": found.version,
        "size_bytes": len(found.definition),
    }


def _definition(found: Registered) -> object:
    """Return a definition as JSON has it: a document, or octets in base64."""
    if found.kind == "json":
        try:
            return json.loads(found.definition)
        except ValueError:
            return found.definition.decode(errors="replace")
    return {"base64": base64.b64encode(found.definition).decode()}
