"""Starts ledger workers by forking, so that one that was killed is replaced within milliseconds.

Arguments: the URL and the queue. For each line on standard input, `KIND PATH`, it forks a worker
of that kind (a key of `WORKERS`) with that file as its ledger, and prints the worker's
process id. SIGTERM ends a worker in good order; its last entry is `ended` then. Where the foreman
ends, its workers do too: those of a test that was killed do not go on for ever.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import ledger_cogwork
import ledger_handler
import ledger_proton
from ledger import Ledger
from proton import ConnectionException

import cogwork

if TYPE_CHECKING:
    from collections.abc import Callable

WORKERS: dict[str, Callable[[str, str, Ledger], None]] = {
    "cogwork": ledger_cogwork.work,
    "proton": ledger_proton.work,
    "handler": ledger_handler.work,
    "closer": ledger_proton.work_in_turns,
}


PR_SET_PDEATHSIG = 1


def main(url: str, queue: str) -> None:
    """Serve requests until standard input ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the dead
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # until a worker can take it
    for line in sys.stdin:
        library, path = line.split()
        worker = os.fork()
        if worker == 0:
            _work(library, url, queue, path)
        sys.stdout.write(f"{worker}\n")
        sys.stdout.flush()


def _work(library: str, url: str, queue: str, path: str) -> None:
    """Live a worker's life; do not return."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ledger = Ledger(Path(path))
    try:
        WORKERS[library](url, queue, ledger)
        ledger.end()
    except (cogwork.ConnectError, ConnectionException) as error:  # its container is not there now
        sys.stderr.write(f"{library} worker {os.getpid()}: {error}\n")
        os._exit(1)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
