"""Processes that this one starts: what runs in them, what they say, and how they ended."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

from cogwork.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from asyncio import StreamReader
    from collections.abc import AsyncIterator

__all__ = ("COMMAND", "LEFT", "code_of_child", "in_words", "lines")

COMMAND = (sys.executable, "-m", "cogwork.cli.main")
"""Before what a command line says after `cogwork`."""

LEFT = 100
"""With what a worker ends that has left its mesh for good: it is not to be started again."""

READ_BYTES = 65_536


async def lines(reader: StreamReader) -> AsyncIterator[str]:
    """Yield lines of any length, without their ends."""
    rest = b""
    while chunk := await reader.read(READ_BYTES):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace")
    if rest:
        yield rest.decode(errors="replace")


def code_of_child(code: int) -> ExitCode:
    """Return the exit code of a child that could not start, where it is one of ours."""
    known = {int(each) for each in ExitCode} - {ExitCode.OK}
    return ExitCode(code) if code in known else ExitCode.ERROR


def in_words(code: int) -> str:
    """Return how a process ended."""
    if code >= 0:
        return f"exited with code {code}"
    return f"was killed by {signal.Signals(-code).name}"
