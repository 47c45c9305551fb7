"""`cogwork serve --workers N`: several containers behind one port."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from cogwork.cli.process.children import COMMAND
from cogwork.cli.process.companions import Companions
from cogwork.cli.process.service_manager import keep_telling, tell_ready
from cogwork.cli.process.supervisor import Supervisor, Timing
from cogwork.config.settings import WORKERS_MAX
from cogwork.container.connections.listeners import mode_of
from cogwork.container.workers import Worker, worker_id
from cogwork.io.listener import listening_path, reserved_socket
from cogwork.io.socket_file import PATH_BYTES_MAX, SocketFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cogwork.cli.exit_codes import ExitCode
    from cogwork.cli.process.companions import Companion
    from cogwork.cli.process.supervisor import WorkerProcess
    from cogwork.config.settings import Configuration, Listen

__all__ = ("name_of", "run")

STOP_MARGIN_S = 5.0
"""How long workers may take to stop beyond the time that deliveries have to settle."""

PREFIX, LOCK = "cogwork-", "lock"
"""Of the directory's name; the file in it that its supervisor holds locked while it lives."""

SHORT_DIRECTORY = "/tmp"  # what is made there is private: `mkdtemp`
"""Where sockets are where the usual place has a name too long for them."""


def name_of(configuration: Configuration) -> str:
    """Return what all of them together are called."""
    return configuration.id or socket.gethostname()


def run(
    configuration: Configuration,
    options: Sequence[str],
    beside: Sequence[Companion],
    *,
    as_json: bool,
) -> ExitCode:
    """Run the workers until a signal ends them.

    Args:
        configuration: Of all of them together.
        options: Those of `serve` that say where the configuration comes from.
        beside: What runs beside them.
        as_json: Whether to say where they listen as a JSON object.

    Returns:
        How it ended.

    Raises:
        ListenError: A port or a path is taken.
    """
    name = name_of(configuration)
    with contextlib.ExitStack() as stack:
        # Held until the end: a port stays theirs while a worker that died is not back yet.
        ports = []
        for listen in configuration.listeners:
            is_at_port = listen.path is None
            ports.append(stack.enter_context(_reserved(listen)) if is_at_port else 0)
        held = {
            listen.path: stack.enter_context(_held(listen.path, mode_of(listen)))
            for listen in configuration.listeners
            if listen.path is not None
        }
        directory = stack.enter_context(_private_directory())
        commands = {}
        for number in range(configuration.workers):
            told = Worker(number, configuration.workers, directory, ports, held)
            words = ("serve", *options, "--worker", msgspec.json.encode(told).decode())
            commands[worker_id(configuration, number)] = (*COMMAND, *words)
        timing = Timing(stop_s=configuration.limits.drain_timeout_s + STOP_MARGIN_S)

        async def supervise() -> ExitCode:
            companions = Companions(beside)

            def announce(workers: list[WorkerProcess]) -> None:
                _announce(name, workers, as_json=as_json)
                tell_ready()
                companions.start(json.loads(workers[0].said)["endpoints"])

            telling = asyncio.create_task(keep_telling(), name="watchdog")
            try:
                return await Supervisor(commands, timing, list(held.values())).run(announce)
            finally:
                telling.cancel()
                await companions.close()

        return asyncio.run(supervise())


@contextlib.contextmanager
def _reserved(listen: Listen) -> Iterator[int]:
    """Take a port; return which."""
    with reserved_socket(listen.host, listen.port or 0) as sock:
        yield sock.getsockname()[1]


@contextlib.contextmanager
def _held(path: str, mode: int) -> Iterator[int]:
    """Listen at a path for all workers; return the file descriptor."""
    with listening_path(path, mode) as sock:
        file = SocketFile(path)
        try:
            yield sock.fileno()
        finally:
            file.remove()


@contextlib.contextmanager
def _private_directory() -> Iterator[str]:
    """Make a directory for sockets that nobody else can enter, and hold its lock.

    What supervisors have left behind that were killed is removed first: nobody holds its lock.
    """
    room = PATH_BYTES_MAX - len(f"/{PREFIX}12345678/{WORKERS_MAX}")
    usual = tempfile.gettempdir()
    place = usual if len(os.fsencode(usual)) <= room else SHORT_DIRECTORY
    _remove_abandoned(Path(place))
    with tempfile.TemporaryDirectory(
        prefix=PREFIX, dir=place, ignore_cleanup_errors=True
    ) as directory:
        new = Path(directory, f"{LOCK}.new")
        with new.open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            new.rename(Path(directory, LOCK))  # nobody sees it before it is held
            yield directory


def _remove_abandoned(place: Path) -> None:
    """Remove the directories of this user's supervisors that do not live any more."""
    for directory in place.glob(f"{PREFIX}*"):
        # Another user's cannot be opened, and one without a lock is just being made.
        with contextlib.suppress(OSError), (directory / LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if directory.lstat().st_uid == os.getuid() and not directory.is_symlink():
                shutil.rmtree(directory, ignore_errors=True)


def _announce(name: str, workers: list[WorkerProcess], *, as_json: bool) -> None:
    endpoints = json.loads(workers[0].said)["endpoints"]
    if not as_json:
        where = ", ".join(endpoints)
        click.echo(f"container {name} listens on {where}, with {len(workers)} workers")
        return
    rows = [
        {"id": each.id, "process_id": each.process.pid}
        for each in workers
        if each.process is not None
    ]
    facts = {"id": name, "endpoints": endpoints, "process_id": os.getpid(), "workers": rows}
    click.echo(json.dumps(facts))
