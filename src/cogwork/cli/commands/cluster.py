"""`cogwork cluster`: look at a cluster, begin and recover it, change its members."""

from __future__ import annotations

import asyncio
import json
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cogwork.cli.commands.cluster_config import config
from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.management.manager import Manager
from cogwork.cli.management.moving import LOOK_S, SILENCE_S, named, some
from cogwork.cli.management.reach import reach
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.single_url import single_url
from cogwork.cli.terminal.rendering import jsonable
from cogwork.cli.terminal.tables import console, in_words, table, widened
from cogwork.cli.terminal.visible import visible
from cogwork.cli.unknown_commands import HelpfulGroup
from cogwork.client import ClientError
from cogwork.container.cluster.identity import init as init_cluster
from cogwork.container.cluster.recovery import recover as recover_cluster

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from cogwork.client import Client

__all__ = ("cluster",)

PATH = click.Path(exists=True, file_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)

Facts = dict[str, Any]

TYPE = "org.cogwork.mesh"

FORCE = click.option(
    "--force", is_flag=True, help="Do it even if there would be no majority that answers."
)

WATCH_S = 1.0

ROOT_TIMEOUT_S = 60.0
"""A member that is first in line waits for 5 s, and longer after others took turns with it."""

REBALANCE_S = 1.0

DIGEST_SHOWN = 12
"""Characters of a digest that people compare; JSON has all of it."""

MEMBERS = {
    "id": "container",
    "role": "role",
    "state": "state",
    "spid": "SPID",
    "next": "declarations up to",
    "digest": "digest",
    "version": "version",
}

WARNING = (
    "use this only if a majority of the cluster is lost for good. What only the lost containers "
    "had is gone. They may have settled items of replicated queues: those of work/ are parked, "
    "those of queue/ are redelivered, marked. Never start a lost container with its old data "
    "directory"
)


@click.group(cls=HelpfulGroup, no_args_is_help=False)
def cluster() -> None:
    """Show and recover a cluster, and change its members."""


cluster.add_command(config)


@cluster.command("status")
@click.argument("url")
@click.option("--watch", is_flag=True, help="Show it again each second, until interrupted.")
@certified
@widened
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(url: str, watch: bool, as_json: bool) -> None:
    """Show the members of a cluster and its root.

    It is what the container at URL finds. The SPID is a member's start and id: the lowest one
    is the most senior. The state is active for
    a member that has all declarations, ready for one that is still reading them, connected for one
    that is linked and does not answer, and gone for one that cannot be reached. Warnings come last.
    """

    async def work(client: Client) -> None:
        manager = Manager(client)
        while True:
            _show(await manager.get("STATUS", TYPE), as_json=as_json, clears=watch)
            if not watch:
                return
            await asyncio.sleep(WATCH_S)

    reach(url, work, force=True)


def _show(found: Facts, *, as_json: bool, clears: bool) -> None:
    if as_json:
        click.echo(json.dumps(jsonable(found), ensure_ascii=False))
        return
    screen = console()
    if clears and screen.is_terminal:
        click.clear()
    root = f"root {found['root']} since term {found['term']}" if found["root"] else "no root"
    name = f"{found['name']}, " if found.get("name") else ""
    screen.print(visible(f"cluster {name}{found['uuid'] or 'without a UUID yet'}, {root}"))
    rows = [_member(each) for each in found["members"]]
    for part in table("members", MEMBERS, rows, len(rows)):
        screen.print(part)
    for warning in found["warnings"]:
        screen.print(visible(f"WARNING: {warning}"))


def _member(row: Facts) -> Facts:
    gone = "" if row["gone_s"] is None else f" since {in_words(row['gone_s'])}"
    role = f"{row['role']}, root" if row["is_root"] else row["role"]
    return row | {
        "role": f"{role}, never root" if row.get("is_disabled") else role,
        "state": row["state"] + gone,
        "digest": (row["digest"] or "")[:DIGEST_SHOWN],
    }


