"""The kit of engines is graded: each of these engines breaks one promise, and is caught."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from unittest import SkipTest

import pytest
from msgspec import structs

from cogwork.engines import orb
from cogwork.engines.orb import OrbEngine, OrbHost, OrbSubscription
from cogwork.plugin.conformance.engines import EngineConformance
from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.contract import Appended, CaughtUp, EngineHost, Origin, Snapshot, Start
from cogwork.plugin.engine.errors import BeyondEnd
from cogwork.plugin.engine.sequencer import Sequencer

Found = Chunk | CaughtUp | Snapshot


class Faulty(OrbHost):
    """Opens another kind of engine, or one on another state."""

    engine: type[OrbEngine] = OrbEngine
    state: type[Sequencer] = Sequencer

    async def open(self, stream: str, options: Mapping[str, object]) -> OrbEngine:
        is_new = stream not in self._streams
        await super().open(stream, options)
        found = self._streams[stream]
        if is_new:
            found.state = self.state()
        return self.engine(found)


def with_engine(name: str, made: object) -> type[Faulty]:
    """A host whose engines have another method."""
    return type("Host", (Faulty,), {"engine": type("Engine", (OrbEngine,), {name: made})})


def with_state(name: str, made: object) -> type[Faulty]:
    """A host whose streams' states have another method."""
    return type("Host", (Faulty,), {"state": type("State", (Sequencer,), {name: made})})


def with_steps(change: Callable[[OrbSubscription, Found], Found | None]) -> type[Faulty]:
    """A host whose subscriptions give out something else."""

    class Changed(OrbSubscription):
        async def __anext__(self) -> Found:
            found = await super().__anext__()
            while (changed := change(self, found)) is None:
                found = await super().__anext__()
            return changed

    def subscribe(self: OrbEngine, start: Start) -> OrbSubscription:
        return Changed(self, start)

    return with_engine("subscribe", subscribe)


def forgets_epochs(self: Sequencer, batch: Batch, epoch: int | None, time_ms: int) -> object:
    return Sequencer.append(self, batch, None, time_ms)


def forgets_producers(self: Sequencer, batch: Batch, epoch: int | None, time_ms: int) -> object:
    appended, chunk = Sequencer.append(self, structs.replace(batch, producer=b""), epoch, time_ms)
    return appended, structs.replace(chunk, batch=batch) if chunk is not None else None


def answers_elsewhere(self: Sequencer, batch: Batch, epoch: int | None, time_ms: int) -> object:
    appended, chunk = Sequencer.append(self, batch, epoch, time_ms)
    if appended.is_repeated:
        appended = Appended(appended.epoch, self.next_offset, is_repeated=True)
    return appended, chunk


def drops_what_overlaps(self: Sequencer, batch: Batch, epoch: int | None, time_ms: int) -> object:
    appended, chunk = Sequencer.append(self, batch, epoch, time_ms)
    if chunk is not None and chunk.batch is not batch:
        self.next_offset = chunk.offset
        return structs.replace(appended, is_repeated=True), None
    return appended, chunk


def loses_time(self: Sequencer, batch: Batch, epoch: int | None, time_ms: int) -> object:
    return Sequencer.append(self, batch, epoch, 1)


def takes_everything(self: Sequencer, batch: Batch, epoch: int | None, time_ms: int) -> object:
    if batch.count == 0:
        return Appended(self.epoch, self.next_offset), None
    return Sequencer.append(self, batch, epoch, time_ms)


def trims_nothing(self: Sequencer, before: int) -> int:
    return self.first_offset


def trims_too_much(self: Sequencer, before: int) -> int:
    return Sequencer.trim(self, before + 1)


def keeps_the_old(self: Sequencer, snapshot: Snapshot) -> int:
    return Sequencer.keep_snapshot(self, snapshot) if self.snapshot is None else 0


def keeps_the_future(self: Sequencer, snapshot: Snapshot) -> int:
    self.snapshot = snapshot
    return self.first_offset


def keeps_what_leads_nowhere(self: Sequencer, snapshot: Snapshot) -> int:
    if snapshot.offset > self.next_offset:
        raise BeyondEnd(snapshot.offset, self.next_offset)
    self.snapshot = snapshot
    return self.first_offset


def begins_no_epoch(self: Sequencer) -> int:
    return self.epoch


def never_caught_up_at_once(self: OrbSubscription, found: Found) -> Found | None:
    return None if isinstance(found, CaughtUp) and found.next == 0 else found


def caught_up_too_early(self: OrbSubscription, found: Found) -> Found | None:
    if isinstance(found, Chunk) and not self._has_caught_up:
        self._has_caught_up = True
        self._ordinal -= 1
        self._offset = found.offset
        return CaughtUp(found.offset)
    return found


def caught_up_again(self: OrbSubscription, found: Found) -> Found | None:
    if isinstance(found, Chunk):
        self._has_caught_up, self._end = False, 0
    return found


def skips_one(self: OrbSubscription, found: Found) -> Found | None:
    return None if isinstance(found, Chunk) and found.offset == 7 else found


def repeats_one(self: OrbSubscription, found: Found) -> Found | None:
    if isinstance(found, Chunk) and found.offset == 7 and not hasattr(self, "again"):
        self.again = True  # type: ignore[attr-defined]  # it marks itself
        self._ordinal -= 1
        self._offset = found.offset
    return found


def swaps_records(self: OrbSubscription, found: Found) -> Found | None:
    if isinstance(found, Chunk) and found.batch.count == 3:
        records = sorted(found.batch.records(), key=lambda each: hash((id(self), each)))
        return replace(found, batch=replace(found.batch, payload=Batch.of(records).payload))
    return found


