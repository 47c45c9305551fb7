"""A connection's two ends in one process, joined without a socket.

Theory of operation. What either end's wire has to send is fed to the other one. A batch of the
container's ends with its output written, in the middle of other work, so bytes are moved in a turn
of their own then; `run` moves them at once for whoever is at the end of a batch itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.dataplane.connection import Connection

__all__ = ("MemoryPipe",)

MOVED_BYTES_MAX = 256 * 1024
"""What one end is fed at once: as much as a socket is read at once."""

ROUNDS_MAX = 16
"""How often the ends are fed in one turn; what is left has to wait for other connections."""


class MemoryPipe:
    """Carries bytes both ways, and is the transport of both ends."""

    def __init__(
        self,
        inner: Connection,
        outer: Connection,
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        """Join two connections.

        Args:
            inner: The container's end.
            outer: The other one.
            call_soon: The event loop's method.
        """
        self._inner = inner
        self._outer = outer
        self._call_soon = call_soon
        self._is_running = False
        self._is_due = False
        self._is_finished = False
        for end in (inner, outer):
            end.transport = self
            end.wire.on_output = self.run_soon

    def run_soon(self) -> None:
        """Move bytes in the next turn."""
        if not self._is_due and not self._is_running:
            self._is_due = True
            self._call_soon(self._run_due)

    def _run_due(self) -> None:
        self._is_due = False
        self.run()

    def run(self) -> None:
        """Move bytes both ways until there are none, or others have to get their turn."""
        if self._is_running:
            return
        self._is_running = True
        inner, outer = self._inner.wire, self._outer.wire
        try:
            outer.core.flush()
            for _ in range(ROUNDS_MAX):
                if outer.sendable_bytes:
                    inner.feed(outer.take_output(MOVED_BYTES_MAX))
                elif inner.sendable_bytes:
                    outer.feed(inner.take_output(MOVED_BYTES_MAX))
                else:
                    break
        finally:
            self._is_running = False
        if outer.sendable_bytes or inner.sendable_bytes:
            self.run_soon()

    def prefer(self) -> None:
        """Make no difference here."""

    def read_rest(self) -> None:
        """Move what there is."""
        self.run()

    def finish(self, *, linger: bool) -> None:  # noqa: ARG002  # the contract's
        """Move what is left; then the other end has lost its peer."""
        if self._is_finished:
            return
        self._is_finished = True
        self._call_soon(self._part)

    def _part(self) -> None:
        self.run()
        for end in (self._inner, self._outer):
            end.wire.let_go()
            if not end.is_over:
                end.on_lost(0)
