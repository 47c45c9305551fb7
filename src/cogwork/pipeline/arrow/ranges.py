"""A receiver of one range, from a reader's process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.client.streams.reader import StreamReader
from cogwork.pipeline.arrow.envelope import ADDRESS_PREFIX, Range, range_filters
from cogwork.plugin.engine.contract import FromOffset

if TYPE_CHECKING:
    from cogwork.amqp.types import Symbol
    from cogwork.client.client import Client
    from cogwork.plugin.engine.contract import FromTime, Origin

__all__ = ("RangeReader",)

CREDIT = 4
"""Batches on their way or waiting: a dozen megabytes at most."""


class RangeReader(StreamReader):
    """Receives the batches of a range; after a loss it goes on with the next one."""

    def __init__(self, client: Client, stream: str, wanted: Range) -> None:
        """Is not attached yet.

        Args:
            client: Connected to a reader.
            stream: The stream's name.
            wanted: The range.
        """
        self._wanted = wanted
        start = FromOffset(wanted.start)
        address = ADDRESS_PREFIX + stream
        super().__init__(client, address, start, credit=CREDIT, selector=None, skips=False)

    def desired_capabilities(self) -> tuple[Symbol, ...]:
        """Desire none."""
        return ()

    def _filters(self, start: Origin | FromOffset | FromTime) -> dict[Symbol, object]:
        return {**super()._filters(start), **range_filters(self._wanted)}
