"""Having other containers hold the replicas of a stream or a queue, and looking on."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any, cast

import click
from rich.console import Console
from rich.text import Text

from cogwork.cli.management.manager import Manager
from cogwork.cli.management.reach import reach
from cogwork.cli.options.certificates import certified
from cogwork.cli.terminal.visible import visible
from cogwork.client import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.client import Client

__all__ = ("Progress", "is_there", "members", "move", "named", "options", "some", "watch")

OPERATIONS = {"stream": "MOVE", "queue": "RELOCATE"}
LEADING = {"stream": "leader", "queue": "owner"}
WANTED = ("wanted", "wanted_learners", "moving")

LOOK_S = 0.2
"""How often it is asked how far it is."""

SILENCE_S = 5.0
"""So long the container may be gone, or busy, before that is an error; the move goes on."""

Row = dict[str, Any]


def named(text: str | None) -> list[str]:
    """Return the names in `a, b,c`."""
    return [each.strip() for each in text.split(",") if each.strip()] if text else []


def some(_ctx: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    """Refuse, as a parameter's callback, a list of names that has none."""
    if text is not None and not named(text):
        raise click.BadParameter(f"{text!r} names no container (expected A,B,C)")
    return text


def options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say who is to hold something."""
    wanted = "Ids of the new replicas, highest leader priority first."
    copied = "Ids of containers that keep a copy without a vote."
    for option in (
        click.option(
            "--json", "as_json", is_flag=True, help="Print the outcome as one JSON object."
        ),
        certified,
        click.option("--no-wait", is_flag=True, help="Return before the move is complete."),
        click.option("--learners", metavar="D,E", show_default="nobody", help=copied),
        click.option("--replicas", required=True, metavar="A,B,C", callback=some, help=wanted),
    ):
        command = option(command)
    return command


def move(
    url: str,
    kind: str,
    address: str,
    who: tuple[list[str], list[str]],
    *,
    no_wait: bool,
    as_json: bool,
) -> None:
    """Have other containers hold something, and print how it is then.

    Args:
        url: A container.
        kind: What it is: `stream` or `queue`.
        address: Its address.
        who: Those that are to hold it, and those that are to have a copy that does not count.
        no_wait: Whether to end before they do.
        as_json: Whether one JSON object is printed.
    """
    body = dict(zip(("replicas", "learners"), who, strict=True))

    async def work(client: Client) -> Row:
        manager = Manager(client)
        reply = await manager.ask(OPERATIONS[kind], kind, address, body=body)
        row = cast("Row", reply.body)
        if no_wait:
            return row
        with Progress() as progress:
            return await watch(manager, kind, row, progress)

    row = reach(url, work, force=True)
    if as_json:
        told = ("address", "voters", "learners", LEADING[kind], *WANTED)
        click.echo(json.dumps({key: row[key] for key in told}, ensure_ascii=False))
    else:
        held = "is to be held" if no_wait else "is held"
        click.echo(f"{address} {held} by {', '.join(row['wanted'])}")


class Progress:
    """Tells on stderr how far it is; a line each time that changes where nobody looks on."""

    def __init__(self, screen: Console | None = None) -> None:
        """Initialize it; it has told nothing.

        Args:
            screen: Where; stderr if not given.
        """
        self._screen = screen or Console(stderr=True)
        self._status = self._screen.status("")
        self._told = ""

    def __enter__(self) -> Progress:
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def tell(self, row: Row) -> None:
        """Tell how a stream or a queue is."""
        held = members(row["voters"] or ["nobody that is known"], row["learners"])
        wanted = members(row["wanted"], row["wanted_learners"])
        text = visible(f"{row['address']}: held by {held}; to be held by {wanted}")
        self._status.update(Text(text))
        if text != self._told and not self._screen.is_terminal:
            self._screen.print(Text(text), soft_wrap=True)
        self._told = text


async def watch(manager: Manager, kind: str, row: Row, progress: Progress) -> Row:
    """Look at a stream or a queue until it is where it is to be.

    Args:
        manager: Asks.
        kind: Which of these it is.
        row: What is known of it.
        progress: Tells how far it is.

    Raises:
        click.ClickException: Another move has taken its place, or the container that is asked
            cannot have it.
        ClientError: The container has not answered for long.
    """
    heard_s = time.monotonic()
    wanted = (row["wanted"], row["wanted_learners"])
    while not is_there(row):
        progress.tell(row)
        await asyncio.sleep(LOOK_S)
        try:
            row = await manager.get("READ", kind, row["address"])
            heard_s = time.monotonic()
        except ClientError:
            if time.monotonic() - heard_s > SILENCE_S:
                raise
        _check(row, wanted)
    return row


def _check(row: Row, wanted: tuple[list[str], list[str]]) -> None:
    """Look whether it is still this move, and can be looked at."""
    if (row["wanted"], row["wanted_learners"]) != wanted:
        now = members(row["wanted"], row["wanted_learners"]) or "nobody: it was deleted"
        raise click.ClickException(
            f"{row['address']}: another move has taken its place; it is to be held by {now}"
        )
    if row.get("state") == "failed":
        raise click.ClickException(
            f"{row['address']} cannot be used at this container: {row['problem']}; it is moved "
            "nevertheless"
        )


def is_there(row: Row) -> bool:
    """Return whether something is where it is to be, as far as is known."""
    present = (row["voters"], sorted(row["learners"]))
    return not row["moving"] and present == (row["wanted"], sorted(row["wanted_learners"]))


def members(voters: Sequence[str], learners: Sequence[str]) -> str:
    """Return who holds something, and who has a copy that does not count."""
    text = ", ".join(voters)
    return f"{text}, followed by {', '.join(learners)}" if learners else text
