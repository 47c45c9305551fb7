"""How a socket ends: shut for writing, read until the peer closes too, then closed.

A socket closed with unread input is reset, and a reset can overtake the close frame that tells the
peer why. So both pumps give the peer a moment to read it.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.io.turn import Turn

__all__ = ("LINGER_S", "LingeringSocket", "close_lingering")

LINGER_S = 1.0
"""How long a peer may take to close its side after this one did."""

_DISCARD_BYTES = 64 * 1024

_lingering: WeakSet[LingeringSocket] = WeakSet()


def close_lingering(loop: asyncio.AbstractEventLoop) -> None:
    """Close what still lingers on a loop that is about to end."""
    for each in list(_lingering):
        if each.loop is loop:
            each.close()


class LingeringSocket:
    """A connected non-blocking socket that is read and written through the event loop."""

    def __init__(self, sock: socket.socket) -> None:
        """Take the socket over.

        Args:
            sock: Connected and non-blocking.
        """
        self._loop = asyncio.get_running_loop()
        self._socket = sock
        self._waits_to_write = False

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop that watches it."""
        return self._loop

    @property
    def is_closed(self) -> bool:
        """Whether the file descriptor has been given back."""
        return self._socket.fileno() < 0

    def read_with(self, reader: Callable[[], object], turn: Turn | None) -> None:
        """Call a reader whenever there is input.

        Args:
            reader: It.
            turn: Where tasks go on that waited for what is read; None where none do.
        """
        fd = self._socket.fileno()
        if turn is None:
            self._loop.add_reader(fd, reader)
        else:
            self._loop.add_reader(fd, turn.read, reader)

    def prefer(self) -> None:
        """Have its input read before that of others, on a loop that can do so."""
        prefer = getattr(self._loop, "prefer", None)
        if prefer is not None and not self.is_closed:
            prefer(self._socket.fileno())

    def want_write(self) -> None:
        """Call `on_writable` once the socket takes more."""
        if not self._waits_to_write and not self.is_closed:
            self._waits_to_write = True
            self._loop.add_writer(self._socket.fileno(), self._on_writable)

    def _on_writable(self) -> None:
        self._loop.remove_writer(self._socket.fileno())
        self._waits_to_write = False
        self.on_writable()

    def on_writable(self) -> None:
        """Go on writing."""

    def end(self, *, linger: bool) -> None:
        """Close: at once, or after the peer has had its moment."""
        if linger:
            self.shut()
        else:
            self.close()

    def shut(self) -> None:
        """Shut the socket for writing and wait for the peer to close."""
        if self.is_closed:
            return
        self.discard_input()
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.close()
            return
        self.close_later()

    def discard_input(self) -> None:
        """Throw away what still arrives; unread it would wake the loop again and again."""
        if not self.is_closed:
            self._loop.add_reader(self._socket.fileno(), self._discard)

    def close_later(self) -> None:
        """Close in `LINGER_S` at the latest."""
        _lingering.add(self)
        self._loop.call_later(LINGER_S, self.close)

    def _discard(self) -> None:
        try:
            if self._socket.recv(_DISCARD_BYTES):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self.close()

    def close(self) -> None:
        """Give the file descriptor back."""
        if self.is_closed:
            return
        self._loop.remove_reader(self._socket.fileno())
        if self._waits_to_write:
            self._loop.remove_writer(self._socket.fileno())
        self._socket.close()