def strips_producers(self: OrbSubscription, found: Found) -> Found | None:
    if isinstance(found, Chunk):
        return replace(found, batch=replace(found.batch, payload=found.batch.payload.strip(b"\0")))
    return found


def forgets_the_snapshot(self: OrbSubscription, found: Found) -> Found | None:
    return None if isinstance(found, Snapshot) else found


def subscribes_from_the_first(self: OrbEngine, start: Start) -> OrbSubscription:
    return OrbSubscription(self, Origin.FIRST)


def subscribes_beyond(self: OrbEngine, start: Start) -> OrbSubscription:
    offset = getattr(start, "offset", None)
    is_beyond = offset is not None and offset > self._stream.state.next_offset
    return OrbSubscription(self, Origin.NEXT if is_beyond else start)


def skips_in_silence(self: OrbEngine, start: Start) -> OrbSubscription:
    class Skipping(OrbSubscription):
        async def __anext__(self) -> Found:
            stream = self._engine.open_stream()
            if self._offset < stream.state.first_offset:
                self._offset = stream.state.first_offset
                self._ordinal = stream.chunks.find(self._offset)
            return await super().__anext__()

    return Skipping(self, start)


async def reads_whole_chunks(self: OrbEngine, offset: int, max_bytes: int = 1 << 20) -> object:
    found = await OrbEngine.read(self, offset, max_bytes)
    stream = self._stream
    whole = stream.chunks[stream.chunks.find(offset)] if found else None
    return [whole, *found[1:]] if whole is not None else found


async def reads_everything(self: OrbEngine, offset: int, max_bytes: int = 1 << 20) -> object:
    return await OrbEngine.read(self, offset, 1 << 40)


async def reads_below(self: OrbEngine, offset: int, max_bytes: int = 1 << 20) -> object:
    return await OrbEngine.read(self, max(offset, self._stream.state.first_offset), max_bytes)


async def fences_elsewhere(self: OrbEngine) -> int:
    return self._stream.state.epoch + 1


async def closes_nothing(self: OrbEngine) -> None:
    return None


async def changes_nothing(
    self: OrbEngine, voters: Sequence[str], learners: Sequence[str] = ()
) -> None:
    return None


async def deletes_nothing(self: OrbHost, stream: str) -> None:
    return None


async def deletes_in_silence(self: OrbHost, stream: str) -> None:
    self._streams.pop(stream, None)


def answers_nothing_at_all(self: OrbEngine, batch: Batch, epoch: int | None = None) -> object:
    """Answer well, and append every tenth batch nowhere."""
    if self._stream.state.next_offset % 10 == 9:
        batch = Batch.of([b""], b"nobody", 0)
    return OrbEngine.append(self, batch, epoch)


def appends_later(self: OrbEngine, batch: Batch, epoch: int | None = None) -> Awaitable[Appended]:
    async def append() -> Appended:
        return await OrbEngine.append(self, batch, epoch)

    return append()


MUTANTS: dict[str, type[OrbHost]] = {
    each.__name__: make(each)  # type: ignore[no-untyped-call]  # makers of several kinds
    for make, each in [
        *(
            (lambda made: with_state("append", made), each)
            for each in (
                forgets_epochs,
                forgets_producers,
                answers_elsewhere,
                drops_what_overlaps,
                loses_time,
                takes_everything,
            )
        ),
        *(
            (lambda made: with_state("trim", made), each)
            for each in (trims_nothing, trims_too_much)
        ),
        *(
            (lambda made: with_state("keep_snapshot", made), each)
            for each in (keeps_the_old, keeps_the_future, keeps_what_leads_nowhere)
        ),
        (lambda made: with_state("fence", made), begins_no_epoch),
        *(
            (with_steps, each)
            for each in (
                never_caught_up_at_once,
                caught_up_too_early,
                caught_up_again,
                skips_one,
                repeats_one,
                swaps_records,
                strips_producers,
                forgets_the_snapshot,
            )
        ),
        *(
            (lambda made: with_engine("subscribe", made), each)
            for each in (subscribes_from_the_first, subscribes_beyond, skips_in_silence)
        ),
        *(
            (lambda made: with_engine("read", made), each)
            for each in (reads_whole_chunks, reads_everything, reads_below)
        ),
        (lambda made: with_engine("fence", made), fences_elsewhere),
        (lambda made: with_engine("close", made), closes_nothing),
        (lambda made: with_engine("change_members", made), changes_nothing),
        *(
            (lambda made: with_engine("append", made), each)
            for each in (answers_nothing_at_all, appends_later)
        ),
        *(
            (lambda made: type("Host", (OrbHost,), {"delete": made}), each)
            for each in (deletes_nothing, deletes_in_silence)
        ),
    ]
}


def failures(host: Callable[[], EngineHost]) -> list[str]:
    """Run the kit and return the tests that failed."""

    class Suspect(EngineConformance):
        timeout_s = 0.5

        def make_host(self) -> EngineHost:
            return host()

    kit = Suspect()
    found: list[str] = []
    for name in dir(kit):
        if name.startswith("test_"):
            try:
                getattr(kit, name)()
            except SkipTest:
                continue
            except Exception:
                found.append(name)
    return found


@pytest.mark.parametrize("name", MUTANTS)
def test_an_engine_that_breaks_a_promise_is_caught(name: str) -> None:
    assert failures(MUTANTS[name])


def test_what_is_not_declared_is_skipped_and_must_be_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    less = replace(orb.CAPABILITIES, fences=False, trims=False)
    monkeypatch.setattr(orb, "CAPABILITIES", less)
    assert failures(OrbHost) == [
        "test_it_refuses_to_fence_where_it_cannot",
        "test_it_refuses_to_trim_where_it_cannot",
    ]
