"""What `call_stream` returns: an iteration, and nothing else that would keep it alive.

Whoever breaks off `async for` drops this object, and nobody else has it: its end is then known at
once. What waits for parts (`Parts`) is known to the link of replies as well, so it cannot be this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from cogwork.rpc.parts import Parts

__all__ = ("PartStream",)


class PartStream:
    """The parts of one call's reply: iterate it once; leaving it cancels the work."""

    def __init__(self, parts: Parts) -> None:
        """Asks nothing yet: the first step of an iteration does.

        Args:
            parts: What is iterated.
        """
        self._parts = parts

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:  # noqa: ANN401  # what the method yields
        return await self._parts.take()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._parts.close()

    async def aclose(self) -> None:
        """Ends the iteration, and has the work cancelled."""
        self._parts.close()

    def __del__(self) -> None:
        self._parts.close()
