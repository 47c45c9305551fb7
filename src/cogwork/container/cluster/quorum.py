"""Whether the cluster's voters can decide anything now, and who is missing where they cannot."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.plugin.engine.errors import ConsensusError, Unavailable
from cogwork.replication.calls import Bounded, GetBounds, GetMembers, MembersAre
from cogwork.replication.request_handler import NO_REPLICA

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.replication.calls import StreamKey
    from cogwork.replication.engine import RaftEngine
    from cogwork.replication.service import RaftService

__all__ = ("demand_majority", "demand_replicas", "whom_it_lacks")

MAJORITY_TIMEOUT_S = 4.0
"""So long a majority is waited for: several elections."""

ANSWER_TIMEOUT_S = 0.5
PAUSE_S = 0.1

UNCONFIGURED = "a data directory and the same [cluster] primaries are needed there"
BROKEN = "its log says why"
"""What to do about a container that is up and holds no replica of `$cluster`, or of a stream."""


async def demand_majority(
    service: RaftService, engine: RaftEngine, stream: StreamKey, voters: Sequence[str]
) -> None:
    """Wait until a majority answers: a leader that has just lost it does not know that yet.

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


async def demand_replicas(
    service: RaftService, stream: StreamKey, holders: Sequence[str], voters: Sequence[str]
) -> None:
    """Wait until a majority of a stream's replicas answers, whether or not it is open here.

    Args:
        service: Carries the questions.
        stream: Which it is.
        holders: Who may hold a replica, and is asked.
        voters: Who is named where there is no majority.

    Raises:
        Unavailable: None does; the text says which of them are missing.
    """
    deadline_s = service.now_s() + MAJORITY_TIMEOUT_S
    while True:
        asked = (
            service.ask(each, GetBounds, Bounded, stream, ANSWER_TIMEOUT_S) for each in holders
        )
        found = await asyncio.gather(*asked, return_exceptions=True)
        for each in found:
            if isinstance(each, Bounded):  # which a majority has confirmed
                return
            if not isinstance(each, ConsensusError):
                raise each
        if service.now_s() >= deadline_s:
            raise Unavailable(await whom_it_lacks(service, stream, voters, BROKEN))
        await asyncio.sleep(PAUSE_S)


async def whom_it_lacks(
    service: RaftService, stream: StreamKey, voters: Sequence[str], hint: str = UNCONFIGURED
) -> str:
    """Say what keeps voters from deciding anything: who does not answer, or holds no replica.

    Args:
        service: Carries the questions.
        stream: Which it is.
        voters: Who holds it.
        hint: What to do where a container is up without a replica.
    """

    async def problem_of(voter: str) -> str:
        try:
            await service.ask(voter, GetMembers, MembersAre, stream, ANSWER_TIMEOUT_S)
        except ConsensusError as error:
            return str(error)
        return ""

    found = await asyncio.gather(*map(problem_of, voters))
    problems = {voter: why for voter, why in zip(voters, found, strict=True) if why}
    none = str(Unavailable(NO_REPLICA.format(stream.name)))
    without = [voter for voter, why in problems.items() if why == none]
    silent = [voter for voter, why in problems.items() if why != none]
    if service.own in silent:  # it is up: it has answered whoever asks here
        silent.remove(service.own)
    if not silent and not without:
        return f"{', '.join(voters)} {'is' if len(voters) == 1 else 'are'} up, and nobody leads yet"
    told = [f"no answer comes from {', '.join(silent)}"] if silent else []
    if without:
        told.append(
            f"{', '.join(without)} {'is' if len(without) == 1 else 'are'} up without a replica of "
            f"{stream.name}: {hint}"
        )
    return f"a majority of {', '.join(voters)} has to be up and linked, and {', and '.join(told)}"
