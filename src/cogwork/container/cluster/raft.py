"""The engine `raft` in a container: streams that the cluster knows, on replicas that it names."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from cogwork.cluster.declarations import replicas_of
from cogwork.container.cluster.cluster import STREAM as CLUSTER
from cogwork.container.cluster.moves import Moves
from cogwork.container.vhost.engines import RAFT
from cogwork.plugin.engine.errors import Unavailable, Unknown
from cogwork.plugin.engine.placement import Placement
from cogwork.plugin.engine.retention import RETENTION_OPTIONS, Retention
from cogwork.raft.membership import Membership
from cogwork.replication.engine import CAPABILITIES
from cogwork.replication.outside import RaftOutside

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cogwork.cluster.declarations import Declaration, Value
    from cogwork.container.cluster.cluster import Cluster
    from cogwork.plugin.engine.capabilities import Capabilities
    from cogwork.replication.engine import RaftEngine
    from cogwork.replication.service import RaftService

__all__ = (
    "FIRST_GROUP",
    "KIND",
    "QUEUES",
    "ClusteredRaft",
    "is_replicated",
    "open_declared",
    "placement_of",
    "split_name",
    "stream_name",
)

FIRST_GROUP = 16
"""A declared stream's group is this and its declaration's number."""

KIND = "stream"
"""What streams are in the cluster's declarations."""

OPTIONS = ("capture", *RETENTION_OPTIONS, *RaftOutside.stream_options)
"""What the declaration of a stream may say."""

QUEUES = "queue "
RESERVED = (QUEUES, "orb ")
"""What replicas know the records of queues by, and streams in a container's memory, begins so."""

CURRENT_TIMEOUT_S = 5.0
"""So long a stream that is opened waits for what is declared."""


def stream_name(kind: str, vhost: str, name: str) -> str:
    """Return what replicas know something declared by: streams, and the records of queues."""
    prefix = "" if kind == KIND else f"{kind} "
    return f"{prefix}{vhost}:{name}" if vhost else f"{prefix}{name}"


def split_name(stream: str) -> tuple[str, str]:
    """Split what engines know a stream by: virtual host and name."""
    vhost, colon, name = stream.rpartition(":")
    return (vhost, name) if colon else ("", stream)


def is_replicated(declaration: Declaration) -> bool:
    """Return whether something declared is on replicas: a stream may be on another engine."""
    return declaration.kind != KIND or declaration.options.get("engine", RAFT) == RAFT


def placement_of(cluster: Cluster, declaration: Declaration) -> Placement:
    """Return who is to hold the stream of something declared, and who may."""
    moved = cluster.declarations.placement(declaration)
    first = replicas_of(declaration, cluster.voters)
    return Placement(first, founders=first) if moved is None else moved


async def open_declared(
    cluster: Cluster,
    service: RaftService,
    kind: str,
    name: tuple[str, str],
    options: Mapping[str, object],
    *,
    defaults: Mapping[str, Value] | None = None,
) -> RaftEngine:
    """Open the stream of something declared; declare it where it is new.

    Args:
        cluster: Knows the declarations.
        service: Has the replicas.
        kind: What it is.
        name: Its virtual host, and its name there.
        options: The declaration's.
        defaults: What an option is that an older declaration does not have.

    Raises:
        Unavailable: The cluster has no majority.
        ValueError: It is declared with other options, or one is wrong.
    """
    values = cast("Mapping[str, Value]", options)
    # What is declared and cannot be had would be in the way of whoever gives the right options.
    _check_replicas(options.get("replicas"))
    Retention.of(options)
    try:
        # What is known before may be long ago: a replica that was given up would come again.
        async with asyncio.timeout(CURRENT_TIMEOUT_S):
            await cluster.when_current()
        _check_distinct(cluster, kind, name)
        declaration = await cluster.declare(kind, *name, values, defaults)
    except TimeoutError:
        raise Unavailable("what is declared is not known yet") from None
    except Unknown as error:
        # To declare the same once more changes nothing.
        raise Unavailable(f"the cluster does not answer: {error.reason}") from error
    group = FIRST_GROUP + declaration.number
    there = service.streams.get(stream_name(kind, *name))
    if there is not None and there.number != group:
        raise ValueError(f"{stream_name(kind, *name)!r:.200} is something else of the cluster's")
    made: dict[str, object] = {
        "group": group,
        "replicas": placement_of(cluster, declaration),
        **{option: options[option] for option in RETENTION_OPTIONS if option in options},
    }
    return await service.open(stream_name(kind, *name), made)


