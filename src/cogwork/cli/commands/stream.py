"""`cogwork stream`: streams from the outside, through `$management`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import click

from cogwork.amqp.types import ULong
from cogwork.cli.management import deletion, moving
from cogwork.cli.management.listing import show_all
from cogwork.cli.management.manager import Manager
from cogwork.cli.management.moving import is_there, members, named
from cogwork.cli.management.reach import reach
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.quantities import COUNT, COUNT_MAX, Whole
from cogwork.cli.options.stream_names import a_name, address_of, new_name
from cogwork.cli.terminal.rendering import jsonable
from cogwork.cli.terminal.tables import as_markup, console, in_bytes, in_words, table, widened
from cogwork.cli.terminal.visible import visible
from cogwork.cli.unknown_commands import HelpfulGroup

if TYPE_CHECKING:
    from cogwork.client import Client

__all__ = ("COLUMNS", "show_row", "stream")

ORB, RAFT = "orb", "raft"
CREATED = 201

SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
BYTES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12} | {
    f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", 1)
}

COLUMNS = {
    "address": "stream",
    "state": "state",
    "engine": "engine",
    "durability": "durability",
    "first": "first",
    "next": "next",
    "records_per_s": "records/s",
    "bytes_per_s": "bytes/s",
    "consumers": "readers",
    "behind": "behind",
    "leader": "leader",
    "problem": "problem",
}

READER_COLUMNS = {
    "link": "link",
    "next": "next",
    "behind": "behind",
    "credit": "credit",
    "unsettled": "unsettled",
}


class Quantity(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """A number with a unit, such as 7d or 10GiB."""

    def __init__(self, name: str, units: dict[str, Any], least: float = 0.0) -> None:
        """Initialize it; it knows its units.

        Args:
            name: What it is a quantity of, for the usage line.
            units: What one of each counts.
            least: What it has to be.
        """
        self.name = name
        self._units = units
        self._least = least

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the text."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", str(value).strip())
        if match is None or match[2] not in self._units or float(match[1]) <= 0:
            known = ", ".join(f"1{unit}" for unit in self._units if unit)
            self.fail(
                f"{value!r} is not a valid {self.name.lower()} (expected one such as {known})",
                param,
                ctx,
            )
        amount = float(match[1]) * float(self._units[match[2]])
        if not self._least <= amount <= COUNT_MAX:
            self.fail(
                f"{value!r} is too {'small' if amount < self._least else 'large'}", param, ctx
            )
        return amount


@click.group(cls=HelpfulGroup, no_args_is_help=False)
def stream() -> None:
    """Manage streams: create, list, show, move, trim, delete.

    A stream is named by its name, orders, or its address, stream/orders.
    """


@stream.command()
@click.argument("url")
@click.argument("name", callback=new_name)
@click.option(
    "--engine",
    show_default=f"{ORB}, or {RAFT} with --replicas",
    help="Engine that stores the stream.",
)
@click.option(
    "--replicas",
    metavar="A,B,C",
    callback=moving.some,
    show_default="three of the voters",
    help="Containers that hold it (engine raft).",
)
@click.option(
    "--retention", type=Quantity("time", SECONDS), help="Delete records older than this, e.g. 7d."
)
@click.option(
    "--retention-bytes",
    type=Quantity("size", BYTES, least=1),
    help="Delete the oldest records beyond this size, e.g. 10GiB.",
)
@click.option(
    "--retention-records", type=COUNT, help="Delete the oldest records beyond this number."
)
@click.option("--capture", multiple=True, metavar="TOPIC", help="Topic to capture; repeatable.")
@click.option("--option", "pairs", multiple=True, metavar="K=V", help="Engine option; repeatable.")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def create(
    url: str,
    name: str,
    *,
    engine: str | None,
    replicas: str | None,
    retention: float | None,
    retention_bytes: float | None,
    retention_records: int | None,
    capture: tuple[str, ...],
    pairs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Create a stream. Does nothing if it exists with the same options."""
    address = address_of(name)
    holders = named(replicas)
    options = {
        "engine": RAFT if engine is None and holders else engine,
        "replicas": holders or None,
        "retention_s": retention,
        "retention_bytes": None if retention_bytes is None else int(retention_bytes),
        "retention_records": retention_records,
        "capture": list(capture) or None,
        "options": dict(map(_pair, pairs)) or None,
    }
    given = {key: value for key, value in options.items() if value is not None}

    async def work(client: Client) -> tuple[bool, dict[str, Any]]:
        reply = await Manager(client).ask("CREATE", "stream", address, body=given)
        row: Any = reply.body
        return reply.properties["statusCode"] == CREATED, row

    is_new, row = reach(url, work, force=True)
    if as_json:
        told = {key: row[key] for key in ("address", "engine", "problem")}
        click.echo(json.dumps({**told, "is_new": is_new}, ensure_ascii=False))
    else:
        click.echo(f"{address} created" if is_new else f"{address} was there with these options")
    if row["engine"] == ORB:
        click.echo(f"cogwork: {_memory_of(row)}", err=True)
    if row["problem"]:
        click.echo(f"cogwork: {address} is not open yet: {row['problem']}", err=True)


