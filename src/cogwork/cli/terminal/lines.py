"""Lines of a file, or of whoever types or pipes them, as they come."""

from __future__ import annotations

import asyncio
import codecs
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO

__all__ = ("Lines",)

READ_BYTES = 1 << 16


class Lines:
    """The lines of a file, read when they are asked for; the event loop goes on meanwhile.

    A line ends with LF or CRLF, and with nothing else: a lone CR, or a separator of Unicode, may be
    part of a message.
    """

    def __init__(self, file: BinaryIO) -> None:
        """Read nothing yet.

        Args:
            file: Open, with nothing read from it. Octets that are no UTF-8 become lone surrogates.
        """
        self._fd = file.fileno()
        # Programs of Windows begin a text with a byte order mark, which is no part of it.
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._begun: list[str] = []
        self._whole: list[str] = []
        self._is_over = False

    async def take(self, limit: int) -> list[str]:
        """Return lines that are there, without their ends; wait where none is.

        Args:
            limit: How many at most.

        Returns:
            The lines; none at the end of the file.

        Raises:
            OSError: The file cannot be read.
        """
        while not self._whole and not self._is_over:
            await self._ready()
            self._add(os.read(self._fd, READ_BYTES))
        taken = self._whole[:limit]
        del self._whole[:limit]
        return taken

    async def _ready(self) -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        try:
            loop.add_reader(self._fd, ready.set)
        except PermissionError:  # a file on a disk is always ready: epoll_ctl(2), EPERM
            await asyncio.sleep(0)
            return
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._fd)

    def _add(self, data: bytes) -> None:
        self._is_over = not data
        end, *others = self._decoder.decode(data, final=not data).split("\n")
        self._begun.append(end)
        if others:
            ended = ["".join(self._begun), *others[:-1]]
            self._whole += [line.removesuffix("\r") for line in ended]
            self._begun = others[-1:]
        if self._is_over and (last := "".join(self._begun)):
            self._whole.append(last)