@cluster.command("init")
@click.option("--data", required=True, type=FOLDER, metavar="DIR", help="Data directory.")
@click.option("--uuid", "given", type=click.UUID, show_default="a new one", help="The cluster's.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def init(data: Path, given: UUID | None, as_json: bool) -> None:
    """Make an empty data directory one of a founder.

    Its container then begins without asking whether the other primaries are empty. Each founder
    needs the same UUID: run this for one without --uuid, and for the others with the one printed.
    """
    made = init_cluster(data, None if given is None else str(given))
    click.echo(
        json.dumps({"uuid": made}) if as_json else f"{data} is a founder's of cluster {made}"
    )


@cluster.command("recover")
@click.option("--data", required=True, type=PATH, metavar="DIR", help="Data directory.")
@click.option("--only", required=True, metavar="ID", help="Container that the directory is of.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def recover(data: Path, only: str, as_json: bool) -> int:
    """Make a new cluster of the only container that is left.

    For a cluster whose majority is lost for good. The container must be stopped. It keeps all
    records that it has, as the only member of each stream and queue that it holds. The new cluster
    has a UUID of its own, and each stream begins a new epoch.
    """
    click.echo(f"cogwork: warning: {WARNING}", err=True)
    found = recover_cluster(data, only)
    if as_json:
        facts = {"uuid": found.uuid, "streams": found.streams, "problems": found.problems}
        click.echo(json.dumps(facts, ensure_ascii=False))
    else:
        for stream, end in found.streams.items():
            click.echo(visible(f"{stream}: kept up to offset {end}"))
        click.echo(f"cluster {found.uuid}: {only} is its only member")
    for problem in found.problems:
        click.echo(visible(f"cogwork: not recovered: {problem}"), err=True)
    return ExitCode.ERROR if found.problems else ExitCode.OK


@cluster.command("move")
@click.argument("url")
@click.option(
    "--primaries",
    required=True,
    metavar="A,B,C",
    callback=some,
    help="Ids of the new primaries, highest leader priority first.",
)
@click.option("--no-wait", is_flag=True, help="Return before the move is complete.")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def move(url: str, primaries: str, *, no_wait: bool, as_json: bool) -> None:
    """Change the primaries of a cluster while it is used.

    The new ones need a data directory, and the same [cluster] primaries in their configuration from
    now on. The move continues even if this command is interrupted. Streams and queues stay where
    they are: `cogwork stream move` and `cogwork queue relocate` move these.
    """
    wanted = named(primaries)

    async def work(client: Client) -> Facts:
        return await _change(Manager(client), wanted, waits=not no_wait)

    _tell_primaries(reach(url, work, force=True), as_json=as_json)


def _changing(command: Callable[..., None]) -> Callable[..., None]:
    """Add what all commands take that change who votes."""
    for decorate in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
        certified,
        click.option("--no-wait", is_flag=True, help="Return before the change is complete."),
        FORCE,
        click.argument("container", metavar="ID"),
        click.argument("url", callback=single_url),
    ):
        command = decorate(command)
    return command


@cluster.command("promote")
@_changing
def promote(url: str, container: str, *, force: bool, no_wait: bool, as_json: bool) -> None:
    """Make a secondary member a primary one.

    It votes then, and may become the root. It needs a data directory. Add it to [cluster]
    primaries in the configuration of all members.
    """
    _change_by(url, _with(container), force=force, no_wait=no_wait, as_json=as_json)


@cluster.command("demote")
@_changing
def demote(url: str, container: str, *, force: bool, no_wait: bool, as_json: bool) -> None:
    """Make a primary member a secondary one.

    It keeps all declarations, and does not vote. Remove it from [cluster] primaries in the
    configuration of all members.
    """
    _change_by(url, _without(container), force=force, no_wait=no_wait, as_json=as_json)


@cluster.command("add")
@_changing
def add(url: str, container: str, *, force: bool, no_wait: bool, as_json: bool) -> None:
    """Add a voter to a cluster.

    It is the same as `cogwork cluster promote`: every container that is linked and names the
    cluster is a secondary member already.
    """
    _change_by(url, _with(container), force=force, no_wait=no_wait, as_json=as_json)


@cluster.command("remove")
@click.argument("url", callback=single_url)
@click.argument("container", metavar="ID")
@FORCE
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def remove(url: str, container: str, *, force: bool, as_json: bool) -> None:
    """Remove a voter from a cluster, also one that is gone for good.

    Once this is done its disk never votes again, whenever it comes back. One that is gone is no
    longer counted, as by `cogwork cluster forget`; one that is there goes on as a secondary:
    `cogwork leave` ends it. Streams and queues that it holds are moved by `cogwork stream move` and
    `cogwork queue relocate`.
    """

    async def work(client: Client) -> Facts:
        manager = Manager(client)
        status = await manager.get("STATUS", TYPE)
        row = next((each for each in status["members"] if each["id"] == container), None)
        primaries = [each["id"] for each in status["members"] if each["role"] == "primary"]
        facts = await _facts(manager)
        if container in primaries:
            wanted = _without(container)(primaries)
            if not force:
                _demand_live_majority(wanted, status)
            facts = await _change(manager, wanted, waits=True)
        elif row is None:
            told = ", ".join(each["id"] for each in status["members"])
            raise click.ClickException(f"{container} is no member: these are {told}")
        if row is not None and row["state"] == "gone" and container in facts["supports"]:
            await manager.ask("FORGET", TYPE, body={"container": container})
        return facts

    _tell_primaries(reach(url, work, force=True), as_json=as_json)


@cluster.command("root")
@click.argument("url", callback=single_url)
@click.argument("container", metavar="ID", required=False)
@click.option("--disable", "disabled", metavar="ID", help="Have a member never become the root.")
@click.option("--enable", "enabled", metavar="ID", help="Have it be one that may become it again.")
@click.option(
    "--allow-none", is_flag=True, help="Disable it even if no root would be left, and all waits."
)
@click.option("--no-wait", is_flag=True, help="Return before it is the root, or is it no longer.")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def root(
    url: str,
    container: str | None,
    disabled: str | None,
    enabled: str | None,
    *,
    allow_none: bool,
    no_wait: bool,
    as_json: bool,
) -> None:
    """Make a primary member the root, or have one never be it.

    With ID, it becomes the first in leader priority, and takes over once it has caught up and has
    been there for some seconds; the root steps back in order, and nothing is lost by it. A member
    that is disabled votes as before, and steps back if it is the root. It stays disabled, over
    restarts too, until it is enabled.
    """
    if sum(each is not None for each in (container, disabled, enabled)) != 1:
        raise click.UsageError("give one of ID, --disable ID and --enable ID")
    if allow_none and disabled is None:
        raise click.UsageError("--allow-none goes with --disable")

    async def work(client: Client) -> Facts:
        manager = Manager(client)
        if container is not None:
            return await _make_root(manager, container, waits=not no_wait)
        body = {"container": disabled or enabled, "enabled": disabled is None, "none": allow_none}
        await manager.ask("ROOT", TYPE, body=body)
        status: Facts = await manager.get("STATUS", TYPE)
        if disabled is None or no_wait:
            return status

        def is_done(found: str | None) -> bool:
            return found != disabled and (found is not None or allow_none)

        return await _watch_root(manager, is_done, f"no other member than {disabled} is the root")

    found = reach(url, work, force=True)
    if as_json:
        facts = {key: found[key] for key in ("uuid", "root", "term")}
        click.echo(json.dumps({**facts, "disabled": _disabled(found)}))
    elif container is not None:
        is_done = found["root"] == container
        told = f"is the root since term {found['term']}" if is_done else "is to be the root"
        click.echo(visible(f"{container} {told}"))
    else:
        can = "may become the root again" if disabled is None else "does not become the root"
        now = f"{found['root']} is it" if found["root"] else "there is none"
        click.echo(visible(f"{disabled or enabled} {can}; {now}"))


async def _make_root(manager: Manager, container: str, *, waits: bool) -> Facts:
    status: Facts = await manager.get("STATUS", TYPE)
    primaries = [each["id"] for each in status["members"] if each["role"] == "primary"]
    if container not in primaries:
        raise click.ClickException(
            f"{container} is no primary: these are {', '.join(primaries)}; "
            "`cogwork cluster promote` makes it one"
        )
    if container in _disabled(status):
        raise click.ClickException(f"{container} is disabled as root: use --enable {container}")
    others = [each for each in primaries if each != container]
    await _change(manager, [container, *others], waits=waits)
    if not waits:
        return status
    return await _watch_root(
        manager, lambda found: found == container, f"{container} is not the root"
    )


def _disabled(status: Facts) -> list[str]:
    """Return who is not to become the root; a container of an earlier version does not say so."""
    return [each["id"] for each in status["members"] if each.get("is_disabled")]


async def _watch_root(manager: Manager, is_done: Callable[[str | None], bool], what: str) -> Facts:
    """Look at the cluster until the right member is the root.

    Args:
        manager: Asks the container.
        is_done: Says so of the root, or of none.
        what: Is so until then.

    Raises:
        click.ClickException: It has not become that for long.
    """
    end_s = time.monotonic() + ROOT_TIMEOUT_S
    while True:
        status: Facts = await manager.get("STATUS", TYPE)
        if is_done(status["root"]):
            return status
        if time.monotonic() > end_s:
            raise click.ClickException(
                f"{what} after {ROOT_TIMEOUT_S:g} s, {status['root'] or 'nobody'} is; a member "
                "takes over once it has caught up: see `cogwork cluster status`"
            )
        await asyncio.sleep(LOOK_S)


def _with(container: str) -> Callable[[list[str]], list[str]]:
    """Return what adds a member to the primaries."""

    def change(primaries: list[str]) -> list[str]:
        if container in primaries:
            raise click.ClickException(f"{container} is a primary already")
        return [*primaries, container]

    return change


def _without(container: str) -> Callable[[list[str]], list[str]]:
    """Return what removes a member from the primaries."""

    def change(primaries: list[str]) -> list[str]:
        if container not in primaries:
            told = ", ".join(primaries)
            raise click.ClickException(f"{container} is no primary: these are {told}")
        if len(primaries) == 1:
            raise click.ClickException(
                f"{container} is the only primary: promote another one first"
            )
        return [each for each in primaries if each != container]

    return change


def _change_by(
    url: str,
    change: Callable[[list[str]], list[str]],
    *,
    force: bool,
    no_wait: bool,
    as_json: bool,
) -> None:
    """Change the primaries by a function of those that there are."""

    async def work(client: Client) -> Facts:
        manager = Manager(client)
        status = await manager.get("STATUS", TYPE)
        wanted = change([each["id"] for each in status["members"] if each["role"] == "primary"])
        if not force:
            _demand_live_majority(wanted, status)
        return await _change(manager, wanted, waits=not no_wait)

    _tell_primaries(reach(url, work, force=True), as_json=as_json)


def _demand_live_majority(wanted: list[str], status: Facts) -> None:
    """See that the cluster can go on with other primaries.

    Raises:
        click.ClickException: Too many of them do not answer.
    """
    live = {each["id"] for each in status["members"] if each["spid"] is not None}
    silent = [each for each in wanted if each not in live]
    if len(silent) * 2 >= len(wanted):
        raise click.ClickException(
            f"of the primaries {', '.join(wanted)} there would be no majority that answers: "
            f"{', '.join(silent)} {'does' if len(silent) == 1 else 'do'} not; use --force to do it "
            "all the same"
        )
    disabled = _disabled(status)
    if all(each in disabled for each in wanted if each in live):
        raise click.ClickException(
            f"of the primaries {', '.join(wanted)} none that answers could be the root: "
            f"{', '.join(each for each in wanted if each in disabled)} is disabled; enable one by "
            "`cogwork cluster root`, or use --force to do it all the same"
        )


async def _change(manager: Manager, wanted: list[str], *, waits: bool) -> Facts:
    await manager.ask("PRIMARIES", TYPE, body={"replicas": wanted})
    return await _watch(manager, wanted) if waits else await _facts(manager)


def _tell_primaries(facts: Facts, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({key: facts[key] for key in ("uuid", "voters", "moving")}))
    else:
        held = "is to have" if facts["moving"] else "has"
        click.echo(visible(f"the cluster {held} the primaries {', '.join(facts['voters'])}"))


def _single_urls(
    context: click.Context, parameter: click.Parameter, urls: tuple[str, ...]
) -> tuple[str, ...]:
    return tuple(single_url(context, parameter, url) for url in urls)


@cluster.command("rebalance")
@click.argument("urls", nargs=-1, required=True, metavar="URL...", callback=_single_urls)
@click.option(
    "--rate",
    default=5,
    show_default=True,
    type=click.IntRange(1, 100),
    metavar="N",
    help="Clients that are moved in a second.",
)
@click.option("--dry-run", is_flag=True, help="Print how many would be moved, move nobody.")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each URL.")
def rebalance(urls: tuple[str, ...], *, rate: int, dry_run: bool, as_json: bool) -> None:
    """Move clients to containers with less to do.

    Each container at a URL sends what it has beyond the mean of itself and its neighbours to those
    with less to do, a few clients a second. Only clients are moved that follow redirects, as
    Cogwork's own do, and that do not ask to stay.
    """
    for url in urls:
        work = partial(_rebalance, url=url, rate=0 if dry_run else rate, is_told=not as_json)
        found = reach(url, work, force=True)
        if as_json:
            click.echo(json.dumps(jsonable({"url": url, **found})))


async def _rebalance(client: Client, *, url: str, rate: int, is_told: bool) -> Facts:
    """Have a container move clients until it has no more than its share, or none can be moved."""
    moved = 0
    while True:
        reply = await Manager(client).ask("REBALANCE", TYPE, body={"most": rate})
        found: Facts = dict(reply.body)  # type: ignore[call-overload]  # a map of AMQP
        moved += found["moved"]
        if is_told:
            verb = "moved" if rate else "to move"
            count = moved if rate else min(found["surplus"], found["movable"])
            click.echo(visible(f"{url}: usage {found['usage']:g}, {verb} {count}"))
        if not found["moved"]:
            return {**found, "moved": moved}
        await asyncio.sleep(REBALANCE_S)


@cluster.command("forget")
@click.argument("url", callback=single_url)
@click.argument("container", metavar="ID")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def forget(url: str, container: str, as_json: bool) -> None:
    """Stop counting a container that is gone for good.

    The feature level rises once every member knows the next one. This is refused for a primary and
    for a container that is there. One that comes back is counted again. Streams and queues that it
    held are moved by `cogwork stream move` and `cogwork queue relocate`.
    """

    async def work(client: Client) -> None:
        await Manager(client).ask("FORGET", TYPE, body={"container": container})

    reach(url, work, force=True)
    told = {"forgotten": container}
    click.echo(json.dumps(told) if as_json else visible(f"{container} is no longer counted"))


async def _facts(manager: Manager) -> Facts:
    row = await manager.get("READ", "container")
    facts: Facts = row["cluster"]
    return facts


async def _watch(manager: Manager, wanted: list[str]) -> Facts:
    """Look at the cluster until it has the primaries that it is to have.

    Raises:
        click.ClickException: Another move has taken its place.
        ClientError: The container has not answered for long.
    """
    heard_s, has_begun = time.monotonic(), False
    while True:
        try:
            facts = await _facts(manager)
        except ClientError:
            if time.monotonic() - heard_s > SILENCE_S:
                raise
        else:
            heard_s = time.monotonic()
            if has_begun and facts["voters"] != wanted:
                now = ", ".join(facts["voters"])
                raise click.ClickException(f"another move has taken its place: to {now}")
            has_begun = facts["voters"] == wanted
            if has_begun and not facts["moving"]:
                return facts
        await asyncio.sleep(LOOK_S)
