"""Snapshots of applications."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.consensus.conformance.kit import Kit
from cogwork.consensus.conformance.trial import Raises, promise
from cogwork.consensus.engine import Origin, Snapshot
from cogwork.consensus.errors import BeyondEnd

if TYPE_CHECKING:
    from cogwork.consensus.conformance.trial import Trial

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
