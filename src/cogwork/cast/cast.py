"""What nearcast and broadcast have in common."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

from cogwork.amqp.errors import CogworkError
from cogwork.plugin.engine.contract import Origin

if TYPE_CHECKING:
    from types import TracebackType

    from cogwork.cast.cog import Cog
    from cogwork.plugin.engine.contract import Snapshot, Start

__all__ = ("Cast", "CogFailed", "octets_in")

log = logging.getLogger("cogwork.cast")


class CogFailed(CogworkError):
    """A cog raised an exception, or cannot be given what comes next; it is out of the cast.

    Attributes:
        cog: Which one; the cause is its exception.
    """

    def __init__(self, cog: Cog, error: BaseException) -> None:
        super().__init__(f"{type(cog).__name__} failed and is out of the cast: {error!r}")
        self.cog = cog
        self.__cause__ = error


class Cast(ABC):
    """Cogs, and the order of their messages; used by `async with`.

    A cog that raises is taken out, for nobody knows its state; the others go on. `sync` and the end
    of the `async with` say so.
    """

    def __init__(self) -> None:
        self._failures: list[CogFailed] = []

    @property
    @abstractmethod
    def producer(self) -> bytes:
        """Whom the messages that this cast sends come from."""

    @abstractmethod
    def add(self, cog: Cog, start: Start = Origin.FIRST) -> None:
        """Add a cog.

        Args:
            cog: Which is in no cast yet.
            start: Where it begins: with all there is, if nothing else is said, so that a cog that
                is added late comes to the state it would have had.

        Raises:
            ValueError: It is in a cast already.
        """

    @abstractmethod
    def remove(self, cog: Cog) -> None:
        """Take a cog out; it is given nothing more."""

    @abstractmethod
    def __contains__(self, cog: object) -> bool:
        """Whether a cog is in this cast."""

    @abstractmethod
    def send(self, *bodies: bytes) -> None:
        """Send messages, in this order; return before they have their places.

        All that is sent through one cast keeps its order.

        Raises:
            Busy: Too much is under way; `await cast.sync()` waits until it is not.
            InvalidAppend: They are too large.
            TypeError: One is no octets.
        """

    @abstractmethod
    async def sync(self) -> None:
        """Wait until what was sent here, and what cogs sent in answer, has reached all cogs here.

        Raises:
            CogFailed: A cog has failed since this was last asked.
        """

    @abstractmethod
    async def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a state that cogs may begin with instead of all that led to it."""

    @abstractmethod
    async def close(self) -> None:
        """End it; what is under way may still get its place."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                await self.sync()
        finally:
            await self.close()

    def _take_in(self, cog: Cog) -> None:
        """Make a cog one of this cast's.

        Raises:
            ValueError: It is in a cast already.
        """
        earlier = getattr(cog, "cast", None)
        if earlier is not None and cog in earlier:
            where = "this cast" if earlier is self else "another cast"
            raise ValueError(f"this {type(cog).__name__} is in {where} already: a cog is in one")
        cog.cast = self

    def _fail(self, cog: Cog, error: BaseException) -> None:
        """Take a cog out that has failed."""
        failed = CogFailed(cog, error)
        log.error("%s", failed, exc_info=error)
        self._failures.append(failed)
        self.remove(cog)

    def _raise_failure(self) -> None:
        """Raise the oldest failure that nobody was told of."""
        if self._failures:
            raise self._failures.pop(0)


def octets_in(bodies: tuple[bytes, ...]) -> int:
    """Count the octets of messages.

    Raises:
        TypeError: One is no octets.
    """
    try:
        # Faster than to ask each one for its length, and refuses what only has a length.
        return len(b"".join(bodies))
    except TypeError as error:
        raise TypeError(f"a cast sends octets; text is to be encoded: {error}") from None
