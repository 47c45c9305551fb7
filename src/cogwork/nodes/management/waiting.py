"""What operations on streams and replicated queues share: waiting, and who is to hold replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from cogwork.consensus.errors import ConsensusError, Unavailable
from cogwork.spi.management import BAD_REQUEST, ManagementError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator

    from cogwork.nodes.management.request import Request
    from cogwork.spi.management import ContainerView, ManagedStream

__all__ = ("UNAVAILABLE", "finished", "members_of")

T = TypeVar("T")

UNAVAILABLE = 503

AWAY_TICKS = 50
"""How long a reply waits for an engine that is away: some five seconds, and then says so."""


def members_of(request: Request) -> tuple[list[str], list[str]]:
    """Reads `replicas`, and `learners` that only follow.

    Raises:
        ManagementError: There are no replicas, or one of them is no list of names.
    """
    voters, learners = request.names("replicas"), request.names("learners")
    if not voters:
        wanted = f"{request.operation} needs replicas, a list of containers"
        raise ManagementError(BAD_REQUEST, wanted)
    return voters, learners


def finished(
    container: ContainerView, work: Awaitable[T], stream: ManagedStream | None = None
) -> Generator[bool, None, T]:
    """Waits for something, and returns what comes of it.

    Args:
        container: Has it done.
        work: What is to be done.
        stream: Whose engine it is up to, if any: it may be away.

    Raises:
        ManagementError: The engine cannot do it, or not now.
    """
    pending = container.begin(work)
    ticks = 0
    while not pending.done():
        ticks = ticks + 1 if stream is not None and stream.state == "away" else 0
        if stream is not None and ticks > AWAY_TICKS:
            raise ManagementError(UNAVAILABLE, f"the stream is {stream.problem}")
        yield False
    try:
        return pending.result()
    except Unavailable as error:
        raise ManagementError(UNAVAILABLE, str(error)) from error
    except (ConsensusError, ValueError) as error:
        raise ManagementError(BAD_REQUEST, str(error)) from error
