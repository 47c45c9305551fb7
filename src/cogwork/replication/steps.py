"""Waiting for what the disk thread does step by step."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator

    from cogwork.log.disk_queue import DiskQueue, Operation

__all__ = ("run",)

T = TypeVar("T")


async def run(queue: DiskQueue, steps: Generator[Operation, None, T]) -> T:
    """Have steps done, and wait for the last one.

    Raises:
        OSError: One could not be done.
        LogError: What is there cannot be used.
    """
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def failed(error: Exception) -> None:
        if not future.done():
            future.set_exception(error)

    def done(result: T) -> None:
        if not future.done():
            future.set_result(result)

    queue.start(steps, done, failed)
    return await future
