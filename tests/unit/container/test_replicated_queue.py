"""A container's part in a replicated queue, on an engine in this process."""

from __future__ import annotations

import asyncio
import errno
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING
from unittest.mock import patch

from cogwork.container.cluster.queue_replicas import shard_of_queue
from cogwork.container.cluster.replicated_queue import ReplicatedQueue
from cogwork.container.journals import durable_queue
from cogwork.container.journals.journals import QueueJournals
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.addresses.partitions import PartitionedInlet
from cogwork.dataplane.core import Core
from cogwork.dataplane.message.messages import Message
from cogwork.dataplane.queue.store import Store
from cogwork.engines.orb import OrbHost
from cogwork.plugin.engine.errors import Busy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cogwork.plugin.engine.batch import Batch
    from cogwork.plugin.engine.contract import Appended, Engine, Start, Subscription

ADDRESS = "work/x"

MIB = 1 << 20
ROOM_BYTES = 24 * MIB

WAL = {"end_lsn": 0, "durable_lsn": 0, "flush": int, "waiting_bytes": 0}
"""A log of which nobody wants anything."""


class Place:
    """A container, as its part in the queue sees it.

    Attributes:
        queue: The part.
        appended: How many appends were made.
        under_way_bytes: What the appends have that are not answered.
        refuses: Says of an append, by its number, whether the engine is not to take it.
        answers: Set unless appends are to wait.
        failures: What is raised before the stream is open.
        woken: How often the part has asked to be visited.
    """

    is_barred = False

    def __init__(self, engine: Engine) -> None:
        self.core = Core()
        self.journals = QueueJournals(self.core, "a", has_disk=True)
        self.journals.start(SimpleNamespace(**WAL), {})  # type: ignore[arg-type]  # it is a log
        self.store = Store(self.core, shard_of_queue("", ADDRESS))
        entry = AddressEntry(self.core, ADDRESS, CLOSEST_CODE)
        inlet = PartitionedInlet(self.store, entry, 1, True)
        self.appended = 0
        self.under_way_bytes = 0
        self.refuses: Callable[[int], bool] = lambda _number: False
        self.answers = asyncio.Event()
        self.answers.set()
        self.failures: list[Exception] = []
        self.woken = 0
        self._engine = engine
        self.queue = ReplicatedQueue(self, ("", ADDRESS), {}, self.store, inlet)  # type: ignore[arg-type]  # it is a host
        self.queue.start()

    async def open_stream(self, queue: ReplicatedQueue) -> Place:
        del queue
        if self.failures:
            raise self.failures.pop()
        return self

    def append(self, batch: Batch, epoch: int | None = None) -> Awaitable[Appended]:
        self.appended += 1
        if not self.refuses(self.appended):
            self.under_way_bytes += len(batch.payload)
            return asyncio.ensure_future(self._append(batch, epoch))
        refused: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        refused.set_exception(ValueError("not this one"))
        refused.exception()
        return refused

    async def _append(self, batch: Batch, epoch: int | None) -> Appended:
        await self.answers.wait()
        self.under_way_bytes -= len(batch.payload)
        return await self._engine.append(batch, epoch)

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)

    def has_replica(self, queue: ReplicatedQueue) -> bool:
        del queue
        return True

    def owner_of(self, queue: ReplicatedQueue) -> str | None:
        del queue
        return None

    def wake(self, queue: ReplicatedQueue) -> None:
        del queue
        self.woken += 1

    changed = cut_off = forget = release = lambda self, _what: None  # nobody to tell

    @staticmethod
    def now_s() -> float:
        return time.monotonic()

    def put(self, *bodies: str) -> None:
        for body in bodies:
            assert self.store.put(Message(body).encode())

    def bodies(self) -> list[object]:
        return [Message.decode(message).body for message, _ in self.store.peek(100)]


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.001)


