"""A peer process as the tests see it: commands go in, events come out."""

from __future__ import annotations

import itertools
import json
import queue
import subprocess
import threading
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

Json: TypeAlias = Any

EVENT_TIMEOUT_S = 40.0
"""Longer than any time-out of a peer: silence means that the peer itself hangs."""


class PeerFailedError(AssertionError):
    """A command ended with `failed`.

    Args:
        peer: Name of the peer.
        report: The `failed` line: `kind`, `condition` and `text`.
    """

    def __init__(self, peer: str, report: Json) -> None:
        super().__init__(f"{peer}: {report['kind']}: {report['text']}")
        self.kind = report["kind"]
        self.condition = report["condition"]


class Peer:
    """One process that runs commands one after the other.

    Args:
        name: For messages of failures.
        argv: The program and its arguments.
        log: File that takes the standard error of the process.
        environment: Its environment variables.
    """

    def __init__(self, name: str, argv: list[str], log: Path, environment: dict[str, str]) -> None:
        self.name = name
        self._log = log
        self._numbers = itertools.count(1)
        self._lines: queue.Queue[str] = queue.Queue()
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def start(self, command: str, **fields: Json) -> Running:
        """Hand a command to the process and returns without waiting for it."""
        assert self._process.stdin is not None
        number = next(self._numbers)
        self._process.stdin.write(json.dumps({"id": number, "command": command, **fields}) + "\n")
        self._process.stdin.flush()
        return Running(self, number)

    def run(self, command: str, **fields: Json) -> Running:
        """Run a command to its end. Raises `PeerFailedError`."""
        return self.start(command, **fields).finish()

    def next_event(self) -> Json:
        """Return the next line of the process."""
        try:
            line = self._lines.get(timeout=EVENT_TIMEOUT_S)
        except queue.Empty:
            raise AssertionError(f"{self.name} said nothing for {EVENT_TIMEOUT_S:g} s") from None
        if not line:
            raise AssertionError(f"{self.name} ended: {self._log.read_text()[-2000:]}")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


class Running:
    """A command under way; what it printed is kept by kind.

    Args:
        peer: The peer that runs it.
        number: The id that marks its lines.
    """

    def __init__(self, peer: Peer, number: int) -> None:
        self._peer = peer
        self._number = number
        self.events: list[Json] = []

    def wait(self, event: str) -> Json:
        """Return the next event of this kind. Raises `PeerFailedError`."""
        while True:
            line = self._peer.next_event()
            if line["id"] != self._number:
                continue  # what is left of a command whose test gave up on it
            if line["event"] == "failed":
                raise PeerFailedError(self._peer.name, line)
            self.events.append(line)
            if line["event"] == event:
                return line

    def finish(self) -> Running:
        """Wait for the end of the command. Raises `PeerFailedError`."""
        self.wait("done")
        return self

    def of(self, event: str) -> list[Json]:
        """Return the events of one kind, in order."""
        return [line for line in self.events if line["event"] == event]

    @property
    def messages(self) -> list[Json]:
        """The messages received."""
        return [line["message"] for line in self.of("message")]

    @property
    def outcomes(self) -> list[Json]:
        """The outcomes that sent messages got, in the order of sending."""
        return [line["outcome"] for line in self.of("outcome")]

    @property
    def result(self) -> Json:
        """The `done` line."""
        return self.of("done")[0]
