"""A worker process: `python -m cogwork.bench.worker`, the job on its standard input.

It prints events, a JSON object a line: ready, then progress, then done or failed. It reads a word
a line: `go` when all workers are ready, `finish` to end, `close` (or the end of the input) to
close the connections, which it holds until then: a connection closed early would take what is
still on the way with it.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from typing import Final

import msgspec

from cogwork.bench.jobs import ConsumerJob, Event, Job, ReplierJob
from cogwork.bench.listener import listen
from cogwork.bench.roles import Role, role_for
from cogwork.bench.url import PeerError

_SLICE_S: Final = 0.05
"""How long the role works before it looks for words and tells its progress."""


def main() -> None:
    """Do the job that the first line of the input describes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it ends us in order
    try:
        job: Job = msgspec.json.decode(sys.stdin.buffer.readline(), type=Job)
        _work(job)
    except (PeerError, msgspec.MsgspecError, ValueError, OSError) as error:
        text = str(error) or type(error).__name__
        _tell_last(Event("failed", message=text, condition=getattr(error, "condition", "")))
        sys.exit(1)


def _work(job: Job) -> None:
    server = listen() if isinstance(job, ConsumerJob | ReplierJob) and not job.url else None
    role = role_for(job, server)
    role.prepare()
    _tell(Event("ready", port=server.getsockname()[1] if server else 0))
    words = _Words()
    if words.wait() == "go":
        role.start()
        _drive(role, words)
    while words.wait() not in {"close", ""}:
        pass
    role.close()


def _drive(role: Role, words: _Words) -> None:
    started_s = time.process_time()
    while not role.run(_SLICE_S):
        sent, delivered = role.progress()
        _tell(Event("progress", sent=sent, delivered=delivered))
        word = words.poll()
        if word == "finish":
            role.finish()
        elif word is not None:
            return
    report = role.report()
    report.cpu_s = time.process_time() - started_s
    _tell(Event("done", sent=report.sent, delivered=report.delivered, report=report))


def _tell(event: Event) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(event) + b"\n")
    sys.stdout.buffer.flush()


def _tell_last(event: Event) -> None:
    try:
        _tell(event)
    except BrokenPipeError:  # the parent was killed: not even a flush at the end has a reader
        os._exit(1)


class _Words:
    """The words on the standard input."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()
        self._rest = b""

    def poll(self) -> str | None:
        """Return the next word if one has come, "" at the end of the input."""
        if b"\n" not in self._rest and select.select([self._fd], [], [], 0)[0]:
            octets = os.read(self._fd, 4096)
            if not octets:
                return ""
            self._rest += octets
        line, newline, rest = self._rest.partition(b"\n")
        if not newline:
            return None
        self._rest = rest
        return line.decode()

    def wait(self) -> str:
        """Wait for the next word."""
        while (word := self.poll()) is None:
            select.select([self._fd], [], [])
        return word


if __name__ == "__main__":
    main()