def _check_distinct(cluster: Cluster, kind: str, name: tuple[str, str]) -> None:
    """Refuse what replicas could not tell from something of another virtual host."""
    text = stream_name(KIND, *name)
    splits = ((text[:at], text[at + 1 :]) for at, each in enumerate(text) if at and each == ":")
    for vhost, address in (("", text), *splits):
        if (vhost, address) != name and cluster.declarations.find(kind, vhost, address) is not None:
            raise ValueError(
                f"{name[1]!r:.200} of virtual host {name[0]!r} would be {text!r:.200} to the "
                f"replicas, which is {address!r:.200} of virtual host {vhost!r}: give it another "
                "name"
            )


def _check_name(stream: str) -> None:
    """Refuse what would be the cluster's own stream, or the records of a queue.

    Whoever may use streams could read there what is said to queues, and declare anything.

    Raises:
        ValueError: The text says what is wrong.
    """
    if stream == CLUSTER or stream.startswith(RESERVED):
        raise ValueError(
            f"{stream!r:.200} is the cluster's own: a stream on the engine raft is not called "
            f"{CLUSTER}, and its name does not begin with 'queue' or 'orb' and a blank"
        )


def _check_replicas(named: object) -> None:
    """Refuse replicas that no group can have.

    Raises:
        ValueError: The text says what is wrong.
    """
    if named is None:
        return
    if not isinstance(named, list | tuple):
        raise ValueError(f"replicas is a list of containers, not {named!r:.80}")
    if named:
        Membership(tuple(str(each) for each in named)).check()


class ClusteredRaft:
    """The host of the engine `raft`, as the container's nodes see it.

    Attributes:
        moves: Has others hold what is declared.
    """

    def __init__(self, cluster: Cluster, service: RaftService) -> None:
        """Initialize it with a cluster.

        Args:
            cluster: Knows the declarations.
            service: Has the replicas.
        """
        self._cluster = cluster
        self._service = service
        self.moves = service.cluster = Moves(
            cluster,
            service,
            FIRST_GROUP,
            lambda each: placement_of(cluster, each),
            lambda each: stream_name(each.kind, each.vhost, each.name),
        )

    @property
    def capabilities(self) -> Capabilities:
        """What the streams declare."""
        return CAPABILITIES

    async def open(self, stream: str, options: Mapping[str, object]) -> RaftEngine:
        """Open a stream; declare it where it is new.

        Args:
            stream: Its name, behind its virtual host's and a colon where it has one.
            options: The declaration's.

        Raises:
            Unavailable: The cluster has no majority.
            ValueError: It is declared with other options, or one is wrong.
        """
        for option in options:
            if option not in OPTIONS:
                known = ", ".join(OPTIONS)
                raise ValueError(
                    f"a stream on the engine raft has no option {option!r}, but {known}"
                )
        _check_name(stream)
        name = split_name(stream)
        return await open_declared(self._cluster, self._service, KIND, name, options)

    def placement(self, stream: str) -> Placement | None:
        """Return who is to hold a stream, and may; None where there is none."""
        declaration = self._cluster.declarations.find(KIND, *split_name(stream))
        return None if declaration is None else placement_of(self._cluster, declaration)

    async def move(self, stream: str, voters: Sequence[str], learners: Sequence[str] = ()) -> None:
        """Declare that others are to hold a stream; return before they do.

        Args:
            stream: Its name.
            voters: Who is to hold it, in order of leader priority.
            learners: Who is to have a copy that counts for nothing.

        Raises:
            Unavailable: The cluster has no majority, or a container cannot be asked.
            ValueError: There is no such stream, or these cannot hold it.
        """
        declaration = await self._cluster.find(KIND, *split_name(stream))
        if declaration is None:
            raise ValueError(f"there is no stream {stream!r:.200} on replicas")
        await self.moves.move(declaration, voters, learners)

    async def delete(self, stream: str) -> None:
        """Give up a stream, here and everywhere."""
        await self._cluster.delete(KIND, *split_name(stream))

    async def close(self) -> None:
        """Let go of all streams."""
        self.moves.close()
        await self._cluster.close()
        await self._service.close()
