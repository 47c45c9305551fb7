"""Commands of the command line in processes that start without loading any module.

A process of `forked` is a `subprocess.Popen` in all else; tests of what comes before the first
module of this project is loaded start one anew.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, AnyStr, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ANEW = (sys.executable, "-m", "cogwork.cli.main")
"""How a command starts without the fork server."""

SERVER = Path(__file__).with_name("fork_server.py")

PR_SET_CHILD_SUBREAPER = 36

Place = Any
"""What `subprocess.Popen` takes for a standard stream."""


class _ForkServer:
    """One for this process; it ends with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with far:
            self._process = subprocess.Popen(
                [sys.executable, str(SERVER), str(far.fileno())], pass_fds=(far.fileno(),)
            )
        atexit.register(self.close)

    def start(self, request: Mapping[str, object], descriptors: Sequence[int]) -> int:
        """Start a child of this process and return its id."""
        text = json.dumps(request).encode()
        with self._lock:
            _adopt(is_wanted=True)
            try:
                socket.send_fds(self._connection, [text], descriptors)
                return int(self._connection.recv(100))
            finally:
                _adopt(is_wanted=False)

    def close(self) -> None:
        """End it."""
        self._connection.close()
        self._process.wait()


def _adopt(*, is_wanted: bool) -> None:
    """Have processes whose parents have ended become children of this one, or not any more."""
    assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(is_wanted), 0, 0, 0) == 0


@functools.cache
def _server() -> _ForkServer:
    return _ForkServer()


class _Forked(subprocess.Popen[AnyStr]):
    """Has the fork server start the process where `Popen` would start one by itself.

    What it overrides and sets is private to `subprocess`, and the same from Python 3.11 to 3.13.
    """

    def _execute_child(self, words: Sequence[str], *given: Any) -> None:
        env: Mapping[str, str] | None = given[5]
        streams: tuple[int, ...] = given[9:15]  # of each pipe both ends
        theirs = [at if end == -1 else end for at, end in enumerate((streams[0], *streams[3::2]))]
        request = {
            "words": words,
            "environment": dict(os.environ if env is None else env),
            "folder": str(Path.cwd()),
        }
        own = cast(Any, self)
        try:
            self.pid = _server().start(request, theirs)
            own._child_created = True
        finally:
            own._close_pipe_fds(*streams)


def forked(
    *words: str,
    stdin: Place = None,
    stdout: Place = None,
    stderr: Place = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a command in a process of its own.

    With an environment of its own it starts anew: the linker and the interpreter read theirs before
    anything else (`LD_PRELOAD`, `PYTHONPATH`).

    Args:
        words: What stands after `cogwork`.
        stdin, stdout, stderr, env: As `subprocess.Popen` has them.
    """
    if env is not None and dict(env) != dict(os.environ):
        return subprocess.Popen([*ANEW, *words], stdin=stdin, stdout=stdout, stderr=stderr, env=env)
    return _Forked(words, stdin=stdin, stdout=stdout, stderr=stderr, env=env)


def forked_speaking(*words: str) -> subprocess.Popen[str]:
    """Start a command in a process of its own, with pipes for text to it and from it."""
    pipe = subprocess.PIPE
    return _Forked(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
