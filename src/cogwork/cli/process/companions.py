"""What runs beside a container in processes of their own: its metrics and its console.

Theory of operation. A companion is a child that stops when its stdin ends, so that none outlives
its container, however that goes. One that dies is started again, after growing pauses. It is a
client like any other: it takes nothing from the container but what it asks for.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import signal
import threading
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import click

from cogwork.amqp.loopback import is_loopback
from cogwork.cli.options.http_place import http_place
from cogwork.cli.process.children import COMMAND, in_words
from cogwork.cli.process.supervisor import Timing, WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.config.settings import Configuration

__all__ = ("Companion", "Companions", "companions_of", "end_with_stdin")

STOP_S = 10.0
"""How long a companion may take to stop before it is killed."""

EXTRAS = {"metrics": ("prometheus_client",), "console": ("starlette", "uvicorn", "jinja2")}
"""What each of them needs, by the name of its command, which is its extra's, too."""

ANYWHERE = ("0.0.0.0", "::")  # what a container listens on that can be reached by every address

log = logging.getLogger("cogwork")


@dataclass(frozen=True, slots=True)
class Companion:
    """What is to run beside a container.

    Attributes:
        command: The command's name.
        place: Where it serves HTTP.
        user: Who it logs in as; None for nobody.
        options: Further words of its command line.
    """

    command: str
    place: str
    user: str | None = None
    options: tuple[str, ...] = ()

    def words(self, endpoints: Sequence[str]) -> tuple[str, ...]:
        """Return its command line.

        Args:
            endpoints: Where the container listens.
        """
        url = _near(endpoints, self.user)
        return (*COMMAND, self.command, url, "--listen", self.place, "--companion", *self.options)


def companions_of(
    configuration: Configuration,
    metrics: str | None,
    metrics_user: str | None,
    console: str | None,
    log_format: str,
) -> list[Companion]:
    """Return what is to run beside a container, if it can.

    Raises:
        click.UsageError: An extra is missing, or nothing could reach the container.
        click.BadParameter: A place is none.
    """
    options = ("--log-format", log_format)
    wanted = []
    if metrics is not None:
        wanted.append(Companion("metrics", metrics, metrics_user, options))
    elif metrics_user is not None:
        raise click.UsageError("--metrics-user needs --metrics")
    if console is not None:
        wanted.append(Companion("console", console, None, options))
    for each in wanted:
        _check(each, configuration)
    return wanted


def _check(companion: Companion, configuration: Configuration) -> None:
    name = companion.command
    for module in EXTRAS[name]:
        if find_spec(module) is None:
            raise click.UsageError(f"--{name}: {module} is missing: pip install 'cogwork[{name}]'")
    host, _ = http_place(companion.place, f"--{name}")
    if name == "console" and not is_loopback(host):
        raise click.UsageError(
            f"--console: {companion.place!r} is reached from other machines: serve it on this one, "
            "behind a proxy, or run `cogwork console` with --https-cert"
        )
    if not any(
        each.path is not None or (each.transport == "amqp" and _is_here(each.host))
        for each in configuration.listeners
        if not each.proxy_protocol
    ):
        raise click.UsageError(
            f"--{name} needs a listener on this machine without TLS, such as 127.0.0.1:5672 or "
            "unix://PATH"
        )


def _is_here(host: str) -> bool:
    return is_loopback(host) or host in (*ANYWHERE, "")


def _near(endpoints: Sequence[str], user: str | None) -> str:
    """Return the URL by which a process of this machine reaches a container."""
    login = "" if user is None else f"{quote(user, safe='')}@"
    for endpoint in endpoints:
        parts = urlsplit(endpoint)
        if parts.scheme == "unix":
            return f"unix://{login}{parts.path}"
        host = parts.hostname or ""
        if parts.scheme == "amqp" and _is_here(host):
            if host in ANYWHERE:
                host = "::1" if ipaddress.ip_address(host).version == 6 else "127.0.0.1"
            shown = f"[{host}]" if ":" in host else host
            return f"amqp://{login}{shown}:{parts.port}"
    raise LookupError("no listener on this machine")  # `companions_of` has seen that there is one


class Companions:
    """The companions of one container. Owned by its event loop."""

    def __init__(self, wanted: Sequence[Companion], timing: Timing | None = None) -> None:
        """Start nothing yet.

        Args:
            wanted: What is to run.
            timing: How patient it is with what dies.
        """
        self._wanted = wanted
        self._timing = timing or Timing(pause_s=1.0, pause_max_s=60.0, stop_s=STOP_S)
        self._stopping = asyncio.Event()
        self._processes: list[WorkerProcess] = []

    def start(self, endpoints: Sequence[str]) -> None:
        """Start all; they say themselves where they serve.

        Args:
            endpoints: Where the container listens.
        """
        for each in self._wanted:
            process = WorkerProcess(each.command, each.words(endpoints))
            process.keeper = asyncio.create_task(self._keep(process), name=each.command)
            self._processes.append(process)

    async def _keep(self, process: WorkerProcess) -> int | None:
        """Have a companion live again and again; return the last exit code."""
        loop = asyncio.get_running_loop()
        pause_s = self._timing.pause_s
        while True:
            started_s = loop.time()
            telling = asyncio.create_task(_tell(process))
            try:
                code = await process.live(self._stopping)
            finally:
                telling.cancel()
            if self._stopping.is_set():
                return code
            if loop.time() - started_s >= self._timing.settled_s:
                pause_s = self._timing.pause_s
            log.warning("%s %s; restarting it in %g s", process.id, in_words(code), pause_s)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_s)
                return None
            pause_s = min(2 * pause_s, self._timing.pause_max_s)

    async def close(self) -> None:
        """Stop all, and wait for them."""
        self._stopping.set()
        keepers = [each.keeper for each in self._processes]
        for each in self._processes:
            each.signal(signal.SIGTERM)
        if not keepers:
            return
        _, late = await asyncio.wait(keepers, timeout=self._timing.stop_s)
        for each in self._processes:
            if each.keeper in late:
                each.signal(signal.SIGKILL)
        if late:
            await asyncio.wait(late)


async def _tell(process: WorkerProcess) -> None:
    """Log what a companion says once it serves."""
    await process.listens.wait()
    log.info("%s", process.said)


def end_with_stdin() -> None:
    """Have this process stop, as by SIGTERM, once its stdin ends: its container has gone."""
    threading.Thread(target=_end_with_stdin, name="stdin", daemon=True).start()


def _end_with_stdin() -> None:
    while os.read(0, 1):  # nothing is ever written there
        pass
    os.kill(os.getpid(), signal.SIGTERM)
