"""A small file beside the log that answers wait for, as they wait for the log.

Theory of operation. What was written to the file in a turn of the loop is synchronised once, by a
thread. The turn is not over before (`barriers`), so what tells of the change does not leave before.
"""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition

if TYPE_CHECKING:
    from asyncio import Future

    from cogwork.container.journals.barriers import Barriers
    from cogwork.dataplane.core import Core

__all__ = ("FileSync",)


class FileSync:
    """Owned by the container, for one file."""

    def __init__(self, core: Core, barriers: Barriers) -> None:
        """Initialize it; nothing waits.

        Args:
            core: Holds the output.
            barriers: The turns that it is held for.
        """
        self._core = core
        self._barriers = barriers
        self._pending: Future[None] | None = None

    def __call__(self, fd: int) -> None:
        """Have what was just written to a file synchronised, and the present turn wait for it."""
        loop = asyncio.get_running_loop()
        if self._pending is None:
            self._pending = loop.create_future()
            self._pending.add_done_callback(self._synchronised)
            loop.call_soon(self._begin, fd)
        self._barriers.wait_for(self._pending)
        self._core.hold_output()

    def _begin(self, fd: int) -> None:
        pending, self._pending = self._pending, None
        assert pending is not None
        # Its own descriptor: the file may be replaced and closed meanwhile.
        job = asyncio.get_running_loop().run_in_executor(None, _synchronise, os.dup(fd))
        job.add_done_callback(partial(_pass_on, pending))

    def _synchronised(self, done: Future[None]) -> None:
        if done.cancelled() or done.exception() is not None:
            text = f"what was declared may be lost: {done.exception()}"
            self._core.break_off(str(Condition.INTERNAL_ERROR), text)


def _synchronise(fd: int) -> None:
    try:
        os.fdatasync(fd)
    finally:
        os.close(fd)


def _pass_on(pending: Future[None], job: Future[None]) -> None:
    """Let those know who wait for a job of a thread."""
    error = None if job.cancelled() else job.exception()
    if pending.done():
        return
    if error is not None:
        pending.set_exception(error)
    else:
        pending.set_result(None)