def on_an_orb(story: Callable[[Engine], Awaitable[None]]) -> Callable[[], None]:
    """Make a test of a story that needs an engine."""

    async def told() -> None:
        host = OrbHost()
        async with asyncio.timeout(30):
            await story(await host.open("queue", {}))

    def test() -> None:
        asyncio.run(told())

    return test


async def owned(engine: Engine) -> Place:
    place = Place(engine)
    await until(lambda: place.queue._is_current)
    place.queue.claim()
    await until(lambda: place.queue.epoch is not None)
    return place


async def settled(place: Place) -> None:
    """Wait until all that was written is answered."""
    await asyncio.sleep(0)
    await until(lambda: not place.queue._late)


@on_an_orb
async def test_the_next_owner_has_what_the_first_one_had(engine: Engine) -> None:
    first = await owned(engine)
    first.put("1", "2", "3")
    await settled(first)
    second = await owned(engine)
    assert second.bodies() == ["1", "2", "3"]
    assert second.queue.epoch is not None
    assert first.queue.epoch is not None
    assert second.queue.epoch > first.queue.epoch


@on_an_orb
async def test_an_owner_that_was_followed_forgets_what_it_has(engine: Engine) -> None:
    first = await owned(engine)
    first.put("1")
    await settled(first)
    second = await owned(engine)
    first.put("late")
    await until(lambda: first.queue.epoch is None)
    assert first.store.depth == 0
    assert second.bodies() == ["1"]


@on_an_orb
async def test_it_owns_again_what_the_other_one_left(engine: Engine) -> None:
    first = await owned(engine)
    first.put("1")
    await settled(first)
    second = await owned(engine)
    second.put("2")
    await settled(second)
    first.put("late")
    await until(lambda: first.queue.epoch is None)
    await until(lambda: first.queue._is_current)
    first.queue.claim()
    await until(lambda: first.queue.epoch is not None)
    assert first.bodies() == ["1", "2"]


@on_an_orb
async def test_nothing_comes_behind_a_record_that_is_missing(engine: Engine) -> None:
    first = await owned(engine)
    first.put("1")
    await settled(first)
    before = first.appended
    first.refuses = lambda number: number == before + 1
    first.put("2")
    first.journals.commit()
    first.put("3")
    first.journals.commit()
    assert first.appended == before + 1
    await until(lambda: first.queue.epoch is None)
    second = await owned(engine)
    assert second.bodies() == ["1"]


@on_an_orb
async def test_no_burst_is_more_than_the_engine_has_room_for(engine: Engine) -> None:
    """An engine that holds 32 MiB refuses more, and an owner whose record is refused is none."""
    first = await owned(engine)
    await settled(first)
    before = first.appended
    first.refuses = lambda _: first.under_way_bytes > ROOM_BYTES
    first.answers.clear()
    bodies = ["first", "second", *(f"{number:02}" + "x" * MIB for number in range(60))]
    for body in bodies:
        first.put(body)
        first.journals.commit()  # which writes no more while two appends are under way
    assert first.appended - before == 2
    first.answers.set()
    await settled(first)
    assert first.queue.epoch is not None
    assert (await owned(engine)).bodies() == bodies


@on_an_orb
async def test_a_new_account_is_written_however_busy_the_queue_is(engine: Engine) -> None:
    first = await owned(engine)
    await settled(first)
    first.answers.clear()
    for body in ("1", "2"):
        first.put(body)
        first.journals.commit()
    assert first.queue.is_busy
    before = first.appended
    first.journals.renew(first.queue)
    await asyncio.sleep(0.01)
    assert first.appended - before == 3, "where it begins, its one part, and its end"
    first.answers.set()
    await settled(first)
    assert (await owned(engine)).bodies() == ["1", "2"]


@on_an_orb
async def test_who_waits_is_told_whether_what_happened_is_written(engine: Engine) -> None:
    first = await owned(engine)
    await settled(first)
    told: list[bool] = []
    first.put("1")
    first.queue.when_durable(told.append)
    await until(lambda: told)
    assert told == [True]


