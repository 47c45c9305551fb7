"""A subscriber that writes down in which order it saw a stream.

    async with client.publisher("stream/$audit") as out:
        recorder = DeliveryRecorder(out, "flights", "billing")
        async with client.stream("stream/flights").read("first") as records:
            async for record in records:
                ...
                await recorder.saw(record.offset, record.body)
        await recorder.flush()

Theory of operation. Offsets that go up by one are one record, whatever their number up to a
thousand: `first`, `last`, and a digest of what was seen, which an audit compares with what the
archive has. An offset that does not follow the last one begins another record, so that what came
out of order is seen as it was. `number` counts the records of a session, and `session` tells a
subscriber from the same one after it began again.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("RUN_MAX", "DeliveryRecorder", "digest_of")

RUN_MAX = 1000
"""Offsets that one record is about at most: a run ends where this divides the next offset."""


class Publisher(Protocol):
    """What a recorder writes with: `client.publisher(address)` makes one."""

    async def send(self, body: bytes, **fields: Any) -> object:
        """Send a message, and wait until it is accepted."""
        ...


class DeliveryRecorder:
    """Writes down what one subscriber saw of one stream."""

    def __init__(
        self,
        out: Publisher,
        stream: str,
        subscriber: str,
        *,
        is_filtered: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Initialize it; it has seen nothing.

        Args:
            out: A publisher to `stream/$audit`.
            stream: The name of the stream that is read.
            subscriber: Who reads.
            is_filtered: Whether the subscriber asked for some of the records only; then those in
                between are not missing.
            clock: Tells the time in seconds.
        """
        self._out = out
        self._stream = stream
        self._subscriber = subscriber
        self._is_filtered = is_filtered
        self._clock = clock
        self._session = uuid.uuid4().hex
        self._number = 0
        self._first = self._next = -1
        self._digest: int | None = 0

    async def saw(self, offset: int, body: object) -> None:
        """Take note of a record, once it has been worked on.

        Args:
            offset: Its offset.
            body: Its body; of types other than bytes, text and None only the offset counts.
        """
        if self._first >= 0 and offset != self._next:
            await self.flush()
        if self._first < 0:
            self._first, self._digest = offset, 0
        value = digest_of(offset, body)
        self._digest = None if value is None or self._digest is None else self._digest ^ value
        self._next = offset + 1
        if self._next % RUN_MAX == 0:
            await self.flush()

    async def flush(self) -> None:
        """Write down what was seen and is not written yet, and wait until it is accepted."""
        if self._first < 0:
            return
        said = {
            "event": "delivered",
            "stream": self._stream,
            "subscriber": self._subscriber,
            "session": self._session,
            "number": self._number,
            "first": self._first,
            "last": self._next - 1,
            "digest": None if self._digest is None else f"{self._digest:016x}",
            "filtered": self._is_filtered,
            "time_us": int(self._clock() * 1_000_000),
        }
        body = json.dumps(said, separators=(",", ":")).encode()
        self._number += 1
        self._first = -1
        await self._out.send(body, subject="delivered", content_type="application/json")


def digest_of(offset: int, body: object) -> int | None:
    """Return 60 bits of the MD5 of a record's offset and body; runs are joined by exclusive or.

    MD5, because every engine that reads the archive has it; it is no secret who wrote what.

    Args:
        offset: The record's offset.
        body: Its body: bytes, text or None. None is returned for other types.
    """
    match body:
        case bytes() | bytearray() | memoryview():
            data = bytes(body)
        case str():
            data = body.encode()
        case None:
            data = b""
        case _:
            return None
    text = b"%d:%s" % (offset, data)
    return int(hashlib.md5(text, usedforsecurity=False).hexdigest()[:15], 16)
