"""From the archive back into the mesh: a range of a stream, in order, at its own pace or another.

Theory of operation. Into a stream each record goes with a producer's id that follows from what is
replayed and where to, and with its number in the range. The stream drops what it has already: a
replay that was killed is started again with the same arguments, and goes on. It looks at the end of
the target for its own last number, so as not to send all of it again; where it finds none it begins
at the beginning, which is slower and as right. Other addresses have no memory of producers: there
a message may come twice, with the same message-id.

Messages go out in chunks, several under way. Where one of a chunk was not accepted, that chunk and
those after it are sent again, in order. An address that nobody takes from gives no credit, and no
outcome: so it is the messages' moving on that is watched, and not the time that a chunk takes.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.compute as pc

from cogwork.amqp.extensions import OUT_OF_SEQUENCE
from cogwork.amqp.types import ULong
from cogwork.client import Message
from cogwork.client.publishing.outcome import OutcomeState
from cogwork.client.publishing.send_timeout import outcomes_within, timeout_error
from cogwork.client.streams.start import start_of
from cogwork.pipeline.archive import reading
from cogwork.pipeline.archive.errors import ArchiveError, BadPlace, NothingThere
from cogwork.pipeline.arrow import UnknownStream
from cogwork.plugin.engine.contract import FromOffset, FromTime, Origin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from cogwork.client import Client
    from cogwork.client.publishing.outcome import Outcome
    from cogwork.client.publishing.publisher import Publisher
    from cogwork.dataplane.client.dispatches import Batch
    from cogwork.pipeline.archive.table import ArchiveTable
    from cogwork.pipeline.arrow import ArrowClient

__all__ = ("Plan", "Replayed", "plan_of", "replay", "sent_before")

PREFIX = "stream/"

CHUNK_MESSAGES = 500
CHUNKS_MAX = 8
"""Under way at a time: fewer messages than a link gets credit for."""

PATIENCE_S = 60.0
"""So long an address may take nothing, before that is an error."""

STOP_S = 2.0
"""So long it may take nothing where the replay is to end: what is under way may still arrive."""

PAUSE_S = 0.05
LOOK_BACK_ROWS = 100_000
LOOK_BACK_ROWS_MAX = 5_000_000
"""How far from the target's end a replay looks for its own records: seconds."""


class Plan(NamedTuple):
    """What is replayed, and where to.

    Attributes:
        stream: The archived stream.
        start: The first offset.
        end: After the last one.
        into: The address.
        producer: The id under which it goes into a stream: the same for the same replay.
    """

    stream: str
    start: int
    end: int
    into: str
    producer: bytes

    @property
    def is_into_stream(self) -> bool:
        """Whether each record gets there once."""
        return self.into.startswith(PREFIX)


class Replayed(NamedTuple):
    """What became of it.

    Attributes:
        sent: How many messages were accepted now.
        skipped: How many an earlier run had got there.
        duration_s: How long it took.
    """

    sent: int
    skipped: int
    duration_s: float


def plan_of(table: ArchiveTable, start: str, end: str, into: str, run: str = "") -> Plan:
    """Find the range that is meant.

    Args:
        table: Where the records are.
        start: `first`, an offset or a time.
        end: `end`, or an offset or a time, which itself is not meant.
        into: The address.
        run: Tells a replay from an earlier one of the same range into the same stream.

    Raises:
        BadPlace: `start` or `end` is none.
        NothingThere: The range is empty.
    """
    into = into.removeprefix("/") if into.startswith("/" + PREFIX) else into
    first_wanted = _place_of("from", start)
    last_wanted = Origin.NEXT if end == "end" else _place_of("to", end)
    first = max(table.first, _offset_of(table, first_wanted))
    following = min(table.mark, _offset_of(table, last_wanted))
    if first >= following:
        raise NothingThere(
            f"the archive of stream/{table.stream} has no record from {start} to before {end}: it "
            f"goes from offset {table.first} to before {table.mark}"
        )
    said = "\0".join((table.uuid, table.stream, str(first), str(last_wanted), into, run))
    producer = hashlib.blake2b(said.encode(), digest_size=16, person=b"cogwork-replay").digest()
    return Plan(table.stream, first, following, into, producer)


