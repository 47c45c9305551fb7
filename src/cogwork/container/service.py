"""A container in the foreground: what signals make it do, until one of them stops it.

SIGTERM and SIGINT let deliveries settle and stop, a second one stops at once. SIGHUP reads the
configuration and the certificates again, and opens the file of the security log anew. SIGUSR1
writes the whole state, SIGUSR2 one line.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.config.difference import difference
from cogwork.container.management.state import one_line, write_state
from cogwork.io.wakefulness import DEVICE, Wakefulness

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from cogwork.config.settings import Configuration
    from cogwork.container.container import Container

__all__ = ("Service",)

LOOK_AFTER_S = 0.2
"""Between two looks at whether the container has work for processors that are kept awake."""

log = logging.getLogger("cogwork")


class Service:
    """Runs one container until a signal stops it. Owned by its event loop."""

    def __init__(self, container: Container, load: Callable[[], Configuration]) -> None:
        """Initialize it; it does not run yet.

        Args:
            container: Not started.
            load: Reads the configuration again.
        """
        self._container = container
        self._load = load
        self._stopping = asyncio.Event()
        self._at_once = asyncio.Event()
        self._jobs: set[asyncio.Task[None]] = set()
        self._wakefulness: Wakefulness | None = None
        self._looking: asyncio.TimerHandle | None = None

    async def run(self, announce: Callable[[], None]) -> None:
        """Listen, and returns once the container has stopped.

        Args:
            announce: Called when it listens.

        Raises:
            ListenError: A port is taken.
            TlsFilesError: A certificate cannot be used.
            CogworkError: The container has stopped because it could not go on.
        """
        # Whoever can connect may also send a signal, however long it takes to read what is on disk.
        self._handle_signals()
        await self._container.start()
        self._container.on_leave = self._stopping.set
        if self._container.failure is not None:  # it failed before anybody could be told
            self._stopping.set()
        announce()
        self._keep_awake(is_wanted=self._container.configuration.keep_awake)
        await self._stopping.wait()
        await self._stop()
        self._keep_awake(is_wanted=False)
        if self._container.failure is not None:
            raise self._container.failure

    def _handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        loop.add_signal_handler(signal.SIGUSR1, self._start, self._write_state)
        loop.add_signal_handler(signal.SIGUSR2, self._say)

    def stop(self) -> None:
        """Do what SIGTERM does: lets deliveries settle and stops, the second time at once."""
        (self._at_once if self._stopping.is_set() else self._stopping).set()

    async def _stop(self) -> None:
        """Drain; a second signal cuts that short."""
        drained = asyncio.create_task(self._container.stop())
        await asyncio.sleep(0)  # whoever reads the next line finds nobody listening any more
        log.info("stopping: %d deliveries are unsettled", self._container.unsettled)
        impatient = asyncio.create_task(self._at_once.wait())
        await asyncio.wait((drained, impatient), return_when=asyncio.FIRST_COMPLETED)
        impatient.cancel()
        if not drained.done():
            drained.cancel()
            await asyncio.wait((drained,))
            await self._container.stop(drain_timeout_s=0.0)
        for job in list(self._jobs):
            job.cancel()

    # -- processors that wait awake

    def _keep_awake(self, *, is_wanted: bool) -> None:
        """Begin to keep processors awake while there is work, or end it."""
        if is_wanted and self._wakefulness is None:
            try:
                self._wakefulness = Wakefulness()
            except OSError as error:
                self._cannot_keep_awake(error)
            else:
                self._look(self._wakefulness)
        elif not is_wanted and self._wakefulness is not None:
            self._wakefulness.release()
            self._wakefulness = None
            if self._looking is not None:
                self._looking.cancel()

    def _look(self, wakefulness: Wakefulness) -> None:
        try:
            wakefulness.look()
        except OSError as error:
            self._wakefulness = None
            self._cannot_keep_awake(error)
        else:
            loop = asyncio.get_running_loop()
            self._looking = loop.call_later(LOOK_AFTER_S, self._look, wakefulness)

    def _cannot_keep_awake(self, error: OSError) -> None:
        log.warning("keep_awake has no effect: cannot use %s: %s", DEVICE, error.strerror)

    # -- what the other signals do

    def _reload(self) -> None:
        """Take over what the configuration says now, and report the difference."""
        self._container.security.reopen()
        try:
            configuration = self._load()
            changes = difference(self._container.configuration, configuration)
            problems = self._container.reconfigure(configuration)
        except (CogworkError, OSError) as error:
            log.error("cannot reload the configuration, the old one stays in effect: %s", error)
            self._container.security.event("reload_refused", reason=str(error))
            return
        self._keep_awake(is_wanted=configuration.keep_awake)
        for change in changes:
            log.info("%s", change)
        for problem in problems:
            log.error("cannot reload a certificate, the old one stays in use: %s", problem)
        log.info("configuration reloaded: %d changes", len(changes))
        self._container.security.event("reloaded", changes=[str(each) for each in changes])

    def _start(self, job: Callable[[], Coroutine[None, None, None]]) -> None:
        task = asyncio.get_running_loop().create_task(job())
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)

    async def _write_state(self) -> None:
        try:
            place = await write_state(self._container)
        except OSError as error:
            log.error("cannot write the state: %s", error)
            return
        if place is not None:
            log.info("state written to %s", place)

    def _say(self) -> None:
        log.info("%s", one_line(self._container))
