"""`cogwork up`: a mesh of containers on this machine, in one terminal with one log view."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cogwork.cli.options.quantities import Whole
from cogwork.cli.process.fleet import Fleet
from cogwork.cli.process.topologies import NAMED, TopologyError, topology_of
from cogwork.cli.terminal.tables import console, table, widened
from cogwork.config.errors import DataDirectoryError
from cogwork.config.settings import VOTERS_MAX
from cogwork.log.directory import DIRECTORY_MODE
from cogwork.log.wal import LEAST_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cogwork.cli.exit_codes import ExitCode
    from cogwork.cli.process.topologies import Topology

__all__ = ("up",)

BASE_PORT = 5672
HOST = "127.0.0.1"
COUNT_MAX = 100

MIB = 1 << 20

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
@widened
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
@click.option(
    "--data",
    metavar="DIR",
    show_default="a temporary directory, removed at the end",
    help="Data directory, with a folder for each container.",
)
def up(count: int, topology: str, as_json: bool, base_port: int, data: str | None) -> ExitCode:
    """Run a cluster of linked containers on this machine.

    Starts `cogwork serve` N times on loopback, links the containers and makes them one cluster.
    Their logs go to stderr, each line prefixed with the container's id. Ctrl-C stops all of them
    and removes their data, unless --data names a directory.
    """
    try:
        wanted = topology_of(count, topology)
    except TopologyError as error:
        raise click.BadParameter(str(error), param_hint="--topology") from error
    ports = free_ports(base_port, count)
    with _kept_in(data, count) as folder:
        return asyncio.run(_run(wanted, ports, folder, is_kept=data is not None, as_json=as_json))


@contextmanager
def _kept_in(data: str | None, count: int) -> Iterator[Path]:
    """Yield the directory for the containers' files; remove it at the end if it is temporary.

    Raises:
        DataDirectoryError: It cannot be made, or has no room for so many containers.
    """
    folder = _made(data)
    try:
        free_bytes, needed_bytes = shutil.disk_usage(folder).free, count * LEAST_BYTES
        if free_bytes < needed_bytes and not any(folder.iterdir()):
            raise DataDirectoryError(
                str(folder),
                f"{free_bytes // MIB} MiB are free, and {count} containers need "
                f"{needed_bytes // MIB} MiB: name another directory with --data",
            )
        yield folder
    finally:
        if data is None:
            shutil.rmtree(folder, ignore_errors=True)


def _made(data: str | None) -> Path:
    try:
        if data is None:
            return Path(tempfile.mkdtemp(prefix="cogwork-up-"))
        folder = Path(data).absolute()
        folder.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise DataDirectoryError(data or tempfile.gettempdir(), error.strerror or "") from error
    return folder


def primaries_of(ids: Sequence[str]) -> list[str]:
    """Return the containers that vote: an odd number, as one more would bear no more losses."""
    count = min(len(ids), VOTERS_MAX)
    return list(ids[: count - (count + 1) % 2])


def free_ports(first: int, count: int) -> list[int]:
    """Find ports of loopback on which nobody listens.

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
        raise click.BadParameter(
            f"found fewer than {count} free ports from {first} on", param_hint="--base-port"
        )
    return found


async def _run(
    topology: Topology, ports: list[int], folder: Path, *, is_kept: bool, as_json: bool
) -> ExitCode:
    primaries = ",".join(primaries_of(topology.ids))
    endpoints = {name: f"{HOST}:{port}" for name, port in zip(topology.ids, ports, strict=True)}
    commands = {
        name: [
            *("serve", "--json", "--id", name, "--listen", endpoint),
            *("--data", str(folder / name), "--primaries", primaries),
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
        _announce(rows, folder, is_kept=is_kept, as_json=as_json)

    return await Fleet(commands).run(announce)


def _announce(rows: list[dict[str, object]], folder: Path, *, is_kept: bool, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"containers": rows, "data_dir": str(folder)}))
        return
    screen = console()
    shown = [{**row, "process_id": str(row["process_id"])} for row in rows]
    for part in table("containers", COLUMNS, shown, len(shown)):
        screen.print(part)
    click.echo(f"one cluster; its data is in {folder}")
    click.echo("Ctrl-C ends them" + ("" if is_kept else ", and removes their data"))
