"""Other replicas."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.plugin.conformance.engines.kit import Kit
from cogwork.plugin.conformance.engines.trial import PRODUCER, promise

if TYPE_CHECKING:
    from cogwork.plugin.conformance.engines.trial import Trial

__all__ = ("MemberTests",)

PAUSE_S = 0.01


class MemberTests(Kit):
    """Other replicas."""

    @promise(needs="changes_members")
    async def test_others_hold_the_replicas_and_nobody_notices(self, trial: Trial) -> None:
        """Fewer, others that were away meanwhile, in another order, and some that only follow."""
        voters = (await trial.engine.members()).voters
        reader = await trial.reader().catch_up()
        fewer = voters[:-1] or voters
        spare = voters[len(fewer) :]
        changes = ((fewer, ()), (fewer, ()), (spare + fewer[1:], ()), (fewer, spare), (voters, ()))
        for number, (wanted, learners) in enumerate(changes):
            await trial.append(b"before %d" % number, producer=PRODUCER, sequence=2 * number)
            await trial.engine.change_members(wanted, learners)
            await told(trial, wanted, learners)
            await trial.append(b"after %d" % number, producer=PRODUCER, sequence=2 * number + 1)
        again = await trial.append(b"after 4", producer=PRODUCER, sequence=9)
        assert again.is_repeated
        assert len(await trial.records()) == 2 * len(changes)
        assert await reader.read_to(2 * len(changes)) == await trial.records()


async def told(trial: Trial, voters: tuple[str, ...], learners: tuple[str, ...]) -> None:
    """Wait until whoever is asked knows of the replicas."""
    members = await trial.engine.members()
    while (members.voters, members.learners) != (voters, learners):
        await asyncio.sleep(PAUSE_S)
        members = await trial.engine.members()
