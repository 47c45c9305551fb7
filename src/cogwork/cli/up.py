"""`cogwork up`: a mesh of containers on this machine, in one terminal with one log view."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import TYPE_CHECKING

import click

from cogwork.cli.fleet import Fleet
from cogwork.cli.quantities import Whole
from cogwork.cli.tables import console, table
from cogwork.cli.topologies import NAMED, TopologyError, topology_of

if TYPE_CHECKING:
    from cogwork.cli.exit_codes import ExitCode
    from cogwork.cli.topologies import Topology

__all__ = ("up",)

BASE_PORT = 5672
HOST = "127.0.0.1"
COUNT_MAX = 100

COLUMNS = {"id": "container", "url": "url", "neighbours": "linked with", "process_id": "process"}


@click.command()
@click.argument("count", metavar="N", type=Whole(1, COUNT_MAX))
@click.option(
    "--topology",
    default="ring",
    show_default=True,
    metavar="|".join((*NAMED, "FILE")),
    help="Links between the containers; each line of FILE names two ids.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the listening addresses as a JSON object."
)
@click.option(
    "--base-port",
    type=Whole(1, 65_535),
    default=BASE_PORT,
    show_default=True,
    help="First port; ports in use are skipped.",
)
def up(count: int, topology: str, as_json: bool, base_port: int) -> ExitCode:
    """Run several linked containers on this machine.

    Starts `cogwork serve` N times on loopback and links the containers. Their logs go to stderr,
    each line prefixed with the container's id. Ctrl-C stops all of them.
    """
    try:
        wanted = topology_of(count, topology)
    except TopologyError as error:
        raise click.BadParameter(str(error), param_hint="--topology") from error
    ports = free_ports(base_port, count)
    return asyncio.run(_run(wanted, ports, as_json=as_json))


def free_ports(first: int, count: int) -> list[int]:
    """Finds ports of loopback on which nobody listens.

    Args:
        first: Where to begin.
        count: How many.

    Raises:
        click.BadParameter: There are not so many.
    """
    found: list[int] = []
    for port in range(first, 65_536):
        if len(found) == count:
            break
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        found.append(port)
    if len(found) < count:
        raise click.BadParameter(f"no {count} free ports from {first} on", param_hint="--base-port")
    return found


async def _run(topology: Topology, ports: list[int], *, as_json: bool) -> ExitCode:
    endpoints = {name: f"{HOST}:{port}" for name, port in zip(topology.ids, ports, strict=True)}
    commands = {
        name: [
            *("serve", "--json", "--id", name, "--listen", endpoint),
            *(word for each in topology.dialled_by(name) for word in ("--link", endpoints[each])),
        ]
        for name, endpoint in endpoints.items()
    }

    def announce(process_ids: dict[str, int]) -> None:
        rows = [
            {
                "id": name,
                "url": f"amqp://{endpoints[name]}",
                "neighbours": topology.neighbours_of(name),
                "process_id": process_id,
            }
            for name, process_id in process_ids.items()
        ]
        _announce(rows, as_json=as_json)

    return await Fleet(commands).run(announce)


def _announce(rows: list[dict[str, object]], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"containers": rows}))
        return
    screen = console()
    shown = [{**row, "process_id": str(row["process_id"])} for row in rows]
    for part in table("containers", COLUMNS, shown, len(shown)):
        screen.print(part)
    click.echo("Ctrl-C ends them")
