"""One reader's process: it listens beside its container, and serves ranges of streams.

Theory of operation. It reads the same configuration as the container: the same users, permissions,
certificates and virtual hosts, on ports of its own that it shares with the other readers. It has no
streams. What is sealed it maps; all else it asks the container for, over a socket that it was born
with. When that one closes, the container has gone, and so does the reader.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import structs

from cogwork.amqp.errors import AmqpError, CogworkError, Condition
from cogwork.container.connections.listeners import Listeners
from cogwork.container.connections.peers import Peers
from cogwork.container.security.access import Access
from cogwork.container.security.log import SecurityLog
from cogwork.dataplane.core import Core
from cogwork.io.heap import keep_freed
from cogwork.io.idle import IdleClock
from cogwork.io.time_slice import set_time_slice
from cogwork.pipeline.arrow.serving.asker import Asker
from cogwork.pipeline.arrow.serving.frames import Frames
from cogwork.pipeline.arrow.serving.job import place_of
from cogwork.pipeline.arrow.serving.links import Links
from cogwork.pipeline.arrow.serving.pace import Pace
from cogwork.pipeline.arrow.serving.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.config.settings import Configuration
    from cogwork.pipeline.arrow.serving.job import ReaderJob

__all__ = ("run",)

TICK_S = 0.1
SWEEP_TICKS = 10
CLOSE_S = 0.5

log = logging.getLogger("cogwork")


@dataclass(frozen=True)
class _Vhost:
    """A virtual host, of which a reader knows the name: nobody asks for more but attachments."""

    name: str


class Reader:
    """The process."""

    def __init__(self, job: ReaderJob, configuration: Configuration) -> None:
        """Initialize it; it does not listen yet.

        Args:
            job: What the container tells.
            configuration: The container's own.
        """
        self._job = job
        self._configuration = configuration
        self._frames = Frames(socket.socket(fileno=job.fd))
        arrow = configuration.arrow
        pace = Pace(arrow.idle_processors, arrow.readers)
        self._asker = Asker(self._frames, lambda: pace.tell_live(time.monotonic()))
        turns = Turns(pace, IdleClock())
        self._core = Core(_note_fault)
        name = f"{job.container}.arrow{job.number}"
        self._security = SecurityLog(name, configuration.security_log)
        self._access = Access(configuration, self._security)
        if configuration.data_dir is not None:  # the container's own: both tell the same
            self._access.keep_secrets(Path(configuration.data_dir))
        names = ["", *(vhost.name for vhost in configuration.vhosts)]
        self._peers = Peers(
            self._core,
            name,
            self._access,
            Links(self._core, self._asker, turns),
            vhosts=cast("Any", {name: _Vhost(name) for name in names}),
            limits=configuration.limits,
        )
        self._core.held_bytes_max = configuration.limits.held_bytes
        self._core.congested_at_bytes = configuration.limits.unsent_bytes
        self._listeners = Listeners(self._peers)
        self._ticks = 0

    async def run(self, load: Callable[[], Configuration]) -> None:
        """Serve until the container has gone, or a signal comes.

        Args:
            load: Reads the configuration again.
        """
        self._security.open()
        loop = asyncio.get_running_loop()
        asking = loop.create_task(self._asker.run())
        loop.add_signal_handler(signal.SIGTERM, asking.cancel)
        loop.add_signal_handler(signal.SIGHUP, self._reload, load)
        self._listeners.open(self._on_ports(self._configuration), is_shared=True)
        loop.call_later(TICK_S, self._tick)
        gc.collect()
        gc.freeze()  # what there is by now stays
        await self._asker.say_ready()
        await asyncio.wait([asking])
        await self._close()

    def _on_ports(self, configuration: Configuration) -> list[Any]:
        """Return the listeners that were there at the start, each with a port of the readers."""
        ports = self._job.ports
        listeners = [listen for listen in configuration.at_ports if place_of(listen) in ports]
        return [structs.replace(listen, port=ports[place_of(listen)]) for listen in listeners]

    def _reload(self, load: Callable[[], Configuration]) -> None:
        self._security.reopen()
        try:
            configuration = load()
            self._peers.permit_anew(self._access.replace(configuration))
            self._listeners.replaced(self._on_ports(configuration))
        except (CogworkError, OSError) as error:
            log.error("cannot reload the configuration, the old one stays in effect: %s", error)

    def _tick(self) -> None:
        asyncio.get_running_loop().call_later(TICK_S, self._tick)
        self._core.tick()
        self._peers.beat(self._core.now)
        self._ticks += 1
        if self._ticks % SWEEP_TICKS == 0:
            self._peers.sweep(self._core.now)
            self._security.tick(self._core.now)
        self._core.flush()

    async def _close(self) -> None:
        self._peers.is_draining = True
        self._listeners.close()
        text = f"a reader of container {self._job.container} is shutting down"
        self._peers.close(AmqpError(condition=Condition.CONNECTION_FORCED, description=text))
        self._core.flush()
        until_s = asyncio.get_running_loop().time() + CLOSE_S
        while self._peers.connections and asyncio.get_running_loop().time() < until_s:
            await asyncio.sleep(0.01)
        self._peers.lose()
        self._access.close()
        self._security.close()
        self._frames.close()


def _note_fault(_port: object, error: Exception) -> None:
    log.error("a link failed: %s", error, exc_info=error)


async def run(
    job: ReaderJob, configuration: Configuration, load: Callable[[], Configuration]
) -> None:
    """Run a reader until its container has gone.

    Args:
        job: What the container tells.
        configuration: The container's own.
        load: Reads it again.
    """
    set_time_slice(0)  # the container's own are short
    keep_freed()
    os.nice(configuration.arrow.nice)
    await Reader(job, configuration).run(load)
