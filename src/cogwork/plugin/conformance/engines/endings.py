"""Closing, deleting, and what is not declared."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.plugin.conformance.engines.kit import Kit
from cogwork.plugin.conformance.engines.trial import PRODUCER, Raises, promise, refuses
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import Appended, Bounds, FromTime, Snapshot
from cogwork.plugin.engine.errors import Unavailable, Unknown

if TYPE_CHECKING:
    from cogwork.plugin.conformance.engines.trial import Trial

__all__ = ("EndingTests",)


class EndingTests(Kit):
    """Closing, deleting, and what is not declared."""

    @promise
    async def test_closing_loses_nothing_that_was_answered(self, trial: Trial) -> None:
        """Appends under way are answered or not; whoever is left over is told."""
        reader = await trial.reader().catch_up()
        waiting = asyncio.ensure_future(reader.read_to(1000))
        batches = [Batch.of([b"%d" % i]) for i in range(20)]
        calls = [asyncio.ensure_future(trial.engine.append(each)) for each in batches]
        await asyncio.sleep(0)
        closed = trial.engine
        await trial.restart()
        answers = await asyncio.gather(*calls, return_exceptions=True)
        found = dict(await trial.records())
        assert sorted(found) == list(range(len(found)))
        assert set(found.values()) <= {b"%d" % i for i in range(20)}
        assert len(set(found.values())) == len(found)
        for i, answer in enumerate(answers):
            if isinstance(answer, Appended):
                assert answer.first_offset is not None
                assert found[answer.first_offset] == b"%d" % i
            else:
                assert isinstance(answer, Unknown | Unavailable)
        with Raises(Unavailable):
            await waiting
        with Raises(Unavailable):
            await closed.append(Batch.of([b"late"]))
        with Raises(Unavailable):
            await closed.read(0)

    @promise
    async def test_what_is_deleted_is_gone(self, trial: Trial) -> None:
        """A stream of the same name begins anew, and knows no producer."""
        await trial.append(b"old", producer=PRODUCER)
        await trial.host.delete(trial.name)
        with Raises(Unavailable):
            await trial.engine.append(Batch.of([b"ghost"]))
        await trial.begin()
        assert await trial.engine.bounds() == Bounds(0, 0)
        assert (await trial.append(b"new", producer=PRODUCER)).first_offset == 0
        assert await trial.records() == [(0, b"new")]
        if trial.engine.capabilities.keeps_snapshots:
            assert await trial.engine.load_snapshot() is None
        await trial.host.delete(f"{trial.name}-never-there")

    @promise
    async def test_it_tells_who_holds_replicas(self, trial: Trial) -> None:
        """At least one, and the leader is one of them."""
        members = await trial.engine.members()
        assert members.voters
        assert members.leader in (None, *members.voters)

    @promise(lacks="fences")
    async def test_it_refuses_to_fence_where_it_cannot(self, trial: Trial) -> None:
        """Instead of leaving an old writer unfenced."""
        await refuses(trial.engine.fence)

    @promise(lacks="trims")
    async def test_it_refuses_to_trim_where_it_cannot(self, trial: Trial) -> None:
        """Instead of keeping everything."""
        await refuses(lambda: trial.engine.trim(0))

    @promise(lacks="seeks_time")
    async def test_it_refuses_times_where_it_has_none(self, trial: Trial) -> None:
        """Instead of starting somewhere."""
        await refuses(lambda: trial.engine.offset_at(0))
        await refuses(lambda: trial.reader(FromTime(0)).step())

    @promise(lacks="keeps_snapshots")
    async def test_it_refuses_snapshots_where_it_keeps_none(self, trial: Trial) -> None:
        """Instead of losing them."""
        await refuses(lambda: trial.engine.save_snapshot(Snapshot(0, b"")))

    @promise(lacks="changes_members")
    async def test_it_refuses_other_members_where_it_cannot(self, trial: Trial) -> None:
        """Instead of leaving them where they are."""
        await refuses(lambda: trial.engine.change_members(["elsewhere"]))
