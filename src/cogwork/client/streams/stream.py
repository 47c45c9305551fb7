"""Streams: messages in one order, kept, for any number of readers."""

from __future__ import annotations

import asyncio
import warnings
from functools import partial
from typing import TYPE_CHECKING, Literal, Self, Unpack, get_args

from cogwork.amqp.types import ULong
from cogwork.client.checks import checked_address
from cogwork.client.errors import ClientError
from cogwork.client.fields import MessageFields, batch_of, message_of
from cogwork.client.interception.receiving import InterceptedStreamReader
from cogwork.client.interception.sending import InterceptedStreamPublisher
from cogwork.client.links.receiver import BATCH_MAX
from cogwork.client.streams.publisher import StreamPublisher
from cogwork.client.streams.reader import StreamReader
from cogwork.client.streams.start import StreamStart, start_of
from cogwork.dataplane.message.messages import Message
from cogwork.plugin.engine.contract import Origin, Snapshot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from cogwork.client.context import ClientContext
    from cogwork.dataplane.client.stream_records import Records

__all__ = ("OnTruncated", "Stream")

PREFIX = "stream/"

READ_CREDIT = 10_000
"""Records on their way or waiting: a few megabytes of small ones."""

OnTruncated = Literal["raise", "first"]


class Stream:
    """One stream, as a client sees it; made by `Client.stream`.

    What it opens to append with stays open until `close`, or until the client is closed; it may be
    used in `async with`, too.

    Attributes:
        address: Its address.
    """

    def __init__(self, client: ClientContext, name: str) -> None:
        """Attach nothing yet.

        Args:
            client: The connection.
            name: The stream's name, `orders`, or its address, `stream/orders`.

        Raises:
            ValueError: The name is no text.
        """
        self.address = name if "/" in checked_address(name) else PREFIX + name
        self._client = client
        self._publisher: asyncio.Task[StreamPublisher] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Wait for what is being appended, and let the link go."""
        task, self._publisher = self._publisher, None
        if task is None or (task.done() and task.exception() is not None):
            return  # who wanted to append was told why it could not be opened
        publisher = await task
        try:
            await publisher.flush()
        finally:
            await publisher.shut()

    # -- appending

    def publisher(
        self,
        *,
        producer: bytes | None = None,
        send_timeout_s: float | None = None,
        patience_s: float | None = None,
    ) -> StreamPublisher:
        """Open a link of its own to append with; use it in `async with`.

        Args:
            producer: An id to append under, instead of a new one. Who comes with the same one and
                the same messages, in the same order from the first one on, appends what is missing
                of them. It is never given up for another: where the stream takes no more under it,
                everything that has no outcome fails.
            send_timeout_s: How long a message is tried that is not taken; None for a minute.
            patience_s: The old name of `send_timeout_s`; deprecated.

        Raises:
            ValueError: The id is too long, or empty.
        """
        if patience_s is not None:
            warnings.warn(
                "patience_s was renamed: use send_timeout_s", DeprecationWarning, stacklevel=2
            )
            send_timeout_s = patience_s
        interceptors = self._client.interceptors
        if interceptors is None:
            return StreamPublisher(self._client, self.address, producer, send_timeout_s)
        return InterceptedStreamPublisher(
            interceptors, self._client, self.address, producer, send_timeout_s
        )

    async def append(self, bodies: Iterable[object]) -> None:
        """Append messages, in order, each once, and wait until all are kept.

        Args:
            bodies: Messages, or bodies.

        Raises:
            LinkRefused: It is no stream, or none that the user may send to.
            Rejected: The stream does not take one of them.
            Released: It did not take them in a minute.
            InDoubt: It is not known whether one of them was appended, and never will be.
            TypeError: `bodies` is a single one: `append([body])`, or `publish(body)`.
        """
        batch_of(bodies)
        outcomes = await (await self._opened()).post_batch(bodies)
        for outcome in outcomes:
            if (error := outcome.error()) is not None:
                raise error

    async def publish(self, body: object, **fields: Unpack[MessageFields]) -> None:
        """Append one message and wait until it is kept.

        Args:
            body: A `Message`, or the body of one.
            **fields: The message's, as in `Message`.

        Raises:
            Rejected: The stream does not take it.
            Released: It did not take it in a minute.
        """
        message = message_of(body, self.publish, **fields) if fields else body
        await (await self._opened()).post(message)

    async def _opened(self) -> StreamPublisher:
        """Open the link that `append` and `publish` share, once, and again if it was ended."""
        task = self._publisher
        if task is None or (task.done() and (task.exception() or task.result().failure)):
            task = self._publisher = asyncio.create_task(self._open())
        return await asyncio.shield(task)

    async def _open(self) -> StreamPublisher:
        publisher = self.publisher()
        await publisher.open()
        return publisher

    # -- reading

    def read(
        self,
        start: StreamStart = "next",
        *,
        credit: int = READ_CREDIT,
        selector: str | None = None,
        on_truncated: OnTruncated = "raise",
    ) -> StreamReader:
        """Read from a place on, without an end; use it in `async for`, or in `async with` first.

        Args:
            start: `first`, `last`, `next`, an offset, a time (`today`, `06:00`, a datetime), a
                snapshot, to go on with what is not in it, or the class `Snapshot`: then the first
                thing is the application's newest snapshot, if there is one.
            credit: Records that may be on their way or waiting.
            selector: A condition in SQL over properties; None for all records.
            on_truncated: What to do where what is next has been given up: `raise`
                `StreamTruncated`, or go on with the `first` record that is left.

        Raises:
            ValueError: `start` is no place in a stream, or another argument is none.
        """
        if on_truncated not in get_args(OnTruncated):
            raise ValueError(f"on_truncated is 'raise' or 'first', not {on_truncated!r:.80}")
        interceptors = self._client.interceptors
        make = (
            StreamReader if interceptors is None else partial(InterceptedStreamReader, interceptors)
        )
        return make(
            self._client,
            self.address,
            start_of(start),
            credit=credit,
            selector=selector,
            skips=on_truncated == "first",
        )

    def read_batches(
        self,
        start: StreamStart = "next",
        *,
        count_max: int = BATCH_MAX,
        credit: int = READ_CREDIT,
        selector: str | None = None,
        on_truncated: OnTruncated = "raise",
    ) -> AsyncIterator[Records]:
        """Yield records batch by batch: the fast way.

        Args:
            start: As for `read`, and so are the rest.
            count_max: How many records a batch has at most.
            credit: Records that may be on their way or waiting.
            selector: A condition in SQL over properties; None for all records.
            on_truncated: `raise` `StreamTruncated`, or go on with the `first` record that is left.

        Raises:
            ValueError: `start` is no place in a stream, or another argument is none.
        """
        reader = self.read(start, credit=credit, selector=selector, on_truncated=on_truncated)
        return reader.batches(count_max)

    # -- snapshots

    async def save_snapshot(self, data: bytes, offset: int) -> None:
        """Keep an application's state in the stream, instead of an earlier one.

        Args:
            data: The state, as the application writes it.
            offset: Of the first record that is not in it.

        Raises:
            LinkRefused: It is no stream, or none that the user may send to.
            Rejected: It is too large, speaks of records that the stream does not have, or what
                follows it has been given up.
        """
        message = Message(data, annotations={"x-opt-snapshot": ULong(offset)})
        await self._opened()  # only a stream lets it: a queue would give the snapshot as an item
        await self._client.send_own(self.address, message)

    async def load_snapshot(self) -> Snapshot | None:
        """Return the newest snapshot; None where there is none.

        What follows it may have been given up: who reads on from there is told.
        """
        snapshot = self.read(Origin.SNAPSHOT, credit=1, on_truncated="first")
        async with snapshot as reader:
            waiting = asyncio.ensure_future(reader.caught_up())
            taking = asyncio.ensure_future(reader.take(1))
            try:
                await asyncio.wait((waiting, taking), return_when=asyncio.FIRST_COMPLETED)
                if not taking.done():
                    return None
                found = taking.result()
            finally:
                waiting.cancel()
                taking.cancel()
        if not found or not found[0].is_snapshot:
            return None
        data = found[0].body
        if not isinstance(data, bytes):
            raise ClientError(self.address, None, "the snapshot has no octets")
        return Snapshot(found[0].offset, data)
