"""What an adapter makes of its server: one log, and what may go wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cogwork.plugin.engine.errors import StreamLost, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.plugin.engine.capabilities import Capabilities
    from cogwork.plugin.engine.contract import Members

__all__ = (
    "Gone",
    "Moved",
    "Reader",
    "ServerDown",
    "ServerLog",
    "ServerRefused",
    "TooLarge",
    "refusal",
)


class ServerDown(Exception):
    """The server cannot be reached, or does not answer; it may come back.

    Attributes:
        may_have_happened: Whether the request may have taken effect all the same.
    """

    def __init__(self, reason: str, may_have_happened: bool = True) -> None:
        super().__init__(reason)
        self.may_have_happened = may_have_happened


class ServerRefused(Exception):
    """The server says no, and will say so again: nothing happened."""


class Gone(ServerRefused):
    """The log is not there any more."""

    def __init__(self) -> None:
        super().__init__(
            "the stream is not on the server: it was deleted, or lost; delete it here and create "
            "it, or start the container anew: it then begins at offset 0"
        )


def refusal(error: ServerRefused) -> Unavailable:
    """Return what a stream's users are told of a refusal."""
    return (StreamLost if isinstance(error, Gone) else Unavailable)(str(error))


class TooLarge(ServerRefused):
    """The server takes no entry as large as that."""


class Moved(Exception):
    """The log's last entry is another one than expected: what was to follow it did not count.

    Attributes:
        last: A position up to which the log must be read to see why.
    """

    def __init__(self, last: int) -> None:
        super().__init__(f"the log goes up to {last}")
        self.last = last


class Reader(Protocol):
    """Reads a log from a position on, and follows it."""

    async def next(self, wait_s: float) -> Sequence[tuple[int, bytes]]:
        """Return what follows, in order; nothing where nothing came in time.

        Raises:
            ServerDown: Open another reader later.
        """

    async def close(self) -> None:
        """End it."""


class ServerLog(Protocol):
    """One log on a server. Calls may be under way together; none takes longer than some seconds.

    Attributes:
        capabilities: What the server gives, as it is set up.
        entry_bytes_max: The largest entry.
    """

    capabilities: Capabilities
    entry_bytes_max: int

    async def append(self, expected: int, entry: bytes) -> int:
        """Append an entry behind the one at position `expected`, and return its position.

        Raises:
            Gone: The log is not there any more.
            Moved: Another one is the last.
            ServerDown: It may have been appended, or not.
            ServerRefused: The server does not take it.
        """

    async def fetch(self, position: int) -> tuple[int, bytes] | None:
        """Return the first entry at a position or above.

        Raises:
            ServerDown: The server does not answer.
        """

    async def ends(self) -> tuple[int, int]:
        """Return the positions of the first and the last entry; the last is 0 before there is any.

        Raises:
            ServerDown: The server does not answer.
        """

    async def reader(self, position: int) -> Reader:
        """Return a reader that begins at a position.

        Raises:
            ServerDown: The server does not answer.
        """

    async def trim(self, before: int) -> None:
        """Give up the entries below a position.

        Raises:
            ServerDown: The server does not answer.
        """

    async def members(self) -> Members:
        """Return which servers hold the log.

        Raises:
            ServerDown: The server does not answer.
        """

    async def close(self) -> None:
        """Let go of it."""
