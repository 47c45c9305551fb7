"""A task's rows on their way to the mesh: posted ahead, and awaited until all are durable.

Theory of operation. A worker reads rows from Spark and encodes them in its own thread; another one
runs the client. What goes into a stream carries the producer's id of the task and a number, that of
the row among those of the task for this stream: whoever runs the task again sends the same, and the
stream keeps what it does not have. Elsewhere messages that are in doubt, or that nobody took, are
sent again until they are accepted: nothing is lost, and something may come twice.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.compute as pc

from cogwork.amqp.errors import CogworkError
from cogwork.client.client import Client
from cogwork.client.connection.certificates import is_untrusted
from cogwork.client.errors import AuthenticationError, ConnectError
from cogwork.client.options import Options
from cogwork.client.publishing.outcome import OutcomeState
from cogwork.client.publishing.send_timeout import outcomes_within, timeout_error
from cogwork.pipeline.arrow.loop_thread import loop_thread
from cogwork.pipeline.spark.errors import SinkError
from cogwork.pipeline.spark.row_messages import encoded
from cogwork.pipeline.spark.write_options import STREAMS, is_stream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from types import TracebackType

    from cogwork.client.publishing.outcome import Outcome
    from cogwork.client.publishing.publisher import Publisher
    from cogwork.dataplane.client.dispatches import Batch
    from cogwork.pipeline.spark.write_options import WriteOptions

__all__ = ("RowPublisher",)

AHEAD = 4
"""Batches that are encoded and under way: enough to keep the connection busy meanwhile."""

ROWS_MAX = 5_000
"""Rows that are posted at once: as many as a stream gives credit for."""

AGAIN_S = 0.2

STREAMS_MAX = 1_000
"""Streams that the rows of one task may go to: each has a link."""

RELAY = ""
"""What the link is kept under on which each message names its address."""


class RowPublisher:
    """Publishes the rows of one task. Used in `with`, which waits for what is under way."""

    def __init__(self, options: WriteOptions, producer: bytes) -> None:
        """Connect nowhere yet.

        Args:
            options: The sink's.
            producer: By which streams know this task, whoever runs it.
        """
        self.rows = 0
        self._options = options
        self._producer = producer
        self._client: Client | None = None
        self._publishers: dict[str, Publisher] = {}
        self._turn = asyncio.Lock()
        self._failure: BaseException | None = None
        self._coming: deque[Future[None]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            while kind is None and self._coming:
                self._take_one()
        finally:
            for each in self._coming:
                each.cancel()
            loop_thread().wait(self._close())

    def publish(self, batch: pa.RecordBatch) -> None:
        """Post rows, and wait only where much is under way.

        Raises:
            SinkError: Earlier ones are not accepted, and will not be.
        """
        for address, rows in self._by_address(batch):
            for first in range(0, rows.num_rows, ROWS_MAX):
                messages = encoded(rows.slice(first, ROWS_MAX))
                self._coming.append(loop_thread().submit(self._send(address, messages)))
                self.rows += len(messages)
                while len(self._coming) > AHEAD:
                    self._take_one()

    def _take_one(self) -> None:
        try:
            self._coming[0].result()
        except SinkError:
            raise
        except CogworkError as error:
            raise SinkError(f"rows are not accepted: {error}") from None
        self._coming.popleft()

    def _by_address(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield rows with where they go: to each stream by itself, to all else together."""
        if self._options.address is not None:
            yield self._options.address, batch
            return
        addresses = batch.column("address")
        if addresses.null_count:
            raise SinkError("a row has no address, and there is no option address")
        addresses = _spelt_alike(addresses)
        single = pc.unique(addresses).to_pylist()
        streams = [address for address in single if is_stream(address)]
        if len(streams) == len(single) == 1:
            yield streams[0], batch
            return
        for address in streams:
            yield address, batch.filter(pc.equal(addresses, address))
        if len(streams) < len(single):
            others = pc.is_in(addresses, pa.array(streams, pa.string()))
            yield RELAY, batch.filter(pc.invert(others))

    # -- on the client's thread

    async def _send(self, address: str, messages: list[bytes]) -> None:
        async with self._turn:  # rows keep their order, and so their numbers
            publisher, posted = await self._post(address, messages)
        until_s = asyncio.get_running_loop().time() + self._options.timeout_s
        while True:
            outcomes = await self._outcomes(publisher, posted, address)
            refused = [
                (message, outcome)
                for message, outcome in zip(messages, outcomes, strict=True)
                if not outcome.is_accepted
            ]
            if not refused:
                return
            fatal = [each for _, each in refused if each.state is OutcomeState.REJECTED]
            is_over = asyncio.get_running_loop().time() > until_s
            if fatal or is_over or is_stream(address):
                outcome = (fatal or [refused[0][1]])[0]
                raise SinkError(f"rows are not accepted: {_told(address, outcome)}")
            await asyncio.sleep(AGAIN_S)
            messages = [message for message, _ in refused]
            posted = publisher.post_encoded(messages)

    async def _post(self, address: str, messages: list[bytes]) -> tuple[Publisher, Batch[Outcome]]:
        """Post rows; none any more where earlier ones were not: they would get their numbers."""
        if self._failure is not None:
            raise SinkError(f"rows before these were not sent: {self._failure}")
        try:
            publisher = await self._publisher_for(address)
            await publisher.ready()
            return publisher, publisher.post_encoded(messages)
        except BaseException as error:
            self._failure = error
            raise

    async def _outcomes(
        self, publisher: Publisher, posted: Batch[Outcome], address: str
    ) -> list[Outcome]:
        """Wait for those of some rows, as long as any that are under way are taken."""
        if is_stream(address):
            return await posted  # a stream's publisher has its own send timeout
        timeout_s = float(self._options.timeout_s)
        try:
            return await outcomes_within(publisher, posted, lambda: timeout_s)
        except TimeoutError:
            raise timeout_error(publisher, address or "a row", timeout_s) from None

    async def _publisher_for(self, address: str) -> Publisher:
        found = self._publishers.get(address)
        if found is not None:
            return found
        if len(self._publishers) >= STREAMS_MAX:
            raise SinkError(f"rows of one task go to more than {STREAMS_MAX} streams")
        client = await self._connected()
        made: Publisher
        if is_stream(address):
            made = client.stream(address.removeprefix("/")).publisher(
                producer=self._producer, send_timeout_s=float(self._options.timeout_s)
            )
        elif address == RELAY and not client.has_relay:
            raise SinkError("the container passes nothing on: use the option address")
        else:
            made = client.publisher(address or None, on_doubt="resend")
        await made.open()
        self._publishers[address] = made
        return made

    async def _connected(self) -> Client:
        until_s = asyncio.get_running_loop().time() + self._options.timeout_s
        tls = self._options.certificates.context()
        while self._client is None:
            client = Client([self._options.url], Options(tls=tls, token=self._options.token))
            try:
                self._client = await client.__aenter__()
            except AuthenticationError:
                raise
            except ConnectError as error:
                is_over = asyncio.get_running_loop().time() + AGAIN_S > until_s
                if is_over or is_untrusted(error):
                    raise
                await asyncio.sleep(AGAIN_S)
        return self._client

    async def _close(self) -> None:
        if self._client is not None:
            await self._client.close()


def _told(address: str, outcome: Outcome) -> str:
    """Return what became of a row, and name where it went, once."""
    text = str(outcome.error())
    return text if outcome.address else f"{address or 'a row'}: {text}"


def _spelt_alike(addresses: pa.Array) -> pa.Array:
    """Leave out the slash before streams: by each spelling, rows would be numbered anew.

    The stream would take those of the second spelling for repeats of the first one's.
    """
    return pc.replace_substring_regex(addresses, pattern=rf"^/{STREAMS}", replacement=STREAMS)
