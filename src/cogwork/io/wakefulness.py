"""Keeps the machine's processors from going to sleep while this process is busy.

Theory of operation. A processor that has nothing to do sleeps, and takes a while to wake up: on a
virtual machine, whose hypervisor has to be asked, some 30 microseconds each time that a message
goes from one process to another. Linux lets programs say how long that may take (PM QoS): as long
as one of them holds `/dev/cpu_dma_latency` open after it has written 0 there, idle processors wait
awake. That holds for all of the machine's and takes the power of work, so it is asked for only
while this process has something to do: while it uses more than a small share of a processor.
"""

from __future__ import annotations

import os
import time

__all__ = ("DEVICE", "Wakefulness")

DEVICE = "/dev/cpu_dma_latency"

BUSY_SHARE = 0.05
"""Of one processor: a container without messages uses less, also for the heartbeats of a thousand
streams."""

QUIET_LOOKS = 10
"""After so many looks in a row without more than that, processors may sleep again."""

_AT_ONCE = (0).to_bytes(4, "little")
"""The longest time that waking up may take, in microseconds (a C int; 0 in any byte order)."""


class Wakefulness:
    """What one process asks of its machine's processors."""

    def __init__(self, path: str = DEVICE) -> None:
        """Let them sleep as yet.

        Args:
            path: The kernel's file.

        Raises:
            OSError: This process may not write it, or there is none.
        """
        self._path = path
        self._fd = -1
        self._quiet_looks = 0
        self._seen_s, self._used_s = time.monotonic(), time.process_time()
        self._hold()
        self.release()

    @property
    def is_held(self) -> bool:
        """Whether they are kept awake now."""
        return self._fd >= 0

    def look(self) -> None:
        """Keep processors awake, or let them sleep, by what this process has used since."""
        now_s, used_s = time.monotonic(), time.process_time()
        self.decide(now_s - self._seen_s, used_s - self._used_s)
        self._seen_s, self._used_s = now_s, used_s

    def decide(self, passed_s: float, used_s: float) -> None:
        """Do so by figures.

        Args:
            passed_s: Since the last look.
            used_s: The processor time that this process took meanwhile.
        """
        is_busy = used_s > BUSY_SHARE * passed_s
        self._quiet_looks = 0 if is_busy else self._quiet_looks + 1
        if is_busy and not self.is_held:
            self._hold()
        elif self._quiet_looks >= QUIET_LOOKS:
            self.release()

    def _hold(self) -> None:
        fd = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, _AT_ONCE)
        except OSError:
            os.close(fd)
            raise
        self._fd = fd

    def release(self) -> None:
        """Let processors sleep again, as far as this process is concerned."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
