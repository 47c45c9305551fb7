"""A terminal: keys go to a command, and what it shows is waited for."""

from __future__ import annotations

import os
import pty
import select
import time

from .served import COGWORK

__all__ = ("Terminal",)

TIMEOUT_S = 30.0


class Terminal:
    """A command at a terminal of its own."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        """Run `cogwork` with arguments, and with variables beside those that there are."""
        variables = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "30", **environment}
        self._seen = ""
        self._id, self._screen = pty.fork()  # so that Ctrl-C reaches it
        if self._id == 0:
            os.execvpe(COGWORK[0], [*COGWORK, *arguments], variables)

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._screen, keys.encode())

    def shows(self, text: str) -> None:
        """Read until a text is shown; what follows it is looked at next."""
        until_s = time.monotonic() + TIMEOUT_S
        while text not in self._seen:
            ready, _, _ = select.select([self._screen], [], [], until_s - time.monotonic())
            assert ready, f"{text!r} is not in {self._seen[-500:]!r}"
            self._seen += os.read(self._screen, 4096).decode(errors="replace")
        self._seen = self._seen.partition(text)[2]

    def close(self) -> int:
        """Wait for its end; return its exit code."""
        _, status = os.waitpid(self._id, 0)
        os.close(self._screen)
        return os.waitstatus_to_exitcode(status)
