"""Streams without asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from cogwork.client.fields import batch_of
from cogwork.client.streams.stream import READ_CREDIT
from cogwork.sync.ends import Receiver
from cogwork.sync.loop_thread import LoopThread, on_loop

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.client.fields import MessageFields
    from cogwork.client.streams.start import StreamStart
    from cogwork.client.streams.stream import OnTruncated
    from cogwork.client.streams.stream import Stream as AsyncStream
    from cogwork.dataplane.client.stream_records import Record
    from cogwork.plugin.engine.contract import Snapshot

__all__ = ("Stream",)


class Stream:
    """One stream: appends to it, and reads it; made by `Client.stream`."""

    def __init__(self, thread: LoopThread, stream: AsyncStream) -> None:
        self._thread = thread
        self._stream = stream

    def append(self, bodies: Iterable[object]) -> None:
        """Append messages, in order, each once, and wait until all are kept.

        Args:
            bodies: Messages, or bodies.
        """
        self._thread.wait(self._stream.append(list(batch_of(bodies))))

    def publish(self, body: object, **fields: Unpack[MessageFields]) -> None:
        """Append one message and wait until it is kept.

        Args:
            body: A `Message`, or the body of one.
            **fields: The message's, as in `Message`.

        Raises:
            Rejected: The stream does not take it.
            Released: It did not take it in a minute.
        """
        self._thread.wait(self._stream.publish(body, **fields))

    def read(
        self,
        start: StreamStart = "next",
        *,
        credit: int = READ_CREDIT,
        selector: str | None = None,
        on_truncated: OnTruncated = "raise",
    ) -> Receiver[Record]:
        """Read from a place on, without an end; use it in `with`, then in `for`.

        Args:
            start: `first`, `last`, `next`, an offset, a time (`today`, `06:00`, a datetime), a
                snapshot, to go on with what is not in it, or the class `Snapshot`: then the first
                thing is the application's newest snapshot, if there is one.
            credit: Records that may be on their way or waiting.
            selector: A condition in SQL over properties; None for all records.
            on_truncated: What to do where what is next has been given up: `raise`
                `StreamTruncated`, or go on with the `first` record that is left.

        Raises:
            ValueError: `start` is no place in a stream.
        """
        work = on_loop(
            self._stream.read, start, credit=credit, selector=selector, on_truncated=on_truncated
        )
        return Receiver(self._thread, self._thread.wait(work))

    def save_snapshot(self, data: bytes, offset: int) -> None:
        """Keep an application's state in the stream, instead of an earlier one.

        Args:
            data: The state, as the application writes it.
            offset: Of the first record that is not in it.

        Raises:
            Rejected: It is too large, or speaks of records that the stream does not have.
        """
        self._thread.wait(self._stream.save_snapshot(data, offset))

    def load_snapshot(self) -> Snapshot | None:
        """Return the newest snapshot; None where there is none."""
        return self._thread.wait(self._stream.load_snapshot())

    def close(self) -> None:
        """Let the link go that messages are appended on."""
        self._thread.wait(self._stream.close())
