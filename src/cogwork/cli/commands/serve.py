"""`cogwork serve`: a container in the foreground."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import click
import msgspec

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.options.log_format import FORMATS, log_format
from cogwork.cli.options.quantities import Whole
from cogwork.cli.process.children import COMMAND, LEFT
from cogwork.cli.process.companions import Companions, companions_of
from cogwork.cli.process.file_limit import raise_file_limit
from cogwork.cli.process.garbage import GarbageCollection
from cogwork.cli.process.log_lines import start_log
from cogwork.cli.process.service_manager import keep_telling, tell_ready
from cogwork.config.errors import ConfigurationError, DataDirectoryError
from cogwork.config.reading import defaults, load, with_options
from cogwork.config.settings import READERS_MAX, WORKERS_MAX
from cogwork.container.container import Container
from cogwork.container.service import Service
from cogwork.container.workers import Worker
from cogwork.io.loop import EventLoop
from cogwork.log.directory import DIRECTORY_MODE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from cogwork.cli.process.companions import Companion
    from cogwork.config.reading import Warn
    from cogwork.config.settings import Configuration
    from cogwork.pipeline.arrow.serving.crew import Crew

    Read = Callable[[], Configuration]

__all__ = ("serve",)

CONFIG_PATH = click.Path(dir_okay=False, path_type=Path)


log = logging.getLogger("cogwork")


@click.command()
@click.option(
    "--id",
    "container_id",
    metavar="NAME",
    show_default="the machine's name",
    help="The container's id.",
)
@click.option(
    "--listen",
    multiple=True,
    metavar="HOST:PORT",
    show_default="127.0.0.1:5672",
    help="Address to listen on, or unix://PATH; repeatable.",
)
@click.option(
    "--link",
    "links",
    multiple=True,
    metavar="HOST:PORT",
    help="Container to link to; repeatable. For certificates, use [[link]] in --config.",
)
@click.option(
    "--workers",
    type=Whole(1, WORKERS_MAX),
    metavar="N",
    show_default="1",
    help="Number of processes that share the work, one for each core to use.",
)
@click.option(
    "--arrow",
    "readers",
    type=Whole(0, READERS_MAX),
    metavar="N",
    show_default="0",
    help="Number of processes that serve streams as Arrow record batches.",
)
@click.option(
    "--config",
    type=CONFIG_PATH,
    metavar="FILE",
    help="Configuration file: TOML, or a qpid-dispatch router's.",
)
@click.option(
    "--queue-patterns",
    multiple=True,
    metavar="PATTERN",
    help="Prefix or pattern of addresses that are queues; repeatable.",
)
@click.option(
    "--topic-patterns",
    multiple=True,
    metavar="PATTERN",
    help="Prefix or pattern of addresses that are topics; repeatable.",
)
@click.option(
    "--gateway",
    "gateways",
    multiple=True,
    metavar="NAME",
    help="Gateway for another protocol, such as zeromq; repeatable.",
)
@click.option("--data", "data_dir", metavar="DIR", show_default="nowhere", help="Data directory.")
@click.option(
    "--primaries",
    metavar="A,B,C",
    show_default="this container alone",
    help="IDs of the containers that vote in the cluster, the same in each of its containers.",
)
@click.option(
    "--cluster",
    metavar="NAME",
    show_default="no name",
    help="Name of the cluster: containers of other clusters are not linked.",
)
@click.option("--telemetry", is_flag=True, help="Append heartbeats to the stream $telemetry.")
@click.option("--metrics", metavar="HOST:PORT", help="Address to serve `cogwork metrics` on.")
@click.option(
    "--metrics-user",
    metavar="NAME",
    show_default="nobody",
    help="User of --metrics; COGWORK_PASSWORD has the password.",
)
@click.option("--console", metavar="HOST:PORT", help="Address to serve `cogwork console` on.")
@log_format
@click.option(
    "--json", "as_json", is_flag=True, help="Print the listening addresses as a JSON object."
)
@click.option("--worker", "worker_json", hidden=True, help="What a supervisor tells a worker.")
@click.option("--arrow-reader", "job_json", hidden=True, help="What a container tells a reader.")
def serve(
    *,
    container_id: str | None,
    listen: tuple[str, ...],
    links: tuple[str, ...],
    workers: int | None,
    readers: int | None,
    gateways: tuple[str, ...],
    config: Path | None,
    queue_patterns: tuple[str, ...],
    topic_patterns: tuple[str, ...],
    data_dir: str | None,
    primaries: str | None,
    cluster: str | None,
    telemetry: bool,
    metrics: str | None,
    metrics_user: str | None,
    console: str | None,
    logs_json: bool,
    as_json: bool,
    worker_json: str | None,
    job_json: str | None,
) -> int:
    """Run a container.

    Options override the configuration file. SIGHUP reloads the file; SIGTERM lets deliveries
    settle, then stops the container.
    """
    worker = None if worker_json is None else msgspec.json.decode(worker_json, type=Worker)

    def read(warn: Warn = log.warning) -> Configuration:
        whole = with_options(
            load(config, warn=warn) if config is not None else defaults(),
            container_id,
            listen,
            data_dir,
            links=links,
            workers=workers,
            has_telemetry=telemetry,
            readers=readers,
            queue_patterns=queue_patterns,
            topic_patterns=topic_patterns,
            gateways=gateways,
            primaries=primaries,
            cluster=cluster,
            file=config,
        )
        return whole if worker is None else worker.configured(whole)

    notes: list[str] = []
    configuration = read(notes.append)
    _prepare(configuration)
    single: dict[str, object] = {"--id": container_id, "--config": config, "--data": data_dir}
    single |= {"--primaries": primaries, "--cluster": cluster, "--log-format": FORMATS[logs_json]}
    single |= {"--workers": workers, "--arrow": readers}
    repeated = {"--listen": listen, "--link": _kept_out(links), "--gateway": gateways}
    repeated |= {"--queue-patterns": queue_patterns, "--topic-patterns": topic_patterns}
    options = [*_words(single, repeated), *["--telemetry"] * telemetry]
    beside = companions_of(configuration, metrics, metrics_user, console, FORMATS[logs_json])
    if job_json is not None:
        return _read_for(job_json, configuration, read, logs_json=logs_json)
    if worker is None and configuration.workers > 1:
        from cogwork.cli.process import workers as crew  # noqa: PLC0415  # most containers have none

        start_log(crew.name_of(configuration), notes, as_json=logs_json)
        return crew.run(configuration, options, beside, as_json=as_json)
    whose = "" if worker is None else configuration.id or ""
    start_log(whose, () if worker else notes, as_json=logs_json)
    crew_of = partial(_crew_of, options, worker_json, worker)
    return _run_alone(_run(configuration, worker, read, crew_of, beside, as_json=as_json), worker)


def _run_alone(work: Coroutine[Any, Any, bool], worker: Worker | None) -> int:
    """Run the container of this process; return how it ended."""
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        has_left = runner.run(work)
    return LEFT if worker is not None and has_left else ExitCode.OK


def _prepare(configuration: Configuration) -> None:
    """See that a container can be as it is configured, and make its data directory."""
    _demand_pyarrow(configuration)
    if configuration.data_dir is not None:
        _make(configuration.data_dir)


def _demand_pyarrow(configuration: Configuration) -> None:
    """Refuse readers where they cannot be.

    Raises:
        ConfigurationError: They are wanted, and pyarrow is not installed.
    """
    if configuration.arrow.readers and find_spec("pyarrow") is None:
        wanted = "pip install 'cogwork[arrow]'"
        raise ConfigurationError("options", 0, "arrow.readers", "no pyarrow", wanted)


def _make(data_dir: str) -> None:
    """Make the data directory, where it is not there.

    Raises:
        DataDirectoryError: It cannot be made.
    """
    try:
        Path(data_dir).mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise DataDirectoryError(data_dir, error.strerror or "an error") from error


def _read_for(
    job_json: str, configuration: Configuration, read: Read, *, logs_json: bool
) -> ExitCode:
    """Run a reader of a container."""
    from cogwork.pipeline.arrow.serving.job import ReaderJob  # noqa: PLC0415  # most have no readers
    from cogwork.pipeline.arrow.serving.reader import run  # noqa: PLC0415  # needs pyarrow

    job = msgspec.json.decode(job_json, type=ReaderJob)
    start_log(f"{job.container} reader {job.number}", as_json=logs_json)
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        runner.run(run(job, configuration, read))
    return ExitCode.OK


def _crew_of(
    options: list[str], worker_json: str | None, worker: Worker | None, container: Container
) -> Crew | None:
    """Make the crew of readers that a container is to have."""
    if not container.configuration.arrow.readers:
        return None
    from cogwork.pipeline.arrow.serving.crew import Crew  # noqa: PLC0415  # most containers have none

    told = [] if worker_json is None else ["--worker", worker_json]
    command = (*COMMAND, "serve", *options, *told, "--arrow-reader")
    return Crew(container, command, 0 if worker is None else worker.number)


def _kept_out(links: tuple[str, ...]) -> tuple[str, ...]:
    """Keep passwords out of the command lines of workers and readers, which everybody can read.

    They get them by their environment, which nobody else can.
    """
    kept = []
    for at, link in enumerate(links):
        scheme, mark, rest = link.partition("://")
        login, sign, place = rest.rpartition("@")
        user, colon, password = login.partition(":")
        if colon and password and "${" not in password:
            name = f"COGWORK_LINK_PASSWORD_{at}"
            os.environ[name] = unquote(password)
            kept.append(f"{scheme}{mark}{user}:${{{name}}}{sign}{place}")
        else:
            kept.append(link)
    return tuple(kept)


def _words(single: dict[str, object], repeated: dict[str, tuple[str, ...]]) -> list[str]:
    """Write options as they stand on a command line."""
    given = [(name, value) for name, value in single.items() if value is not None]
    given += [(name, value) for name, values in repeated.items() for value in values]
    return [word for name, value in given for word in (name, str(value))]


async def _run(
    configuration: Configuration,
    worker: Worker | None,
    read: Read,
    crew_of: Callable[[Container], Crew | None],
    beside: Sequence[Companion],
    *,
    as_json: bool,
) -> bool:
    """Run a container until it stops; tell whether it has left its mesh for good."""
    raise_file_limit()
    container = Container(configuration, worker)
    crew = crew_of(container)
    companions = Companions(beside)

    def read_again() -> Configuration:
        if crew is not None:
            crew.signal(signal.SIGHUP)
        return read()

    service = Service(container, read_again)

    def announce() -> None:
        GarbageCollection(asyncio.get_running_loop().call_later).start()
        if crew is not None:
            crew.start()
        if worker is None:
            _announce(container, as_json=as_json)
            tell_ready()
            companions.start(container.endpoints)
        else:
            _take_up_work(container, service)

    telling = None if worker else asyncio.create_task(keep_telling(), name="watchdog")
    try:
        await service.run(announce)
    finally:
        if telling is not None:
            telling.cancel()
        await companions.close()
        if crew is not None:
            await crew.close()
    return container.has_left


def _announce(container: Container, *, as_json: bool) -> None:
    gateways = container.gateways.endpoints
    if as_json:
        facts = {"id": container.id, "endpoints": container.endpoints, "process_id": os.getpid()}
        click.echo(json.dumps(facts | ({"gateways": gateways} if gateways else {})))
    else:
        click.echo(f"container {container.id} listens on {', '.join(container.endpoints)}")
        for name, endpoints in gateways.items():
            click.echo(f"gateway {name} listens on {', '.join(endpoints)}")


def _take_up_work(container: Container, service: Service) -> None:
    """Tell the supervisor that this worker serves clients, and stop when that one has gone."""
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _on_stdin, service)
    if container.mesh.readiness.is_reached:
        _announce(container, as_json=True)
    else:
        container.mesh.readiness.when_reached(lambda: _announce(container, as_json=True))


def _on_stdin(service: Service) -> None:
    """Take the end of stdin: nothing is ever written there."""
    if not os.read(sys.stdin.fileno(), 1):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        service.stop()
