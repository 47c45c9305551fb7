"""A container that tests kill, and start again, and for how long it is away."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

from forked import forked

from cogwork.bench.servers.process import free_ports

if TYPE_CHECKING:
    from pathlib import Path

AWAY_S = float(os.environ.get("COGWORK_AWAY_S", "2"))


class Kept:
    """A container with a directory, that can be killed and comes back at its port."""

    def __init__(self, folder: Path) -> None:
        (self.port,) = free_ports(1)
        self.url = f"amqp://127.0.0.1:{self.port}"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = ["serve", "--json", "--id", "kept"]
        words += ["--listen", f"127.0.0.1:{self.port}", "--data", str(self._folder)]
        self._process = forked(*words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self._process.stdout is not None
        assert self._process.stdout.readline()

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None
