"""A service whose methods may block: each call runs in a thread of a pool."""

from __future__ import annotations

import asyncio
import inspect
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

from cogwork.rpc.serving.request_task import RequestTask
from cogwork.rpc.serving.service import Service

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from concurrent.futures import Future


__all__ = ("ThreadedService",)

_END = object()


class ThreadedService(Service):
    """Serves the methods of a topic in threads; made by `Client.threaded_service`.

    As many threads as its concurrency run plain functions; coroutine functions run on the event
    loop. A thread cannot be stopped: a method that takes long looks at `current_call()`.
    """

    runs_beside = True
    _pool: ThreadPoolExecutor | None = None

    async def stop(self) -> None:
        """Take no more requests, waits for what is under work, and forget what takes too long."""
        await super().stop()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    @property
    def pool(self) -> ThreadPoolExecutor:
        """The threads; started as they are needed."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._concurrency, thread_name_prefix=self.topic)
        return self._pool

    def run_plain(self, task: RequestTask) -> None:
        """Run a plain function in a thread."""
        self.request_queue.know(task)
        task.thread = self.pool.submit(copy_context().run, self._run_in_thread, task)

    def _run_in_thread(self, task: RequestTask) -> None:
        try:
            result = task.method.function(**task.arguments)
        except BaseException as error:  # SystemExit too must not end a thread of the pool
            self._hand_back(RequestTask.fail, task, error)
        else:
            self._hand_back(self._finish, task, result)

    def _finish(self, task: RequestTask, result: object) -> None:
        task.note_pace()
        task.finish(result)

    def _hand_back(
        self, done: Callable[[RequestTask, Any], None], task: RequestTask, value: object
    ) -> None:
        try:
            self._loop.call_soon_threadsafe(done, task, value)
        except RuntimeError:
            return  # the loop is closed: nobody is left to be told

    async def send_parts(self, task: RequestTask) -> None:
        """Send what a method yields; a plain generator is stepped in a thread."""
        if not inspect.isgeneratorfunction(task.method.function):
            await super().send_parts(task)
            return
        made: Generator[Any] = task.method.function(**task.arguments)
        context, step = copy_context(), partial(next, made, _END)
        stepping: Future[Any] | None = None
        try:
            while True:
                stepping = self.pool.submit(context.run, step)
                value = await asyncio.wrap_future(stepping)
                if value is _END:
                    return
                await task.part(value)
        finally:
            if stepping is not None:  # a step that is under way cannot be stopped
                stepping.add_done_callback(partial(self._close_generator, made))

    def _close_generator(self, made: Generator[Any], _: object) -> None:
        """Close it in a thread, once nothing of it runs."""
        with suppress(RuntimeError):  # the pool has been shut down
            self.pool.submit(made.close)
