"""What lives on an event loop in a thread, and is entered and left from outside of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from types import TracebackType

    from cogwork.sync.loop_thread import LoopThread

__all__ = ("OnThread",)


class Entered(Protocol):
    """What is used in `async with` there."""

    async def __aenter__(self) -> object:
        """Open it."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> object:
        """Close it."""


C = TypeVar("C", bound=Entered)


class OnThread(Generic[C]):
    """Used in `with` here, while its counterpart is used in `async with` there."""

    def __init__(self, thread: LoopThread, counterpart: C) -> None:
        """Initialize it; it does not enter it yet.

        Args:
            thread: Where the event loop is.
            counterpart: What does the work there.
        """
        self._thread = thread
        self._counterpart = counterpart

    def __enter__(self) -> Self:
        self._thread.wait(self._counterpart.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.wait(self._counterpart.__aexit__(kind, error, trace))