def _place_of(bound: str, text: str) -> Origin | FromOffset | FromTime:
    """Read where a range begins or ends.

    Raises:
        BadPlace: An archive has no such place.
    """
    try:
        place = start_of(text)
    except ValueError as error:
        raise BadPlace(bound, text) from error
    if isinstance(place, Origin) and place not in (Origin.FIRST, Origin.NEXT):
        raise BadPlace(bound, text)
    return place


def _offset_of(table: ArchiveTable, place: Origin | FromOffset | FromTime) -> int:
    if isinstance(place, FromOffset):
        return place.offset
    if isinstance(place, FromTime):
        return reading.offset_at(table, place.time_ms * 1000)
    return table.first if place is Origin.FIRST else table.mark


def sent_before(client: ArrowClient, plan: Plan) -> int:
    """Count what an earlier run of the same replay has got into its target stream.

    Args:
        client: Reads the target.
        plan: The replay.
    """
    target = plan.into.removeprefix(PREFIX)
    try:
        first, end = client.bounds(target)
    except UnknownStream:
        return 0
    lowest = max(first, end - LOOK_BACK_ROWS_MAX)
    while end > lowest:
        start = max(lowest, end - LOOK_BACK_ROWS)
        last = -1
        for batch in client.read(target, start, end, ("producer", "sequence")):
            own = batch.filter(pc.equal(batch.column("producer"), plan.producer))
            if own.num_rows:
                last = max(last, pc.max(own.column("sequence")).as_py())
        if last >= 0:
            return last + 1
        end = start
    return 0


async def replay(
    client: Client,
    table: ArchiveTable,
    plan: Plan,
    *,
    speed: float | None = None,
    skip: int = 0,
    on_progress: Callable[[int], None] | None = None,
    stopping: asyncio.Event | None = None,
) -> Replayed:
    """Send a range.

    Args:
        client: Connected.
        table: Where the records are.
        plan: Which ones, and where to.
        speed: How many seconds of then go into one of now; None is as fast as it goes.
        skip: How many are there already.
        on_progress: Told how many have been accepted, or were there.
        stopping: Ends it after what is under way.

    Raises:
        Rejected: The address does not take a message.
        Released: It takes none, for a minute.
        InDoubt: It has some, and for a minute does not say what became of them.
    """
    began = time.monotonic()
    stopping = stopping or asyncio.Event()
    out = client.publisher(plan.into)
    sender = _Sender(out, lambda done: on_progress(skip + done) if on_progress else None, stopping)
    with suppress(_Abandoned):
        async with out:
            pace = _Pace(speed)
            for messages, time_us in _chunks(table, plan, skip, paced=speed is not None):
                if stopping.is_set():
                    break
                await pace.wait(time_us, stopping)
                await sender.send(messages)
            await sender.finish()
    return Replayed(sender.accepted, skip, time.monotonic() - began)


class _Pace:
    """When a record is due."""

    def __init__(self, speed: float | None) -> None:
        self._speed = speed
        self._first: tuple[int, float] | None = None

    async def wait(self, time_us: int, stopping: asyncio.Event) -> None:
        if self._speed is None:
            return
        now = time.monotonic()
        if self._first is None:
            self._first = (time_us, now)
        first_us, began = self._first
        delay = began + (time_us - first_us) / 1e6 / self._speed - now
        if delay <= 0:
            return
        try:
            await asyncio.wait_for(stopping.wait(), delay)
        except TimeoutError:
            return


PACED_STEP_US = 20_000
"""Records of so short a time go out together, at any pace."""


