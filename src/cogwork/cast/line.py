"""What a broadcast needs of whatever makes its order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from cogwork.cast.canonical import CanonicalBatch
    from cogwork.plugin.engine.contract import CaughtUp, Snapshot, Start

__all__ = ("Line",)


class Line(Protocol):
    """A way to a stream and back."""

    @property
    def producer(self) -> bytes:
        """Who the stream says has sent what went this way."""

    @property
    def batch_bytes_max(self) -> int:
        """How much can be appended at once."""

    async def open(self) -> None:
        """Connect."""

    async def close(self) -> None:
        """Let go of what `open` has made."""

    async def append(self, bodies: Sequence[bytes]) -> int | None:
        """Append messages, each once, however often that has to be tried.

        Returns:
            The offset after the last one, where it is known.

        Raises:
            CogworkError: It cannot be done, or it cannot be known whether it was.
        """

    async def end(self) -> int:
        """Return the offset after the newest message."""

    def read(self, start: Start) -> AsyncGenerator[CanonicalBatch | CaughtUp | Snapshot, None]:
        """Yield messages from a place on, without an end.

        Raises:
            Unavailable: Not now; reading may be begun again.
            CogworkError: It cannot be done.
        """

    async def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot in the stream."""
