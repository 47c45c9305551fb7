"""Runs commands of the command line in processes forked from one that has loaded their modules.

    python fork_server.py DESCRIPTOR

Loading them is nine tenths of what a container's start costs, and the suite starts more than a
thousand. Each message on the socket DESCRIPTOR is a request, a JSON object, with the descriptors
of standard input, output and error; the answer is the id of the process. That one's parent is the
process at the other end, if that is a subreaper now: it is forked twice. The server ends when the
other end is closed.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import socket
import sys
from typing import Any

from cogwork.cli.main import main as run

MODULES = (
    "cogwork.cli.commands.serve",
    "cogwork.cli.commands.receive",
    "cogwork.cli.commands.send",
)
EXTRAS = ("cogwork.gateways.zeromq",)
"""Where they are installed."""

REQUEST_BYTES_MAX = 1 << 18
STANDARD = 3
"""Standard input, output and error."""


def serve(connection: socket.socket) -> list[str] | None:
    """Fork a process for each request until the other end is closed.

    Returns:
        In a process that was forked its command line, in the server None.
    """
    while True:
        text, descriptors, _, _ = socket.recv_fds(connection, REQUEST_BYTES_MAX, STANDARD)
        if not text:
            return None
        request = json.loads(text)
        if (process := _fork_twice()) == 0:
            return _begin(request, descriptors)
        connection.send(str(process).encode())
        for descriptor in descriptors:
            os.close(descriptor)


def _fork_twice() -> int:
    """Fork; return 0 in the new process, and in this one its id once it has lost its parent."""
    near, far = os.pipe()
    if (between := os.fork()) == 0:
        if (process := os.fork()) == 0:
            os.close(near)
            os.close(far)
            return 0
        os.write(far, str(process).encode())
        os._exit(0)
    os.close(far)
    with os.fdopen(near) as told:
        os.waitpid(between, 0)
        return int(told.read())


def _begin(request: dict[str, Any], descriptors: list[int]) -> list[str]:
    """Make a process what it would be if it had been started by its command line."""
    for at, descriptor in enumerate(descriptors):
        os.dup2(descriptor, at)
    os.closerange(STANDARD, max(descriptors) + 1)
    # Whether one can seek in a stream is found out when it is made.
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    words: list[str] = request["words"]
    sys.argv = ["cogwork", *words]
    return words


if __name__ == "__main__":
    for each in MODULES:
        importlib.import_module(each)
    for each in EXTRAS:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(each)
    gc.collect()
    gc.freeze()
    words = serve(socket.socket(fileno=int(sys.argv[1])))
    if words is not None:
        run(words)
