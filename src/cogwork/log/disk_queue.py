"""What waits for the disk: callbacks by job id, and work in steps.

Theory of operation. The disk thread knows job ids. Here each job id has somebody who waits: a
callback, or a generator that yields the operations it needs, one after the other, and goes on when
each is done. The event loop calls `dispatch` when `fileno` is readable. Each completion comes once:
a callback that raises keeps none of the others from theirs.
"""

from __future__ import annotations

import os
import select
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from cogwork.dataplane.disk import SYNC

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ("DiskQueue", "DiskThread", "Operation", "SyncFailed", "WriteFailed")

T = TypeVar("T")


class WriteFailed(OSError):
    """Not all was written; what was synchronised before stays as it is."""


class SyncFailed(OSError):
    """What was written may be lost; trying again would prove nothing."""


Octets = bytes | tuple[bytes, ...]
"""What is written: in one piece, or in several that follow each other."""


class DiskThread(Protocol):
    """What `cogwork.dataplane.disk.Disk` does: a test puts faults here, a simulation its disk."""

    def fileno(self) -> int:
        """Return the descriptor that is readable while something has completed."""

    def submit(self, fd: int, offset: int, data: Octets, sync: bool) -> int:
        """Queue a write; return its job id, or 0 where there is no room."""

    def allocate(self, fd: int, size_bytes: int, sync: bool) -> int:
        """Queue the reservation of space; return its job_id."""

    def completed(self) -> list[tuple[int, int, int]]:
        """Take what is done: job id, errno, what was done last."""

    def close(self) -> None:
        """Do what is queued, and end."""


class Operation(NamedTuple):
    """What a step waits for.

    Attributes:
        fd: The file.
        offset: Where to write.
        data: What to write, in one piece or in several; None reserves space instead.
        size_bytes: How much to reserve.
        sync: Whether to synchronise the file then.
    """

    fd: int
    offset: int = 0
    data: Octets | None = b""
    size_bytes: int = 0
    sync: bool = False

    @classmethod
    def sync_of(cls, fd: int) -> Operation:
        """Synchronise a file, or the names in a directory."""
        return cls(fd, sync=True)

    @classmethod
    def allocation(cls, fd: int, size_bytes: int) -> Operation:
        """Reserve space."""
        return cls(fd, data=None, size_bytes=size_bytes, sync=True)


class DiskQueue:
    """Hands work to a disk thread and learns of its end.

    Attributes:
        disk: The thread.
    """

    def __init__(self, disk: DiskThread) -> None:
        """Wait for a disk.

        Args:
            disk: The thread; it ends with `close`.
        """
        self.disk = disk
        self._waiting: dict[int, Callable[[OSError | None], None]] = {}
        self._held: deque[tuple[Operation, Callable[[OSError | None], None]]] = deque()
        self._done: deque[tuple[int, int, int]] = deque()

    def fileno(self) -> int:
        """Return the descriptor that is readable when `dispatch` has something to do."""
        return self.disk.fileno()

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for anything."""
        return not self._waiting and not self._held

    def write(
        self, fd: int, offset: int, data: Octets, then: Callable[[OSError | None], None]
    ) -> bool:
        """Write and synchronise.

        Args:
            fd: Where.
            offset: From the beginning of the file.
            data: What, in one piece or in several.
            then: Called by `dispatch` with what went wrong, if anything.

        Returns:
            False where as much waits as may: try again after the next `dispatch`.
        """
        job_id = self.disk.submit(fd, offset, data, True)
        if job_id:
            self._waiting[job_id] = then
        return job_id != 0

    def start(
        self,
        steps: Generator[Operation, None, T],
        done: Callable[[T], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Begin work in steps.

        Args:
            steps: Yields what it needs next; what fails is raised where it yielded it.
            done: Called with what it returns.
            failed: Called with the exception that ended it: for what they may raise an `OSError`, a
                `LogError` or a `ValueError`.
        """

        def go_on(error: OSError | None) -> None:
            try:
                operation = next(steps) if error is None else steps.throw(error)
            except StopIteration as stop:
                done(stop.value)
            except Exception as uncaught:  # whatever it is, somebody waits for the end
                failed(uncaught)
            else:
                self._submit(operation, go_on)

        go_on(None)

    def dispatch(self) -> None:
        """Tell those who wait what is done.

        Raises:
            Exception: What a callback raised, once all have been called; a group where several did.
        """
        errors: list[Exception] = []
        self._done.extend(self.disk.completed())
        while self._done:  # a callback that waits for the disk may take some of them
            job_id, number, step = self._done.popleft()
            then = self._waiting.pop(job_id, None)
            try:
                if then is not None:
                    then(_error(number, step) if number else None)
            except Exception as error:  # the others are called all the same
                errors.append(error)
        held, self._held = self._held, deque()
        for operation, then in held:
            self._submit(operation, then)
        if errors:
            raise errors[0] if len(errors) == 1 else ExceptionGroup("of callbacks", errors)

    def run(self, steps: Generator[Operation, None, T]) -> T:
        """Do work in steps at once: for whoever may wait, at a start or in a tool.

        Args:
            steps: As for `start`.

        Returns:
            What it returns.
        """
        results: list[T] = []
        errors: list[Exception] = []
        self.start(steps, results.append, errors.append)
        while not results and not errors:
            self.wait()
        if errors:
            raise errors[0]
        return results[0]

    def finish(self) -> None:
        """Wait until nobody waits for anything."""
        while not self.is_idle:
            self.wait()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until something is done, and dispatches it."""
        if not self._done:
            select.select([self.disk], [], [], timeout_s)
        self.dispatch()

    def close(self) -> None:
        """Finish, and end the thread."""
        self.finish()
        self.disk.close()

    def _submit(self, operation: Operation, then: Callable[[OSError | None], None]) -> None:
        fd, offset, data, size_bytes, sync = operation
        if data is None:
            job_id = self.disk.allocate(fd, size_bytes, sync)
        else:
            job_id = self.disk.submit(fd, offset, data, sync)
        if job_id:
            self._waiting[job_id] = then
        else:
            self._held.append((operation, then))


def _error(number: int, step: int) -> OSError:
    kind = SyncFailed if step == SYNC else WriteFailed
    return kind(number, os.strerror(number))
