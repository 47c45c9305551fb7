"""What a replica has to know before it begins again in a directory that has forgotten its past.

Theory of operation. A member that has lost its disk may have voted, and may have had entries that
were committed with its help. It may elect and commit again once it has all that. How far that goes
the others know: whoever it voted for is in that term or a later one, and any majority that it
helped to make has a member among a majority of the others. So all others that remember are asked,
and have to be a majority of the voters without it. It begins in the term after the latest that they
know, and helps nobody before its log has an entry of that term or a later one: the leader of such a
term was elected without it and has all that was committed, and a log that has come so far has it,
too. Those that have forgotten as well are passed over; where nobody has anything, there is no past.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cogwork.plugin.engine.errors import ConsensusError, NotAMember, Unavailable
from cogwork.replication.calls import FloorIs, GetFloor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.replication.service import RaftService
    from cogwork.replication.stream import Stream

__all__ = ("floor_of",)

ANSWER_TIMEOUT_S = 0.5


async def floor_of(service: RaftService, stream: Stream) -> tuple[int, int] | None:
    """Return the floor of a replica that begins again; None where the stream has no past.

    Args:
        service: Asks the others.
        stream: Which one.

    Raises:
        NotAMember: It was never moved here, and those that hold it do not count this container.
        Unavailable: One does not answer, or too many have forgotten; the text says which.
    """
    placement = stream.placement
    names = {*placement.holders, *placement.founders} - {service.own}
    answers = await _ask(service, stream, names)
    voters = {voter for each in answers.values() for voter in each.voters} or {*placement.voters}
    answers |= await _ask(service, stream, voters - names - {service.own})
    # What was never moved is held by its members, and they know who they are.
    is_told = any(each.voters for each in answers.values()) and not placement.move
    if is_told and service.own not in voters:
        raise NotAMember(sorted(voters))
    missing = sorted((voters if is_told else names | voters) - answers.keys() - {service.own})
    if missing:
        raise Unavailable(
            f"this container has an empty data directory, and joins {stream.name} once all that "
            f"hold it have said how far it is: no answer comes from {', '.join(missing)}"
        )
    told = {name: each for name, each in answers.items() if not each.has_forgotten}
    if not any(each.last_index for each in told.values()):
        return None
    if service.own in voters and 2 * len(voters & told.keys()) <= len(voters):
        lost = ", ".join(sorted({*answers} - told.keys()))
        raise Unavailable(
            f"{lost} and this container have lost their replicas of {stream.name}, which are a "
            "majority of it: bring one of their disks back, or see `cogwork cluster recover`"
        )
    return max(each.term for each in told.values()) + 1, 0


async def _ask(service: RaftService, stream: Stream, names: Iterable[str]) -> dict[str, FloorIs]:
    asked = sorted(names)
    found = await asyncio.gather(*(_ask_one(service, stream, each) for each in asked))
    return {name: each for name, each in zip(asked, found, strict=True) if each is not None}


async def _ask_one(service: RaftService, stream: Stream, name: str) -> FloorIs | None:
    try:
        return await service.ask(name, GetFloor, FloorIs, stream.key, ANSWER_TIMEOUT_S)
    except ConsensusError:
        return None
