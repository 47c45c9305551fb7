"""Ctrl-C and SIGTERM, where they have to wait a moment."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("held_back",)

ENDING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def held_back() -> Iterator[None]:
    """Have what Python does at Ctrl-C and SIGTERM wait until the end of the `with`.

    It is for the moment in which a process is started, or stopped, of which nobody knows otherwise.
    Python handles signals in the main thread only: in another nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in ENDING}
    try:
        for number, handler in before.items():
            if callable(handler):
                signal.signal(number, lambda number, _frame: came.append(number))
        yield
    finally:
        for number, handler in before.items():
            if callable(handler):
                signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
