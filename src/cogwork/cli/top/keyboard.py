"""Keys of a terminal, one by one, without waiting for Return."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import tty
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("keys_of", "typed")

NAMES = {
    "\t": "tab",
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[C": "right",
    "\x1b[D": "left",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1bOC": "right",
    "\x1bOD": "left",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
}
"""What terminals send for keys without a character (ECMA-48 §5.4, and DEC's application mode)."""

READ_BYTES = 256


@contextmanager
def typed() -> Iterator[asyncio.Queue[str]]:
    """Have the keys that are typed put into a queue, which stays empty where stdin is no terminal.

    The terminal is as it was before when the `with` block ends.
    """
    found: asyncio.Queue[str] = asyncio.Queue()
    if not sys.stdin.isatty():
        yield found
        return
    descriptor = sys.stdin.fileno()
    loop = asyncio.get_running_loop()

    def read() -> None:
        octets = os.read(descriptor, READ_BYTES)
        if not octets:
            loop.remove_reader(descriptor)
        for key in keys_of(octets.decode(errors="replace")):
            found.put_nowait(key)

    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    loop.add_reader(descriptor, read)
    try:
        yield found
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def keys_of(text: str) -> list[str]:
    """Part what a terminal has sent into keys: characters, and names of others.

    Args:
        text: Whole sequences; what is none is taken character by character.
    """
    found: list[str] = []
    at = 0
    while at < len(text):
        name = next((each for each in NAMES if text.startswith(each, at)), text[at])
        found.append(NAMES.get(name, name))
        at += len(name)
    return found