@on_an_orb
async def test_who_waits_is_told_that_the_next_owner_does_not_have_it(engine: Engine) -> None:
    first = await owned(engine)
    await settled(first)
    await owned(engine)
    told: list[bool] = []
    first.put("fenced")
    first.queue.when_durable(told.append)
    await until(lambda: told)
    assert told == [False]


@on_an_orb
async def test_who_waits_is_told_that_a_record_behind_a_missing_one_is_not_written(
    engine: Engine,
) -> None:
    first = await owned(engine)
    await settled(first)
    before = first.appended
    first.refuses = lambda number: number == before + 1
    told: list[bool] = []
    for body in ("missing", "behind it"):
        first.put(body)
        first.queue.when_durable(told.append)
        first.journals.commit()
    await until(lambda: len(told) == 2)
    assert told == [False, False]


@on_an_orb
async def test_who_waits_is_told_that_what_was_only_noted_is_not_written(engine: Engine) -> None:
    first = await owned(engine)
    await settled(first)
    told: list[bool] = []
    first.put("noted")
    first.queue.when_durable(told.append)
    first.queue.disown("another container owns it")
    await until(lambda: told)
    assert told == [False]


@on_an_orb
async def test_a_new_account_stands_for_what_is_trimmed(engine: Engine) -> None:
    first = await owned(engine)
    first.put(*map(str, range(50)))
    numbers: list[int] = []
    first.store.take_ready(20, numbers)
    first.store.moved(numbers)
    await settled(first)
    first.journals.renew(first.queue)
    await until(lambda: not first.journals._pressed)
    first.put("new")
    await settled(first)
    await until_trimmed(engine)
    second = await owned(engine)
    assert second.bodies() == [*map(str, range(20, 50)), "new"]


async def until_trimmed(engine: Engine) -> None:
    async with asyncio.timeout(30):
        while not (await engine.bounds()).first:
            await asyncio.sleep(0.001)


async def retiring(engine: Engine) -> Place:
    """An owner without a replica, one of whose appends is under way."""
    place = await owned(engine)
    await settled(place)
    place.answers.clear()
    place.put("1")
    await until(lambda: place.queue._late)
    place.queue.attend(10.0, has_replica=False)
    place.queue.tick(place.now_s())
    assert place.queue.journal is not None
    assert not place.queue.journal.is_open
    return place


@on_an_orb
async def test_an_owner_whose_replica_goes_gives_the_queue_up_when_all_is_written(
    engine: Engine,
) -> None:
    first = await retiring(engine)
    first.queue.attend(10.5, has_replica=False)
    assert first.queue.epoch is not None
    first.answers.set()
    await settled(first)
    first.queue.attend(10.6, has_replica=False)
    assert first.queue.epoch is None
    assert first.store.depth == 0
    second = await owned(engine)
    assert second.bodies() == ["1"]


@on_an_orb
async def test_an_owner_whose_replica_goes_does_not_wait_for_ever(engine: Engine) -> None:
    first = await retiring(engine)
    first.queue.attend(11.1, has_replica=False)
    assert first.queue.epoch is None


@on_an_orb
async def test_an_owner_whose_replica_is_back_goes_on(engine: Engine) -> None:
    first = await retiring(engine)
    first.answers.set()
    await settled(first)
    first.queue.attend(10.6, has_replica=True)
    first.queue.tick(first.now_s())
    assert first.queue.epoch is not None
    assert first.queue.journal is not None
    assert first.queue.journal.is_open
    first.put("2")
    await settled(first)
    second = await owned(engine)
    assert second.bodies() == ["1", "2"]


@on_an_orb
async def test_an_owner_is_visited_from_when_it_writes_until_that_is_answered(
    engine: Engine,
) -> None:
    first = await owned(engine)
    await settled(first)
    assert not first.queue.goes_by_time
    first.answers.clear()
    woken = first.woken
    first.put("1")
    await until(lambda: first.queue._late)
    assert first.woken > woken
    assert first.queue.goes_by_time
    first.answers.set()
    await settled(first)
    assert not first.queue.goes_by_time


