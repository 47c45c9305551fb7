"""A node in one thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cogwork.cast.canonical import CanonicalBatch, CanonicalMessage
    from cogwork.cast.cast import Cast
    from cogwork.plugin.engine.contract import Snapshot

__all__ = ("Cog",)


class Cog:
    """Sends aspiring messages and is pushed canonical ones. Made to be derived from.

    A cog is given every message of its cast, its own too, in one order, the same for all cogs. What
    it does with them should depend on nothing else; then a cog that starts late, or in another
    process, comes to the same state. Its methods are called one at a time and must not block.

    Attributes:
        cast: The cast that it was added to.
    """

    cast: Cast

    def send(self, *bodies: bytes) -> None:
        """Send messages, in this order; return before they have their places.

        Raises:
            Busy: Too much is under way.
            InvalidAppend: They are too large.
            TypeError: One is no octets.
        """
        self.cast.send(*bodies)

    def on_message(self, message: CanonicalMessage) -> None:
        """Take a message."""

    def on_batch(self, batch: CanonicalBatch) -> None:
        """Take messages that got their places together; instead of `on_message`, for speed."""
        for message in batch:
            self.on_message(message)

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """Take up the state it begins with, where it was added with `Origin.SNAPSHOT`."""

    def on_caught_up(self) -> None:
        """Is told once that it has been given all that was there when it was added."""
