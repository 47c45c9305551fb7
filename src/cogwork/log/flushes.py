"""The flushes of a log that are not durable yet: on their way to the disk, or kept back by it.

Several may be on their way, and be done in any order; they count as durable in theirs. One that
finds no space holds up those behind it that have not left, and is written again when asked for.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from cogwork.log.disk_queue import WriteFailed
from cogwork.log.reserve import is_full

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cogwork.log.disk_queue import DiskQueue
    from cogwork.log.flush import Flush

__all__ = ("Flushes",)


class Flushes:
    """Owned by the log.

    Attributes:
        size_bytes: Of all that are not durable.
    """

    def __init__(
        self,
        queue: DiskQueue,
        *,
        on_written: Callable[[], None],
        on_full: Callable[[], None],
        on_failed: Callable[[Flush, OSError], None],
    ) -> None:
        """Start with none yet.

        Args:
            queue: The way to the disk.
            on_written: Called when one has been written: `take_durable` may have some.
            on_full: Called when there was no space for one.
            on_failed: Called with one that cannot be written, and why.
        """
        self.size_bytes = 0
        self._queue = queue
        self._on_written = on_written
        self._on_full = on_full
        self._on_failed = on_failed
        self._unsent: deque[Flush] = deque()
        self._sent: deque[Flush] = deque()
        self._stalled: deque[Flush] = deque()
        self._is_retrying = False
        self._is_over = False

    @property
    def is_empty(self) -> bool:
        """Whether all are durable."""
        return not self._sent and not self._unsent

    @property
    def is_stalled(self) -> bool:
        """Whether there was no space for one."""
        return bool(self._stalled)

    def add(self, flush: Flush) -> None:
        """Take one, the last of all; it leaves with `send`."""
        self._unsent.append(flush)
        self.size_bytes += flush.size_bytes

    def send(self) -> None:
        """Hand them to the disk, as far as it takes them."""
        while self._unsent and not self._stalled and not self._is_over:
            if not self._write(self._unsent[0]):
                return
            self._sent.append(self._unsent.popleft())

    def retry(self) -> None:
        """Try again to write the first one that there was no space for."""
        if self._stalled and not self._is_retrying:
            self._is_retrying = self._write(self._stalled[0])

    def take_durable(self) -> Iterator[Flush]:
        """Yield those that have become durable, without a gap."""
        while self._sent and self._sent[0].is_done:
            flush = self._sent.popleft()
            self.size_bytes -= flush.size_bytes
            yield flush

    def stop(self) -> None:
        """Write nothing more: the disk has failed."""
        self._is_over = True

    def _write(self, flush: Flush) -> bool:
        def then(error: OSError | None) -> None:
            self._written(flush, error)

        return self._queue.write(flush.fd, flush.position, flush.data, then)

    def _written(self, flush: Flush, error: OSError | None) -> None:
        is_retried = self._is_retrying and flush is self._stalled[0]
        if is_retried:
            self._is_retrying = False
        if self._is_over:
            return
        if error is None:
            flush.is_done = True
            if is_retried:
                self._stalled.popleft()
                self.retry()
            self._on_written()
        elif not isinstance(error, WriteFailed) or not is_full(error):
            self._on_failed(flush, error)
        else:
            if not is_retried:
                self._stalled.append(flush)
            self._on_full()
