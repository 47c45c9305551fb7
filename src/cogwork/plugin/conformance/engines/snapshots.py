"""Snapshots of applications."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.plugin.conformance.engines.kit import Kit
from cogwork.plugin.conformance.engines.trial import Raises, promise
from cogwork.plugin.engine.contract import Origin, Snapshot
from cogwork.plugin.engine.errors import BeyondEnd, Truncated

if TYPE_CHECKING:
    from cogwork.plugin.conformance.engines.trial import Trial

__all__ = ("SnapshotTests",)


class SnapshotTests(Kit):
    """Snapshots of applications."""

    @promise(needs="keeps_snapshots")
    async def test_a_snapshot_comes_before_what_follows_it(self, trial: Trial) -> None:
        """The newest one, also after the stream was closed and opened again."""
        assert await trial.engine.load_snapshot() is None
        await trial.append(b"a", b"b", b"c")
        for snapshot in (Snapshot(1, b"one"), Snapshot(2, bytes(range(256)) * 400)):
            await trial.engine.save_snapshot(snapshot)
            assert await trial.engine.load_snapshot() == snapshot
        await trial.restart()
        assert await trial.engine.load_snapshot() == snapshot
        reader = await trial.reader(Origin.SNAPSHOT).catch_up()
        assert (reader.snapshot, reader.records) == (snapshot, [(2, b"c")])
        await trial.append(b"d")
        await reader.read_to(4)
        assert (await trial.reader(Origin.FIRST).catch_up()).snapshot is None
        with Raises(BeyondEnd):
            await trial.engine.save_snapshot(Snapshot(5, b"of the future"))

    @promise(needs="keeps_snapshots")
    async def test_nobody_could_go_on_from_a_snapshot_below_the_first_record(
        self, trial: Trial
    ) -> None:
        """So it is refused, and the one that is there stays."""
        if not trial.engine.capabilities.trims:
            return
        count = self.records_to_trim
        await trial.fill(count, size_bytes=1024)
        await trial.engine.trim(count)
        first = (await trial.engine.bounds()).first
        with Raises(Truncated) as caught:
            await trial.engine.save_snapshot(Snapshot(first - 1, b"too late"))
        assert caught.found.first == first
        assert await trial.engine.load_snapshot() is None
        await trial.engine.save_snapshot(Snapshot(first, b"in time"))
        assert await trial.engine.load_snapshot() == Snapshot(first, b"in time")
