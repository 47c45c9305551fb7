"""Who appends to a stream, each message once."""

from __future__ import annotations

import asyncio
from functools import partial
from os import urandom
from typing import TYPE_CHECKING, Unpack

from cogwork.amqp.extensions import STREAM
from cogwork.client.checks import demand_seconds
from cogwork.client.fields import MessageFields, batch_of, message_of
from cogwork.client.publishing.outcome import outcome_of
from cogwork.client.publishing.publisher import Publisher
from cogwork.dataplane.client.stream_outbox import StreamOutbox

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.client.context import LinkContext
    from cogwork.client.publishing.outcome import Outcome
    from cogwork.dataplane.client.dispatches import Batch, Post

__all__ = ("StreamPublisher",)

PRODUCER_SIZE_BYTES = 16

PRODUCER_SIZE_MAX = 64
"""A stream takes no longer ones."""


class StreamPublisher(Publisher):
    """Appends to a stream; made by `Stream.publisher`."""

    _outbox: StreamOutbox[Outcome]
    _capabilities = (STREAM,)
    takes_back = False  # what comes after it counts on it
    _pending = "it was sent, or waits for credit in the stream's line, where it stays,"

    def __init__(
        self,
        client: LinkContext,
        address: str,
        producer: bytes | None = None,
        send_timeout_s: float | None = None,
    ) -> None:
        """Is not attached yet.

        Args:
            client: Keeps it attached.
            address: The stream's.
            producer: The id by which the stream is to know it, in place of a new one.
            send_timeout_s: How long a message is tried that is not taken, or waits for credit; None
                for a minute.

        Raises:
            ValueError: The id is too long, or empty.
        """
        if producer is not None and not 0 < len(producer) <= PRODUCER_SIZE_MAX:
            raise ValueError(f"a producer's id has 1 to {PRODUCER_SIZE_MAX} octets")
        demand_seconds("send_timeout_s", send_timeout_s)
        outbox: StreamOutbox[Outcome] = StreamOutbox(
            client.flusher,
            client.create_future,
            partial(outcome_of, address),
            partial(urandom, PRODUCER_SIZE_BYTES),
            asyncio.get_running_loop().call_later,
            producer,
        )
        if send_timeout_s is not None:
            outbox.patience_s = send_timeout_s
        super().__init__(client, address, outbox=outbox)

    @property
    def producer(self) -> bytes:
        """The id by which the stream knows what it has from here."""
        return self._outbox.producer

    def post(self, body: object, *, settled: bool = False, **fields: Unpack[MessageFields]) -> Post:
        """Append a message and go on; awaiting what is returned waits until it is appended.

        Args:
            body: A `Message`, or the body of one.
            settled: Not for streams.
            **fields: The message's, as in `Message`.

        Raises:
            BacklogFull: Too many wait for credit; `await ready()` now and then.
            MessageTooLarge: The container would not take it.
            EncodeError: A value has no AMQP encoding.
            NotOpened: Nobody has opened the publisher: it would never be sent.
        """
        if self._outbox.link is None:
            self.demand_open()
        if settled:
            _refuse_settled()
        return self._outbox.append_one(message_of(body, self.post, **fields) if fields else body)

    def post_batch(self, bodies: Iterable[object], *, settled: bool = False) -> Batch[Outcome]:
        """Append messages and go on; awaiting what is returned waits for their outcomes."""
        if self._outbox.link is None:
            self.demand_open()
        if settled:
            _refuse_settled()
        return self._outbox.append_all(batch_of(bodies))

    def post_encoded(self, messages: list[bytes]) -> Batch[Outcome]:
        """Append messages that are encoded already; see `post_batch`."""
        if self._outbox.link is None:
            self.demand_open()
        return self._outbox.append_encoded(messages)


def _refuse_settled() -> None:
    raise ValueError("a message that is sent settled cannot be sent once for certain")
