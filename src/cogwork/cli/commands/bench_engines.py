"""`cogwork bench engines`: measures the engines of streams that can be had here."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from cogwork.bench.measured import default_path, prepare, save
from cogwork.bench.servers.etcd import EtcdServer
from cogwork.bench.servers.nats import NatsServer
from cogwork.bench.servers.process import Missing, Server
from cogwork.bench.servers.raft import JoinedHost, RaftServer
from cogwork.bench.servers.redis import RedisServer
from cogwork.bench.streams import Figures, measure, measure_failover
from cogwork.cli.commands.engine import engine_table
from cogwork.cli.exit_codes import ExitCode, line_of
from cogwork.cli.options.quantities import Finite
from cogwork.cli.terminal.tables import console
from cogwork.engines.registry import factory_of
from cogwork.io.interruption import interrupted_by_sigterm
from cogwork.plugin.engine.contract import EngineContext
from cogwork.plugin.engine.errors import ConsensusError
from cogwork.plugins import PluginError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cogwork.plugin.engine.contract import EngineHost

__all__ = ("engines",)

REPLICAS = 3

STARTED: Final[Mapping[str, type[Server]]] = {
    "redis": RedisServer,
    "etcd": EtcdServer,
    "nats": NatsServer,
}
"""Servers that are started where nobody says where one runs."""

CLUSTERS: Final[Mapping[str, Callable[[Path, int], Sequence[Server]]]] = {
    "etcd": EtcdServer.cluster,
    "nats": NatsServer.cluster,
    "raft": RaftServer.cluster,
}

CLUSTER_OPTIONS: Final[Mapping[str, Mapping[str, object]]] = {"nats": {"replicas": REPLICAS}}

MEASURED: Final = ("orb", "raft", "redis", "etcd", "nats", "kafka")


@click.command("engines")
@click.option(
    "--engine",
    "chosen",
    multiple=True,
    type=click.Choice(MEASURED),
    show_default="all",
    help="Which to measure; may be repeated.",
)
@click.option(
    "--server",
    "places",
    multiple=True,
    metavar="ENGINE=PLACE",
    help="Measure on this server (redis=redis://host:6379/0) and not on one started here.",
)
@click.option(
    "--seconds",
    type=Finite(0.1),
    default=3.0,
    show_default=True,
    help="How long each measurement takes.",
)
@click.option("--file", type=click.Path(path_type=Path), help="Where the figures are kept.")
@click.option("--no-clusters", is_flag=True, help="One server each; no fail-over.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@interrupted_by_sigterm()
def engines(
    *,
    chosen: tuple[str, ...],
    places: tuple[str, ...],
    seconds: float,
    file: Path | None,
    no_clusters: bool,
    as_json: bool,
) -> int:
    """Measure the engines of streams: servers are started here, or named.

    Each engine is measured with one server, and those that can with three, whose leader is then
    killed. `cogwork engine list` shows the figures afterwards. Exits with 1 if one could not be
    measured; an engine that nobody asked for and that cannot be had here is only told of.
    """
    kept = file or default_path()
    prepare(kept)
    where = dict(_place(each) for each in places)
    if "KAFKA_BOOTSTRAP" in os.environ:
        where.setdefault("kafka", os.environ["KAFKA_BOOTSTRAP"])
    found: dict[str, Figures] = {}
    code = ExitCode.OK
    for name in chosen or MEASURED:
        is_wanted = name in (*chosen, *where)
        for count in _counts(name, is_named=name in where, no_clusters=no_clusters):
            try:
                with _quiet():
                    figures = _measure(name, count, where.get(name), seconds)
            except (Missing, RuntimeError, PluginError, ConsensusError, ValueError) as error:
                _tell_problem(name, count, error, as_json=as_json)
                if is_wanted or not isinstance(error, (Missing, PluginError)):
                    code = ExitCode.ERROR
                continue
            key = f"{name}/{figures.servers}"
            found[key] = figures
            save(kept, {key: figures})  # whatever becomes of those that follow
            if as_json:
                click.echo(msgspec.json.encode(figures).decode())
    if not as_json:
        console().print(engine_table(found))
    return code


def _tell_problem(name: str, count: int, error: Exception, *, as_json: bool) -> None:
    """Say which engine has no figures, and why."""
    click.echo(f"cogwork: {name}: not measured: {line_of(error)}", err=True)
    if as_json:
        told = {"engine": name, "servers": count, "problem": line_of(error)}
        click.echo(json.dumps(told, ensure_ascii=False))


def _place(text: str) -> tuple[str, str]:
    name, equals, place = text.partition("=")
    if not equals or name not in MEASURED:
        raise click.BadParameter(
            f"{text!r} is not of the form ENGINE=URL (expected redis=redis://localhost:6379/0, say)"
        )
    return name, place


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep a container here from telling of links that break: leaders are killed on purpose."""
    log = logging.getLogger("cogwork")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


def _counts(name: str, *, is_named: bool, no_clusters: bool) -> tuple[int, ...]:
    """Return with how many servers an engine is measured."""
    if name == "raft":
        return () if no_clusters else (REPLICAS,)
    return (1,) if no_clusters or is_named or name not in CLUSTERS else (1, REPLICAS)


def _measure(name: str, count: int, place: str | None, seconds: float) -> Figures:
    factory = factory_of(name)
    if factory is None:
        raise Missing("it is not installed")
    with ExitStack() as stack:
        servers = [] if place is not None else _start(stack, name, count)
        options = _options(name, place, servers)
        stream = CLUSTER_OPTIONS.get(name, {}) if count > 1 else {}

        async def work() -> Figures:
            joined = [each for each in servers if isinstance(each, RaftServer)]
            host = JoinedHost(joined) if joined else factory(EngineContext(options))
            try:
                number = len(servers) if place is None else 1
                figures = await measure(name, host, number, stream, seconds)
                if count > 1:
                    figures.failover_s = await _fail_over(host, stream, servers)
                return figures
            finally:
                await host.close()

        return asyncio.run(work())


def _start(stack: ExitStack, name: str, count: int) -> Sequence[Server]:
    if name == "orb":
        return ()
    if name not in STARTED and count == 1:
        raise Missing("name a server with --server, or KAFKA_BOOTSTRAP")
    directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cogwork-")))
    servers = CLUSTERS[name](directory, count) if count > 1 else [STARTED[name](directory)]
    for server in servers:
        stack.callback(server.kill)
        server.launch()
    for server in servers:
        server.wait()
    return servers


def _options(name: str, place: str | None, servers: Sequence[Server]) -> dict[str, object]:
    if name == "orb":
        return {}
    if name == "kafka":
        return {"bootstrap": place}
    return {"url": place} if place is not None else servers[0].options


async def _fail_over(
    host: EngineHost, options: Mapping[str, object], servers: Sequence[Server]
) -> float:
    def kill(leader: str | None) -> None:
        named = [each for each in servers if each.name == leader]
        (named or list(servers))[0].kill()

    return await measure_failover(host, options, kill)
