"""A descriptor as the place of a log: whoever reads it, or does not, never stops the process.

A reader that stands still (a stopped pager, a full journal) blocks whoever writes to its pipe. So
lines go into a bounded buffer, and a thread of its own writes them. What finds the buffer full is
dropped and counted; the count is written as a line once there is a reader again. The thread writes
to the descriptor itself: a lock of `sys.stderr` would be waited for when the process ends.
"""

from __future__ import annotations

import atexit
import os
import select
import sys
import threading
from collections import deque
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("LogOutput", "standard_error")

BUFFER_BYTES = 4 << 20
"""As much as thousands of lines; a reader that is merely slow loses none."""

FLUSH_S = 1.0
"""So long a process that ends waits for what is not written yet."""


def _line_of(dropped: int) -> str:
    """Return what a person is told of lines that were dropped."""
    return f"cogwork: {dropped:,} lines of the log were dropped: nobody read them in time"


class LogOutput:
    """Writes to a descriptor from a thread of its own.

    Attributes:
        dropped: Lines that were dropped since the start.
        line_of: Return the line, without its end, that tells how many lines were dropped.
    """

    def __init__(
        self,
        descriptor: int,
        buffer_bytes: int = BUFFER_BYTES,
        line_of: Callable[[int], str] = _line_of,
    ) -> None:
        """Start the thread, which ends with `close` or with the process.

        Args:
            descriptor: Where to write.
            buffer_bytes: How much may wait to be written.
            line_of: Return the line, without its end, that tells how many lines were dropped.
        """
        self.dropped = 0
        self._descriptor = descriptor
        self._buffer_bytes = buffer_bytes
        self.line_of = line_of
        self._is_torn = False
        self._is_closing = False
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._told = 0
        self._changed = threading.Condition()
        threading.Thread(target=self._run, name="log", daemon=True).start()

    def write(self, data: bytes) -> None:
        """Have one or more whole lines written; never blocks.

        Args:
            data: Ends with the end of a line.
        """
        with self._changed:
            # What is larger than the buffer, such as a whole state, goes into an empty one.
            if self._waiting and self._waiting_bytes + len(data) > self._buffer_bytes:
                self.dropped += data.count(b"\n")
                return
            self._waiting.append(data)
            self._waiting_bytes += len(data)
            self._changed.notify_all()

    def flush(self, timeout_s: float = FLUSH_S) -> bool:
        """Wait until everything is written, but not for long.

        Args:
            timeout_s: The longest wait in seconds.

        Returns:
            Whether everything is written.
        """
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, timeout_s)

    def close(self, timeout_s: float = FLUSH_S) -> bool:
        """Write what waits, but not for long, and end the thread, which writes nothing after that.

        Args:
            timeout_s: The longest wait in seconds.

        Returns:
            Whether everything is written, so that the descriptor may be closed.
        """
        is_written = self.flush(timeout_s)
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        return is_written

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closing)
                if self._is_closing:
                    return
                data = self._waiting[0]
            is_written = self._write(data)
            with self._changed:
                self._waiting.popleft()
                self._waiting_bytes -= len(data)
                if not is_written:
                    self.dropped += data.count(b"\n")
                elif not self._waiting:
                    self._tell_of_dropped()
                self._changed.notify_all()

    def _tell_of_dropped(self) -> None:
        """Have a line written that counts what was dropped; only after one that was written.

        Where nobody reads any more, that line would be dropped, too, and counted, and told of.
        """
        count = self.dropped - self._told
        if count:
            self._told = self.dropped
            line = f"{self.line_of(count)}\n".encode()
            self._waiting.append(line)
            self._waiting_bytes += len(line)

    def _write(self, data: bytes) -> bool:
        """Write all of it; say whether there was anybody to write to."""
        # What a full disk has cut off must not become the beginning of another line.
        whole = b"\n" + data if self._is_torn else data
        view = memoryview(whole)
        while view:
            try:
                view = view[os.write(self._descriptor, view) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [])
            except OSError:  # its reader has left, or its disk is full
                self._is_torn = self._is_torn or len(view) < len(whole)
                return False
        self._is_torn = False
        return True


@cache
def standard_error() -> LogOutput:
    """Return the one output of this process to standard error, which is flushed at the end."""
    sys.stderr.flush()
    output = LogOutput(2)
    atexit.register(output.flush)
    return output