def _memory_of(row: dict[str, Any]) -> str:
    """Return what becomes of a stream in memory when its container ends."""
    home = row["options"].get("home")
    if home is None:
        return (
            "its records are in this container's memory and are lost when it stops; so is the "
            "declaration, because there is no data directory"
        )
    return (
        f"its records are in the memory of container {home} and are lost when it stops; "
        "the declaration stays"
    )


def _pair(text: str) -> tuple[str, object]:
    """Read `K=V`, where V is a number, true or false where it can be one."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise click.BadParameter(f"{text!r} is not of the form K=V", param_hint="--option")
    try:
        return key, json.loads(value)
    except (ValueError, RecursionError):
        return key, value


@stream.command("list")
@click.argument("url")
@certified
@widened
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_(url: str, as_json: bool) -> None:
    """List the streams, with bounds, rates and readers."""
    show_all(url, "stream", COLUMNS, as_json=as_json)


@stream.command()
@click.argument("url")
@click.argument("name", callback=a_name)
@certified
@widened
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(url: str, name: str, as_json: bool) -> None:
    """Show a stream and the lag of each of its readers."""

    async def work(client: Client) -> dict[str, Any]:
        row: dict[str, Any] = await Manager(client).get("READ", "stream", address_of(name))
        return row

    row = reach(url, work, force=True)
    if as_json:
        click.echo(json.dumps(jsonable(row), ensure_ascii=False))
    else:
        show_row(row)


def show_row(row: dict[str, Any]) -> None:
    """Print a stream for people."""
    screen = console()
    problem = f", [yellow]{as_markup(row['problem'])}[/yellow]" if row["problem"] else ""
    screen.print(
        f"[bold]{as_markup(row['address'])}[/bold]  {row['state']}, "
        f"engine {as_markup(row['engine'])} "
        f"({row['durability'] or 'unknown'}), epoch {row['epoch']}{problem}",
        markup=True,
    )
    screen.print(
        f"  {row['records']:,} record{'' if row['records'] == 1 else 's'} from {row['first']:,} "
        f"to before {row['next']:,}"
        f"{_size(row['size_bytes'])}; "
        f"{row['records_per_s']:,} records/s, {in_bytes(row['bytes_per_s'])}/s"
    )
    if row["voters"]:
        held = members(row["voters"], row["learners"])
        screen.print(visible(f"  held by {held}; leader {row['leader'] or 'unknown'}"))
    if row["options"].get("home"):
        screen.print(visible(f"  in the memory of container {row['options']['home']}"))
    if not is_there(row) and row["wanted"]:
        wanted = as_markup(members(row["wanted"], row["wanted_learners"]))
        screen.print(f"  [yellow]to be held by {wanted}[/yellow]", markup=True)
    screen.print(
        f"  here: {row['appended']:,} appended, {row['rejected']:,} rejected, "
        f"{row['returned']:,} returned, {row['missed']:,} missed by captures, "
        f"{in_bytes(row['pending_bytes'])} under way"
    )
    for line in _option_lines(row["options"]):
        screen.print(f"  {visible(line)}")
    if not row["consumers"]:
        return
    for part in table("readers", READER_COLUMNS, row["readers"], row["consumers"]):
        screen.print(part)


def _size(size_bytes: int | None) -> str:
    return "" if size_bytes is None else f", {in_bytes(size_bytes)}"


def _option_lines(options: dict[str, Any]) -> list[str]:
    lines = []
    if options.get("capture"):
        lines.append(f"captures {', '.join(options['capture'])}")
    if options.get("retention_s"):
        lines.append(f"keeps {in_words(options['retention_s'])}")
    if options.get("retention_bytes"):
        lines.append(f"keeps {in_bytes(options['retention_bytes'])}")
    if options.get("retention_records"):
        lines.append(f"keeps {options['retention_records']:,} records")
    return lines


@stream.command()
@click.argument("url")
@click.argument("name", callback=a_name)
@moving.options
def move(
    url: str, name: str, *, replicas: str, learners: str | None, no_wait: bool, as_json: bool
) -> None:
    """Move a stream to other containers while it is used.

    The first container has the highest leader priority and leads while it is available. Former
    replicas delete their copies. The move continues even if this command is interrupted.
    """
    who = (named(replicas), named(learners))
    moving.move(url, "stream", address_of(name), who, no_wait=no_wait, as_json=as_json)


@stream.command()
@click.argument("url")
@click.argument("name", callback=a_name)
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def delete(url: str, name: str, as_json: bool) -> None:
    """Delete a stream and all its records."""
    deletion.delete(url, "stream", address_of(name), as_json=as_json)


@stream.command()
@click.argument("url")
@click.argument("name", callback=a_name)
@click.option("--before", type=Whole(0, ULong.MAX), required=True, help="First offset to keep.")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def trim(url: str, name: str, before: int, as_json: bool) -> None:
    """Delete the records below an offset. Engines may keep some of them a little longer."""
    address = address_of(name)

    async def work(client: Client) -> dict[str, int]:
        found: dict[str, int] = await Manager(client).get(
            "TRIM", "stream", address, {"before": before}
        )
        return found

    left = reach(url, work, force=True)
    if as_json:
        click.echo(json.dumps({"address": address, **left}, ensure_ascii=False))
    else:
        kept = "; its engine gives up whole blocks of records" if left["first"] < before else ""
        text = f"{address} begins at offset {left['first']}; the next one is {left['next']}"
        click.echo(text + (kept if before <= left["next"] else ""))
