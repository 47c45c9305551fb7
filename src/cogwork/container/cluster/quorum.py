"""Whether the cluster's voters can decide anything now, and who is missing where they cannot."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.consensus.errors import ConsensusError, Unavailable
from cogwork.consensus.replicated.calls import GetMembers, MembersAre

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.consensus.replicated.calls import StreamKey
    from cogwork.consensus.replicated.engine import RaftEngine
    from cogwork.consensus.replicated.service import RaftService

__all__ = ("demand_majority", "whom_it_lacks")

MAJORITY_TIMEOUT_S = 4.0
"""So long a majority is waited for: several elections."""

ANSWER_TIMEOUT_S = 0.5


async def demand_majority(
    service: RaftService, engine: RaftEngine, stream: StreamKey, voters: Sequence[str]
) -> None:
    """Waits until a majority answers: a leader that has just lost it does not know that yet.

    Args:
        service: Carries the questions.
        engine: Has the stream open.
        stream: Which it is.
        voters: Who holds it.

    Raises:
        Unavailable: None does; the text says which of the voters are missing.
    """
    try:
        async with asyncio.timeout(MAJORITY_TIMEOUT_S):
            await engine.bounds()  # which are no older than any answer: a majority is asked
    except (TimeoutError, Unavailable):
        raise Unavailable(await whom_it_lacks(service, stream, voters)) from None


async def whom_it_lacks(service: RaftService, stream: StreamKey, voters: Sequence[str]) -> str:
    """Says what is to be done where no majority answers, and which of the voters do not."""

    async def answers(voter: str) -> bool:
        try:
            await service.ask(voter, GetMembers, MembersAre, stream, ANSWER_TIMEOUT_S)
        except ConsensusError:
            return False
        return True

    found = await asyncio.gather(*map(answers, voters))
    missing = [voter for voter, is_there in zip(voters, found, strict=True) if not is_there]
    silent = f", and no answer comes from {', '.join(missing)}" if missing else ""
    return f"a majority of {', '.join(voters)} has to be up and linked{silent}"