def _chunks(
    table: ArchiveTable, plan: Plan, skip: int, *, paced: bool
) -> Iterator[tuple[list[Message], int]]:
    """Yield messages, and the time of the first one of each chunk."""
    chunk: list[Message] = []
    first_us = 0
    for number, (time_us, row) in enumerate(_rows(table, plan)):
        if number < skip:
            continue
        is_late = paced and time_us - first_us > PACED_STEP_US
        if chunk and (len(chunk) == CHUNK_MESSAGES or is_late):
            yield chunk, first_us
            chunk = []
        if not chunk:
            first_us = time_us
        chunk.append(_message_of(row, plan, number))
    if chunk:
        yield chunk, first_us


def _rows(table: ArchiveTable, plan: Plan) -> Iterator[tuple[int, dict[str, Any]]]:
    for batch in reading.read(table, plan.start, plan.end):
        times = batch.column("time").cast("int64").to_pylist()
        yield from zip(times, _plain(batch), strict=True)


def _plain(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = batch.drop_columns(["time", "stream"]).to_pylist()
    return found


def _message_of(row: dict[str, Any], plan: Plan, number: int) -> Message:
    """Make a message of a record; ids, properties and the body are what the archive has."""
    message_id = row["message_id"]
    annotations: dict[str, object] | None = None
    if plan.is_into_stream:
        annotations = {"x-opt-producer": plan.producer, "x-opt-sequence": ULong(number)}
    elif message_id is None:
        message_id = f"{plan.producer.hex()}-{number}"
    return Message(
        row["body"],
        to=row["address"],
        subject=row["subject"],
        message_id=message_id,
        correlation_id=row["correlation_id"],
        reply_to=row["reply_to"],
        content_type=row["content_type"],
        properties=dict(row["properties"]) if row["properties"] else None,
        annotations=annotations,
    )


class _Abandoned(Exception):
    """The replay is to end, and what is under way gets nowhere."""


class _Sender:
    """Chunks under way, oldest first; what is not accepted is sent again, in order."""

    def __init__(
        self, out: Publisher, on_progress: Callable[[int], None], stopping: asyncio.Event
    ) -> None:
        self.accepted = 0
        self._out = out
        self._on_progress = on_progress
        self._stopping = stopping
        self._under_way: deque[tuple[list[Message], Batch[Outcome]]] = deque()
        self._failing_since: float | None = None

    async def send(self, messages: list[Message]) -> None:
        while len(self._under_way) >= CHUNKS_MAX:
            await self._settle_oldest()
        self._post(messages)

    async def finish(self) -> None:
        while self._under_way:
            await self._settle_oldest()

    def _post(self, messages: list[Message]) -> None:
        self._under_way.append((messages, self._out.post_batch(messages)))

    async def _settle_oldest(self) -> None:
        messages, batch = self._under_way[0]
        outcomes = await self._outcomes(batch)
        failed = next((each for each in outcomes if not each.is_accepted), None)
        if failed is None:
            self._under_way.popleft()
            self._failing_since = None
            self.accepted += len(messages)
            self._on_progress(self.accepted)
            return
        await self._send_again(failed)

    async def _outcomes(self, batch: Batch[Outcome]) -> list[Outcome]:
        """Wait for those of a chunk, as long as something of what is under way moves on."""
        try:
            return await outcomes_within(
                self._out, batch, lambda: STOP_S if self._stopping.is_set() else PATIENCE_S
            )
        except TimeoutError:
            if self._stopping.is_set():
                raise _Abandoned from None
            raise timeout_error(self._out, self._out.address, PATIENCE_S) from None

    async def _send_again(self, failed: Outcome) -> None:
        """Wait for all that is under way, and send it again."""
        is_final = failed.state is OutcomeState.REJECTED and failed.condition != OUT_OF_SEQUENCE
        now = time.monotonic()
        self._failing_since = self._failing_since or now
        if is_final or now - self._failing_since > PATIENCE_S:
            raise failed.error() or ArchiveError(f"{failed.address} did not take a message")
        again = list(self._under_way)
        self._under_way.clear()
        for _, batch in again:
            await self._outcomes(batch)
        if self._stopping.is_set():
            raise _Abandoned
        await asyncio.sleep(PAUSE_S)
        for messages, _ in again:
            self._post(messages)
