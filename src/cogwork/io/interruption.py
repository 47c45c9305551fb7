"""SIGTERM as Ctrl-C, for a command that tells how far it has come, or ends what it has started."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ("interrupted_by_sigterm", "interrupted_later")


@contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """Have SIGTERM do what Ctrl-C does, for the length of a `with`."""
    before = signal.getsignal(signal.SIGTERM)
    is_ours = threading.current_thread() is threading.main_thread()  # others may set no handler
    if not is_ours or before is signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def interrupted_later() -> Iterator[None]:
    """Have signals that would interrupt wait until the end of a `with`.

    A process that is started there is known, by then, to whoever ends it.
    """
    came: list[int] = []
    handlers = {}
    if threading.current_thread() is threading.main_thread():  # others are never interrupted
        handlers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    # What is ignored, or ends this process without a word, goes on to do so.
    handlers = {each: handler for each, handler in handlers.items() if callable(handler)}
    for each in handlers:
        signal.signal(each, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)
        for number in came:
            signal.raise_signal(number)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Do what is done at Ctrl-C just now: the event loop has a way of its own.

    Raises:
        KeyboardInterrupt: Nothing is, as in a script's background.
    """
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(number, frame)
    else:
        raise KeyboardInterrupt
