"""Epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.plugin.conformance.engines.kit import Kit
from cogwork.plugin.conformance.engines.trial import Raises, promise
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.errors import Fenced

if TYPE_CHECKING:
    from cogwork.plugin.conformance.engines.trial import Trial

__all__ = ("EpochTests",)


class EpochTests(Kit):
    """Epochs."""

    @promise(needs="fences")
    async def test_an_old_epoch_is_refused_for_ever(self, trial: Trial) -> None:
        """Wherever the new one began; the present one, and none at all, are taken."""
        elsewhere = await trial.open_elsewhere()
        old = (await trial.append(b"before")).epoch
        assert (await trial.engine.append(Batch.of([b"named"]), old)).epoch == old
        new = await elsewhere.fence()
        assert new > old
        for engine in (trial.engine, elsewhere, trial.engine):
            with Raises(Fenced) as caught:
                await engine.append(Batch.of([b"zombie"]), old)
            assert caught.found.epoch == new
        assert (await trial.engine.append(Batch.of([b"after"]), new)).epoch == new
        await trial.restart()
        with Raises(Fenced):
            await trial.engine.append(Batch.of([b"zombie"]), old)
        assert (await trial.append(b"any")).epoch == new
        expected = [b"before", b"named", b"after", b"any"]
        assert [record for _, record in await trial.records()] == expected
