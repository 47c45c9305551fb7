"""The stream node: an address whose messages are kept in one order, and read from anywhere in it.

Theory of operation. The engine keeps and orders; the node stands between it and the links. What is
published comes in record batches (`Intake`) and goes to the engine (`Publishing`). What the engine
has ordered comes back by one subscription into the `Tail`, and from there, or from the engine, to
its `Readers`, each as fast as its link takes it.

The engine is opened when the node is made. Until it is open senders and readers wait, the former no
longer than for one that is away later; an engine that cannot be reached is tried again, one that
refuses ends the links.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING
from zlib import crc32

from cogwork.amqp.errors import CogworkError, Condition
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.client.flusher import Flusher
from cogwork.dataplane.stream.intake import CaptureOutlet, Intake
from cogwork.nodes.stream.outage import Outage
from cogwork.nodes.stream.publishing import Publishing
from cogwork.nodes.stream.readers import Readers
from cogwork.nodes.stream.sight import Sight
from cogwork.nodes.stream.start import STREAM_FILTERS
from cogwork.nodes.stream.status import Meter, reader_rows, wanted
from cogwork.nodes.stream.tail import Tail
from cogwork.plugin.capabilities import Capturing, Streaming
from cogwork.plugin.effects import Detach, Report
from cogwork.plugin.engine.contract import CaughtUp, Origin, Snapshot
from cogwork.plugin.engine.errors import (
    RecordsLost,
    StreamLost,
    Truncated,
    Unavailable,
    reason_of,
)
from cogwork.plugin.node import Refused
from cogwork.plugin.stream_options import StreamOptions, name_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine, Iterable, Mapping, Sequence, Set

    from cogwork.amqp.types import Symbol
    from cogwork.dataplane.stream.intake import RecordBatch
    from cogwork.plugin.effects import Effect
    from cogwork.plugin.engine.batch import Chunk
    from cogwork.plugin.engine.contract import Bounds, Engine, PromptEngine
    from cogwork.plugin.node import NodeContext, Subscription

__all__ = ("StreamNode",)

PAUSE_FIRST_S, PAUSE_LONGEST_S = 0.1, 5.0

LOOK_EVERY_S = 1.0
"""How old the bounds and members are that people see."""


class StreamNode(Streaming, Capturing):
    """One stream.

    Attributes:
        address: Its address.
        options: Its declaration.
        engine: What keeps it; None until it is open.
        capture: What topics give copies to.
        is_idle: Whether nothing of it changes with time: it needs no ticks.
        due_s: When it wants the next tick.
    """

    serves_prefix = False
    is_idle = False
    due_s = 0.0

    def __init__(self, context: NodeContext) -> None:
        """Open the stream.

        Args:
            context: Its address, the engines, and options as in `StreamOptions`.

        Raises:
            Refused: Nobody has declared the stream, or there are no engines.
        """
        self.address = context.address
        self.options = StreamOptions.of(context.address, context.options)
        if context.engines is None:
            raise Refused("this container has no engines", Condition.NOT_IMPLEMENTED)
        self._engines = context.engines
        self._emit = context.emit
        self._core = context.core
        self.engine: Engine | None = None
        self._sight = Sight()
        self._outage = Outage(context.address, self.options.engine)
        self._problem: str | None = None
        self._tail = Tail()
        self._readers = Readers(
            context.core, self._tail, run=self._run, emit=context.emit, flush=self._flush
        )
        self._intake = Intake(context.core, self)
        self.capture = CaptureOutlet(self._intake)
        self._entry = AddressEntry(context.core, context.address, CLOSEST_CODE)
        self._entry.add_outlet(self._intake)
        self._intake.inlet = self._entry
        self._publishing = Publishing(self._flush)
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._flusher: Flusher | None = None
        self._epoch = 0
        self._records_in = self._bytes_in = 0
        self._meter = Meter()
        with suppress(RuntimeError):
            self._begin(asyncio.get_running_loop())

    # -- the contract of nodes

    def entry(self, _address: str) -> AddressEntry:
        """Return where the stream's messages come in."""
        return self._entry

    def subscribe(self, subscription: Subscription) -> None:
        """Take a reader."""
        self.demand_prospects()
        self._readers.add(subscription)

    def demand_prospects(self) -> None:
        """See that the stream is open, or may yet be.

        Raises:
            Refused: Its engine will never take it as it is declared.
        """
        if self._problem is not None and self.state == "failed":
            raise Refused(self._problem, Condition.PRECONDITION_FAILED)

    def unsubscribe(self, subscription: Subscription) -> None:
        """Let a reader go; with the last one goes what they all read of."""
        self._readers.remove(subscription)
        if not self._readers:
            self._tail.restart(self._tail.next)

    def tick(self, now_s: float) -> Iterable[Effect]:
        """Look at the stream now and then, for those who ask how it is."""
        if self._loop is None:
            with suppress(RuntimeError):
                self._begin(asyncio.get_running_loop())
        if self.engine is not None and now_s >= self.due_s:
            # The second time sooner by a share of it, so that many streams do not look all at once.
            share = 0.0 if self.due_s else crc32(self.address.encode()) % 10 / 10
            self.due_s = now_s + LOOK_EVERY_S * (1 - share)
            is_quiet = self._meter.turn(now_s, self._records_in, self._bytes_in)
            report = self._outage.turn(now_s, self._sight.outage)
            if report is not None:
                self._emit([report])
            if self._sight.glance():
                self.is_idle = is_quiet and not self._outage.is_open
            elif self._sight.is_due(now_s, is_quiet=is_quiet):
                self._run(self._sight.look())
        return ()

    def status(self) -> Mapping[str, object]:
        """Return figures: bounds, rates, readers and how far behind they are."""
        self._sight.show()
        bounds, members = self._sight.bounds, self._sight.members
        declared = self.engine.capabilities if self.engine is not None else None
        behind = [reader.behind for reader in self._readers]
        first, following = bounds.first, max(bounds.next, self._tail.next)
        return {
            "state": self.state,
            "problem": self.problem,
            "engine": self.options.engine,
            "durability": declared.durability.value if declared is not None else None,
            "first": first,
            "next": following,
            "records": following - first,
            "size_bytes": bounds.size_bytes,
            "epoch": self._epoch,
            "leader": members.leader if members is not None else None,
            "voters": list(members.voters) if members is not None else [],
            "learners": list(members.learners) if members is not None else [],
            **wanted(self._engines.placement(self.options.engine, self.name), members),
            "in": self._intake.messages,
            "appended": self._publishing.appended,
            "rejected": self._publishing.rejected + self._intake.refused,
            "returned": self._publishing.returned,
            "missed": self._intake.missed,
            "waiting": self._publishing.stopped,
            "pending_bytes": self._intake.pending_bytes,
            "bytes_in": self._bytes_in,
            "records_per_s": self._meter.records_per_s,
            "bytes_per_s": self._meter.bytes_per_s,
            "consumers": len(self._readers),
            "behind": max(behind, default=0),
            "held_bytes": self._readers.held_bytes,
            "rejected-by-receivers": self._readers.feed.rejected,
            "readers": reader_rows(self._readers),
            "is_shared": self.options.is_shared,
            "options": self.options.shown(),
        }

    @property
    def name(self) -> str:
        """Returns what the engine knows it by."""
        return name_of(self.address)

    @property
    def captured(self) -> Sequence[str]:
        """The topics whose messages it keeps, too."""
        return self.options.capture

    @property
    def is_everywhere(self) -> bool:
        """Whether the whole cluster has the stream, and not this container alone."""
        return self.options.is_shared or self._engines.is_clustered(self.options.engine)

    @property
    def filters(self) -> Set[Symbol]:
        """Descriptors of the filters that it knows besides the selector."""
        return STREAM_FILTERS

    @property
    def state(self) -> str:
        """Returns `opening`, `open`, `away` or `failed`."""
        if self.engine is not None:
            return self._outage.state(self._sight.outage)
        has_ended = self._loop is not None and not self._tasks
        return "failed" if self._publishing.refuses or has_ended else "opening"

    @property
    def problem(self) -> str | None:
        """Why it is not open, or cannot be read; None where all is well."""
        return self._outage.problem or self._problem or self._readers.problem

    def give_back(self) -> None:
        """Return to their senders what waits to be appended, and what comes from now on."""
        self._publishing.give_back()

    def close(self) -> None:
        """Let the stream go; it stays with its engine."""
        for task in list(self._tasks):
            task.cancel()
        self._publishing.close()
        self._readers.close()
        engine, self.engine = self.engine, None
        self._sight.close()
        if engine is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.create_task(_closed(engine))
        self._entry.remove_outlet(self._intake)
        self._intake.close()
        self._entry.close()

    # -- life

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._flusher = Flusher(self._core, loop.call_soon)
        self._intake.is_open = True
        self._intake.resume()
        self._run(self._open())

    def _run(self, work: Coroutine[object, object, None]) -> None:
        assert self._loop is not None
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open(self) -> None:
        """Open the engine, and follow it for as long as the node is there."""
        name = self.name
        pause_s = PAUSE_FIRST_S
        while self.engine is None:
            try:
                options = self.options
                engine = await self._engines.open(
                    options.engine,
                    name,
                    options.rest,
                    options.capture,
                    is_shared=options.is_shared,
                )
            except Unavailable as error:
                self._report_problem(reason_of(error))
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, PAUSE_LONGEST_S)
            except Exception as error:  # a plug-in's, too: it must not stop the container
                known = isinstance(error, (CogworkError, ValueError))
                self._report_problem(str(error) if known else repr(error), is_error=True)
                await self._fail()
                return
            else:
                self.engine = engine
        self._sight.open(self.engine)
        if self._problem is not None:
            text, kind = f"{self.address} is open now", f"{self._outage.alike} are open"
            self._emit([Report(text, kind=kind)])
        self._problem = None
        # Before anything is awaited: who subscribes from now on is started by that.
        self._readers.open(self.engine)
        with suppress(Exception):  # a plug-in's, too: what it is, the next look tells
            await self._sight.measure()
        self._publishing.open(self.engine)
        await self._follow(self.engine)

    def _report_problem(self, problem: str, *, is_error: bool = False) -> None:
        if problem != self._problem:
            self._problem = problem
            kind = f"{self._outage.alike} have a problem"
            self._emit([Report(f"{self.address}: {problem}", is_error, not is_error, kind)])

    async def _fail(self) -> None:
        """Refuse what waits, and end all links: the engine will never take this stream."""
        problem = self._problem or ""
        self._publishing.refuse(problem)
        self._flush()
        await asyncio.sleep(PAUSE_FIRST_S)  # who has sent something is told of that first
        self._end_links(Condition.PRECONDITION_FAILED, problem)

    def end_links(self, why: str = "was deleted") -> None:
        """End all links: the stream is no more, perhaps at another container.

        Args:
            why: What became of it.
        """
        self._end_links(Condition.RESOURCE_DELETED, f"{self.address} {why}")

    def delete(self) -> None:
        """Do nothing: its engine gives up its records."""

    def _end_links(self, condition: Symbol, text: str) -> None:
        links = [*(reader.link for reader in self._readers), *self._entry.sources]
        self._emit([Detach(link, condition, text) for link in links])
        self._flush()

    # -- the live end

    async def _follow(self, engine: Engine) -> None:
        """Take what the engine gives out; begin again at its end where that fails."""
        while True:
            try:
                await self._take_all(engine)
            except Unavailable as error:
                self._sight.unread = reason_of(error)
                if isinstance(error, StreamLost):
                    self._readers.end(error)
            except RecordsLost as error:
                self._take_back(error)
            except Truncated:
                pass  # retention was quicker: readers who want what is gone are told as they ask
            except Exception as error:  # a plug-in's, too: readers wait until it is over
                self._report_problem(f"cannot read live records: {error!r}")
            await asyncio.sleep(PAUSE_FIRST_S)

    async def _take_all(self, engine: Engine) -> None:
        """Take what the engine gives out, until it gives no more."""
        over = self._watch()
        if over is not None:
            await over
            return
        async for item in engine.subscribe(Origin.NEXT):
            if isinstance(item, CaughtUp):
                self._catch_up(item.next)
            elif not isinstance(item, Snapshot):
                self._take(item)
                self._readers.serve()
            self._flush()

    def _take_back(self, error: RecordsLost) -> None:
        """Give out no more of what the engine has lost, and tell who has had some of it."""
        self._tail.restart(error.end)
        self._readers.take_back(error)
        text, kind = f"{self.address}: {error}", f"{self._outage.alike} have lost records"
        self._emit([Report(text, is_warning=True, kind=kind)])

    def _watch(self) -> Awaitable[None] | None:
        """Have the engine say when there is more, where it can."""
        prompt = self._sight.prompt
        seen = prompt.glance() if prompt is not None else None
        if prompt is None or seen is None:
            return None
        self._catch_up(seen[0].next)
        self._flush()
        return prompt.watch(partial(self._take_more, prompt))

    def _take_more(self, engine: PromptEngine) -> None:
        """Take what the engine has by now, within a turn of it; perhaps it has lost its leader."""
        if self.engine is not engine:
            return
        self.is_idle = False
        while True:
            try:
                chunks = engine.read_here(self._tail.next)
            except Truncated as error:
                self._tail.restart(error.first)
                continue
            if not chunks:
                return
            for chunk in chunks:
                self._take(chunk)
            self._readers.serve()

    def _catch_up(self, following: int) -> None:
        self._problem = self._sight.unread = None
        if following != self._tail.next:
            self._tail.restart(following)
        self._readers.serve()

    def _take(self, chunk: Chunk) -> None:
        self.is_idle = False
        self._epoch = chunk.epoch
        self._records_in += chunk.batch.count
        self._bytes_in += len(chunk.batch.payload)
        if not self._readers:  # whoever comes reads it from the engine
            self._tail.restart(chunk.next_offset)
            return
        self._tail.add(chunk)

    def _flush(self) -> None:
        if self._flusher is not None:
            self._flusher.request()

    # -- what the data plane hands over

    def on_record_batches(self, record_batches: Sequence[RecordBatch]) -> None:
        """Have messages appended."""
        self._publishing.take(record_batches)

    # -- for management

    async def move(self, voters: Sequence[str], learners: Sequence[str]) -> None:
        """Declare that others are to hold the stream; return before they do."""
        await self._engines.move(self.options.engine, self.name, voters, learners)

    async def trim(self, before: int) -> Bounds:
        """Give up records below an offset; return what is left."""
        if self.engine is None:
            raise Unavailable(self.problem or "the stream is being opened")
        await self.engine.trim(before)
        await self._sight.measure()
        return self._sight.bounds


async def _closed(engine: Engine) -> None:
    with suppress(CogworkError):
        await engine.close()
