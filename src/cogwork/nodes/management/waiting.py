"""What operations on streams and replicated queues share: waiting, and who is to hold replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from cogwork.plugin.engine.errors import ConsensusError, Unavailable, Unknown
from cogwork.plugin.management import BAD_REQUEST, ManagementError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from cogwork.nodes.management.request import Request
    from cogwork.plugin.management import ContainerView, ManagedStream

__all__ = (
    "NOT_KNOWN_YET",
    "OPENING_TICKS",
    "UNAVAILABLE",
    "assured",
    "deleted",
    "finished",
    "known",
    "members_of",
)

T = TypeVar("T")

UNAVAILABLE = 503

NOT_KNOWN_YET = (
    "it is not known here yet what the cluster has declared: "
    "a majority of its voters is to be reached first"
)
"""Of what is not there as far as this container knows."""

OPENING_TICKS = 50
"""How long a reply waits for an engine, or the cluster, to be reached: some five seconds."""

AWAY_TICKS = 50
"""How long a reply waits for an engine that is away: some five seconds, and then says so."""


def members_of(request: Request) -> tuple[list[str], list[str]]:
    """Read `replicas`, and `learners` that only follow.

    Raises:
        ManagementError: There are no replicas, or one of them is no list of names.
    """
    voters, learners = request.names("replicas"), request.names("learners")
    if not voters:
        wanted = f"{request.operation} needs replicas, a list of containers"
        raise ManagementError(BAD_REQUEST, wanted)
    return voters, learners


def known(
    container: ContainerView, is_there: Callable[[], bool] = lambda: False
) -> Generator[bool, None, None]:
    """Wait until it is known what the cluster has declared.

    Args:
        container: Which has to know.
        is_there: Whether what is asked for is here, and nothing more has to be known.

    Raises:
        ManagementError: Neither is the case soon.
    """
    for _ in range(OPENING_TICKS):
        if container.knows_declarations or is_there():
            return
        yield False
    raise ManagementError(UNAVAILABLE, NOT_KNOWN_YET)


def assured(container: ContainerView, name: str) -> Generator[bool, None, None]:
    """Wait until a majority of the cluster answers, which is to declare something.

    Without one it would be here for as long as this container is up, and then perhaps never have
    been.

    Args:
        container: Asks the others, where it has a cluster.
        name: What is to be declared.

    Raises:
        ManagementError: None does; nothing is declared.
    """
    pending = container.begin(container.demand_majority())
    while not pending.done():
        yield False
    try:
        pending.result()
    except ConsensusError as error:
        reason = error.reason if isinstance(error, Unavailable) else str(error)
        text = f"{name!r:.200} is not created: {reason}; create it again later"
        raise ManagementError(UNAVAILABLE, text) from error


def deleted(
    container: ContainerView, name: str, work: Awaitable[bool]
) -> Generator[bool, None, bool]:
    """Wait until something is deleted; return whether it was there.

    Args:
        container: Has it done.
        name: What is to be deleted.
        work: Does that.

    Raises:
        ManagementError: It is there still, or that is not known: the text says which.
    """
    pending = container.begin(work)
    while not pending.done():
        yield False
    try:
        return pending.result()
    except Unavailable as error:
        text = f"{name!r:.200} is not deleted: {error.reason}; delete it again later"
        raise ManagementError(UNAVAILABLE, text) from error
    except Unknown as error:
        text = (
            f"it is not known whether {name!r:.200} is deleted, or will be: {error.reason}; delete "
            "it again once a majority of the cluster is there"
        )
        raise ManagementError(UNAVAILABLE, text) from error
    except (ConsensusError, ValueError) as error:
        raise ManagementError(BAD_REQUEST, str(error)) from error


def finished(
    container: ContainerView, work: Awaitable[T], stream: ManagedStream | None = None
) -> Generator[bool, None, T]:
    """Wait for something, and return what comes of it.

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
