"""Starts worker processes, gives them their words and gathers their events."""

from __future__ import annotations

import contextlib
import select
import subprocess
import sys
import time
from typing import Final, Self

import msgspec

from cogwork.bench.jobs import Event, Job, Report, Told
from cogwork.bench.url import PeerError
from cogwork.io.interruption import interrupted_later

__all__ = ("Crew", "Worker")

_READY_S: Final = 60.0
"""How long a worker may take to connect and attach; ten thousand links take their time."""

_PARTING_S: Final = 5.0
"""How long a worker may take to close its connections before it is killed."""


class Worker:
    """A worker process.

    Attributes:
        port: Where it listens; 0: it does not.
        sent: How much it has sent, as far as is known.
        delivered: How much it has received, as far as is known.
        is_ready: Whether it is connected, and waits for its start.
        report: What it did, once it is done.
    """

    def __init__(self, job: Job) -> None:
        """Start the process."""
        self.port = 0
        self.sent = 0
        self.delivered = 0
        self.is_ready = False
        self.report: Report | None = None
        self._role = type(job).__struct_config__.tag
        self._rest = b""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cogwork.bench.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._write(msgspec.json.encode(job))

    def fileno(self) -> int:
        """Return the descriptor on which its events arrive."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def tell(self, word: Told) -> None:
        """Give it a word."""
        self._write(word.encode())

    def read(self) -> None:
        """Take in the events that have arrived.

        Raises:
            PeerError: The worker failed.
        """
        assert self._process.stdout is not None
        octets = self._process.stdout.read(65536)
        if not octets:
            raise PeerError(f"the {self._role} ended without a report")
        *lines, self._rest = (self._rest + octets).split(b"\n")
        for line in lines:
            self._take(msgspec.json.decode(line, type=Event))

    def close(self) -> None:
        """Let it close its connections and end."""
        with contextlib.suppress(OSError):
            self.tell("close")
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_PARTING_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its last event says why it ended
            self._process.stdin.write(line + b"\n")

    def _take(self, event: Event) -> None:
        if event.kind == "failed":
            raise PeerError(f"the {self._role} failed: {event.message}", event.condition)
        self.sent, self.delivered = event.sent, event.delivered
        if event.kind == "ready":
            self.is_ready, self.port = True, event.port
        elif event.kind == "done":
            self.report = event.report


class Crew:
    """Workers that do a job together; leaving the context ends them."""

    def __init__(self) -> None:
        """Start with none."""
        self._workers: list[Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.close()

    def hire(self, job: Job) -> Worker:
        """Start a worker and wait until it is ready."""
        with interrupted_later():
            worker = Worker(job)
            self._workers.append(worker)
        deadline_s = time.monotonic() + _READY_S
        while not worker.is_ready:
            self.listen(0.5)
            if time.monotonic() > deadline_s:
                raise PeerError(f"a worker was not ready within {_READY_S:g} s")
        return worker

    def listen(self, timeout_s: float) -> None:
        """Take in what the workers say, waiting up to `timeout_s` for the first word."""
        heard = [worker for worker in self._workers if worker.report is None]
        for worker in select.select(heard, [], [], timeout_s)[0]:
            worker.read()
