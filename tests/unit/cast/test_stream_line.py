"""What a cast is told of a stream that the client reads."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cogwork.cast.stream_line import StreamLine
from cogwork.client.errors import LinkDetached, RecordsLost, StreamTruncated
from cogwork.plugin.engine import errors
from cogwork.plugin.engine.contract import Origin


class Ended:
    """A stream, and its reader, whose link was ended."""

    def __init__(self, error: LinkDetached) -> None:
        self._error = error

    def read(self, _start: object) -> Ended:
        return self

    async def __aenter__(self) -> Ended:
        raise self._error

    async def __aexit__(self, *_: object) -> None: ...


@pytest.mark.parametrize(
    ("error", "kind", "name"),
    [
        (RecordsLost("stream/a", "so", 3), errors.RecordsLost, "end"),
        (StreamTruncated("stream/a", "so", 3), errors.Truncated, "first"),
    ],
)
def test_an_end_that_names_an_offset_is_told_as_an_engine_tells_it(
    error: LinkDetached, kind: type[errors.ConsensusError], name: str
) -> None:
    async def story() -> None:
        unused: Any = None
        line = StreamLine(unused, "stream/a")
        stream: Any = Ended(error)
        line._stream = stream
        with pytest.raises(kind) as told:
            await anext(line.read(Origin.FIRST))
        assert getattr(told.value, name) == 3

    asyncio.run(story())