@on_an_orb
async def test_an_owner_whose_replica_goes_is_visited_until_it_is_none(engine: Engine) -> None:
    first = await owned(engine)
    await settled(first)
    first.queue.attend(10.0, has_replica=False)
    assert first.queue.goes_by_time
    first.queue.attend(10.1, has_replica=False)
    assert first.queue.epoch is None
    assert not first.queue.goes_by_time


@on_an_orb
async def test_who_gets_a_replica_again_sums_the_records_up_from_the_beginning(
    engine: Engine,
) -> None:
    first, second = Place(engine), await owned(engine)
    await until(lambda: first.queue._is_current)
    first.queue.attend(1.0, has_replica=False)
    first.queue.claim()
    assert not first.queue._is_claiming, "nobody owns it without a replica"
    second.put("1")
    await settled(second)
    first.queue.attend(2.0, has_replica=True)
    await until(lambda: first.queue._is_current)
    first.queue.claim()
    await until(lambda: first.queue.epoch is not None)
    assert first.bodies() == ["1"]


@on_an_orb
async def test_it_is_opened_however_that_failed_at_first(engine: Engine) -> None:
    place = Place(engine)
    place.failures = [Busy("as much waits as may"), OSError(errno.EMFILE, "too many open files")]
    await until(lambda: place.queue._is_current)
    assert place.queue.problem is None


@on_an_orb
async def test_whatever_ends_the_following_it_begins_again(engine: Engine) -> None:
    place = Place(engine)
    problems: list[str | None] = []

    def subscribe(start: Start) -> Subscription:
        problems.append(place.queue.problem)
        if len(problems) < 3:
            raise RuntimeError("broken")
        return engine.subscribe(start)

    place.subscribe = subscribe  # type: ignore[attr-defined]  # in place of the engine's
    await until(lambda: place.queue._is_current)
    assert problems[0] is None
    assert problems[1:] == ["cannot follow its log: broken"] * 2
    assert place.queue.problem is None


@on_an_orb
async def test_an_owner_that_cannot_have_the_items_is_none(engine: Engine) -> None:
    first = await owned(engine)
    first.put("1")
    await settled(first)
    second = Place(engine)
    await until(lambda: second.queue._is_current)
    with patch.object(durable_queue, "restore", side_effect=MemoryError("no room")):
        second.queue.claim()
        await until(lambda: second.queue.problem)
    assert second.queue.epoch is None
    await until(lambda: second.queue._is_current)
    second.queue.claim()
    await until(lambda: second.queue.epoch is not None)
    assert second.bodies() == ["1"]


@on_an_orb
async def test_whatever_is_wrong_with_a_claim_it_is_made_again(engine: Engine) -> None:
    place = Place(engine)
    await until(lambda: place.queue._is_current)
    with patch.object(engine, "fence", side_effect=RuntimeError("broken")):
        place.queue.claim()
        await until(lambda: place.queue.problem)
    assert place.queue.problem == "cannot take it over: RuntimeError('broken')"
    place.queue.claim()
    await until(lambda: place.queue.epoch is not None)
    assert place.queue.problem is None


@on_an_orb
async def test_a_claim_stands_for_who_began_to_follow_again_meanwhile(engine: Engine) -> None:
    place = Place(engine)
    await until(lambda: place.queue._is_current)
    may_fence = asyncio.Event()

    async def fence() -> int:
        await may_fence.wait()
        return await engine.fence()

    place.fence = fence  # type: ignore[attr-defined]  # in place of the engine's
    place.queue.claim()
    await asyncio.sleep(0)
    place.queue.attend(1.0, has_replica=False)
    place.queue.attend(2.0, has_replica=True)
    await until(lambda: place.queue._is_current)
    may_fence.set()
    await until(lambda: place.queue.epoch is not None)
