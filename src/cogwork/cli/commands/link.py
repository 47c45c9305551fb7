"""`cogwork link`: a container's links to other containers, through `$management`."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

import click

from cogwork.amqp.errors import Condition
from cogwork.cli.management.group import met, reach_each
from cogwork.cli.management.manager import Manager
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.quantities import Whole
from cogwork.cli.options.single_url import single_url
from cogwork.cli.terminal.rendering import jsonable
from cogwork.cli.terminal.tables import console, table, widened
from cogwork.cli.unknown_commands import HelpfulGroup
from cogwork.client import LinkRefused
from cogwork.config.link_urls import BadLinkUrl, LinkUrl
from cogwork.config.secrets import BadVariable, with_variables

if TYPE_CHECKING:
    from cogwork.client import Client

__all__ = ("COLUMNS", "TYPE", "link")

TYPE = "org.cogwork.link"

COLUMNS = {
    "url": "link",
    "direction": "",
    "state": "state",
    "neighbour": "neighbour",
    "cost": "cost",
    "since": "since (UTC)",
    "bytes_in": "in",
    "bytes_out": "out",
    "messages_in": "messages in",
    "messages_out": "messages out",
    "error": "error",
}


def a_target(_ctx: click.Context, _parameter: click.Parameter, text: str) -> str:
    """See that what a link is to lead to, or lead to, is a URL of one."""
    try:
        text = with_variables(text, os.environ)
        LinkUrl.parse(text)
    except (BadLinkUrl, BadVariable) as error:
        raise click.BadParameter(f"found {error.found}, expected {error.expected}") from error
    return text


@click.group(cls=HelpfulGroup, no_args_is_help=False)
def link() -> None:
    """Manage links to other containers: add, remove, list.

    URL is this container, HOST:PORT the other one; amqps://USER:PASSWORD@HOST:PORT also works.
    With '${NAME}' in the place of PASSWORD, it is that of an environment variable.
    """


@link.command()
@click.argument("url", callback=single_url)
@click.argument("target", metavar="HOST:PORT", callback=a_target)
@click.option(
    "--cost",
    type=Whole(1, 65_535),
    default=1,
    show_default=True,
    help="Cost of the link; messages take the cheapest route.",
)
@certified
@click.option("--json", "as_json", is_flag=True, help="Print the link as one JSON object.")
def add(url: str, target: str, cost: int, as_json: bool) -> None:
    """Link a container to another one.

    The link lasts until it is removed or the container stops. A link to amqps:// trusts the
    system's certificate authorities and presents no certificate; for other certificates, add a
    [[link]] to the configuration. --ca-file, --cert-file and --key-file apply to URL.
    """

    async def work() -> Any:  # noqa: ANN401  # whatever the container answers
        async with met(url) as workers:
            first = next(iter(workers.values()))  # the one that dials the configured links, too
            return (await Manager(first).ask("CREATE", TYPE, target, {"cost": cost})).body

    row = asyncio.run(work())
    if as_json:
        click.echo(json.dumps(jsonable(row), ensure_ascii=False))
    else:
        click.echo(f"{row['url']} added")


@link.command()
@click.argument("url", callback=single_url)
@click.argument("target", metavar="HOST:PORT", callback=a_target)
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def remove(url: str, target: str, as_json: bool) -> None:
    """Close a link that this container dials."""

    async def work(client: Client) -> LinkRefused | None:
        try:
            await Manager(client).ask("DELETE", TYPE, target)
        except LinkRefused as refusal:
            if refusal.condition != Condition.NOT_FOUND:
                raise
            return refusal
        return None

    outcomes = list(reach_each(url, work).values())
    refusals = [each for each in outcomes if each is not None]
    if len(refusals) == len(outcomes):
        raise refusals[0]
    if as_json:
        count = len(outcomes) - len(refusals)
        click.echo(json.dumps({"links_removed": count}))
    else:
        click.echo("link removed")


@link.command("list")
@click.argument("url")
@certified
@widened
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
@click.option("--workers", is_flag=True, help="Include links between workers of the container.")
def list_(url: str, as_json: bool, workers: bool) -> None:
    """List all links, incoming and outgoing, with state and counts.

    For a container with several workers, lists the links of all workers and says which worker has
    each.
    """

    async def work(client: Client) -> list[dict[str, Any]]:
        return (await Manager(client).rows(TYPE, () if as_json else tuple(COLUMNS)))[0]

    found = reach_each(url, work)
    rows = [row for each in found.values() for row in each]
    columns = COLUMNS
    if len(found) > 1:
        columns = {"worker": "worker", **COLUMNS}
        rows = [{"worker": name, **row} for name, each in found.items() for row in each]
    if as_json:
        click.echo(json.dumps(jsonable(rows), ensure_ascii=False))
        return
    shown = [row for row in rows if workers or row["neighbour"] not in found]
    screen = console()
    for part in table("links", columns, shown, len(shown)):
        screen.print(part)
