"""The engine `raft` outside of a container, where it can only be told about."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from cogwork.replication.engine import CAPABILITIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.plugin.engine.capabilities import Capabilities
    from cogwork.plugin.engine.contract import Engine, EngineContext

__all__ = ("RaftOutside",)


class RaftOutside:
    """What the entry point makes; containers have a host of their own, which can do more.

    Attributes:
        stream_options: What the declaration of a stream may say, beside retention.
    """

    stream_options: ClassVar[tuple[str, ...]] = ("replicas",)

    def __init__(self, context: EngineContext) -> None:
        """Initialize it with nothing.

        Args:
            context: Without options.

        Raises:
            ValueError: There are options.
        """
        for name in context.options:
            raise ValueError(f"the engine raft has no option {name!r}")

    @property
    def capabilities(self) -> Capabilities:
        """What streams on replicas declare."""
        return CAPABILITIES

    async def open(self, stream: str, options: Mapping[str, object]) -> Engine:
        """Is not to be had.

        Raises:
            ValueError: Always.
        """
        del options
        raise ValueError(
            f"the engine raft works in containers: `cogwork stream create URL {stream:.80} "
            "--engine raft` makes a stream there"
        )

    async def delete(self, stream: str) -> None:
        """Have nothing to delete."""

    async def close(self) -> None:
        """Have nothing to close."""
