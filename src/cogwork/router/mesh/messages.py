"""The messages between neighbours: described lists with a symbolic descriptor (AMQP 1.0 §1.4).

A class states its fields once, with kind and default, as the performatives do; `wire` turns
messages into bytes and back. Every length is bounded where it is decoded.
"""

from __future__ import annotations

import dataclasses
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, TypeVar, dataclass_transform
from zlib import crc32

from cogwork.amqp.composite import Composite, Field, field
from cogwork.amqp.types import Symbol
from cogwork.router.mesh import kinds

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = (
    "MESSAGES",
    "Acknowledgement",
    "Advertisement",
    "Figures",
    "Hello",
    "Interest",
    "InterestDelta",
    "InterestKey",
    "InterestKind",
    "InterestRequest",
    "InterestSnapshot",
    "Message",
    "RedirectHint",
    "Summary",
    "Version",
)

T = TypeVar("T", bound=Composite)

MESSAGES: dict[Symbol, type[Composite]] = {}
"""Message classes by their descriptor."""


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def _message(name: str) -> Callable[[type[T]], type[T]]:
    """Make a slotted class with table and registry entry of a declaration."""

    def decorate(declaration: type[T]) -> type[T]:
        made = dataclasses.dataclass(slots=True, kw_only=True, repr=False)(declaration)
        made.DESCRIPTOR = Symbol(f"cogwork:{name}")  # type: ignore[assignment]  # not AMQP's own
        made.NAME = name
        made.TABLE = tuple(
            Field(row.name, row.metadata["kind"], row.default) for row in dataclasses.fields(made)
        )
        MESSAGES[Symbol(f"cogwork:{name}")] = made
        return made

    return decorate


class Figures(NamedTuple):
    """What a container says of itself.

    Attributes:
        connections: Of clients.
        messages: Held in its queues.
        memory_bytes: Allocated.
        queues: How many it has.
        peers: Neighbours that it is linked with.
    """

    connections: int = 0
    messages: int = 0
    memory_bytes: int = 0
    queues: int = 0
    peers: int = 0


class InterestKind(IntEnum):
    """What an interest is in."""

    TOPIC = 0
    """A pattern of a multicast address; every container that has it gets a copy."""
    ANYCAST = 1
    """An address with consumers or producers."""
    QUEUE = 2
    """A shard of a queue, with its consumers and its backlog."""
    PARTITIONS = 3
    """A queue whose messages go to the owners of its partitions."""
    OWNER = 4
    """A replicated queue whose items are here, since the epoch that `consumers` says."""
    DISK = 5
    """A queue whose items are kept on disk here, or would be if it were here."""
    CLAIM = 6
    """An address that one receiver here has for itself."""


InterestKey = tuple[int, str, str]
"""Kind, virtual host and address: what an interest is in, without its figures."""


class Interest(NamedTuple):
    """What a container wants or has.

    Attributes:
        kind: One of `InterestKind`.
        virtual_host: Whose address it is.
        address: The address, or the pattern of a topic.
        consumers: `ANYCAST`: 1 where there are any; `QUEUE`: how many, roughly; `PARTITIONS`: how
            many partitions there are; `DISK`: 1 where it is here; `CLAIM`: 1 for a first
            claim, more where its session has had the address before.
        producers: `ANYCAST`: 1 where there are any; `PARTITIONS`: those that it holds, as bits;
            `DISK`: 1 where it would be on disk; `CLAIM`: the upper half of its session's digest.
        backlog: `QUEUE`: items that wait, roughly; `CLAIM`: the lower half.
    """

    kind: int
    virtual_host: str
    address: str
    consumers: int = 0
    producers: int = 0
    backlog: int = 0

    @property
    def key(self) -> InterestKey:
        """What it is in, without its figures."""
        return self[:3]

    @property
    def size_bytes(self) -> int:
        """What it counts for against `INTEREST_BYTES_MAX`."""
        return len(self.virtual_host.encode()) + len(self.address.encode())

    def digest(self, label: int) -> int:
        """Return a checksum of the entry; those of a whole table are joined by exclusive or."""
        numbers = f"{label} {int(self.kind)} {self.consumers} {self.producers} {self.backlog}"
        return crc32(f"{numbers}\0{self.virtual_host}\0{self.address}".encode())


class Version(NamedTuple):
    """What somebody knows of one container.

    Attributes:
        origin: The container.
        incarnation: Its incarnation.
        sequence: Its advertisement's sequence.
        content: A checksum of the advertisement.
        interest: Its interests' sequence.
        digest: Of these interests.
    """

    origin: str
    incarnation: int
    sequence: int = 0
    content: int = 0
    interest: int = 0
    digest: int = 0

    def checksum(self) -> int:
        """Return a checksum of it; those of all containers are joined by exclusive or."""
        return crc32(" ".join(map(str, self)).encode())


@_message("hello")
class Hello(Composite):
    """I am here, and I hear you.

    Attributes:
        id: The sender's container id.
        incarnation: The sender's life: higher after each start.
        version: Of the protocol; another one is refused.
        virtual_hosts: The sender's, sorted; other ones are refused.
        heard: The incarnation of the receiver whose hello came last on this connection; 0 for none.
        interval_ms: Until the next hello.
        connection: The number that the dialler gave to this connection; 0 from the other end.
        cost: Of this link as the sender's configuration has it; 0 for no opinion.
        digest: Of all that the sender knows of the mesh: neighbours compare.
        figures: What the sender says of itself.
        cluster: The UUID of the sender's cluster; empty for none. Other ones are refused.
        cluster_name: What that is called; empty if it has no name. Other names are refused.
    """

    id: str = field(kinds.CONTAINER)
    incarnation: int = field(kinds.INCARNATION)
    version: int = field(kinds.UINT)
    virtual_hosts: tuple[str, ...] = field(kinds.VIRTUAL_HOSTS)
    heard: int = field(kinds.ULONG, default=0)
    interval_ms: int = field(kinds.UINT)
    connection: int = field(kinds.ULONG, default=0)
    cost: int = field(kinds.COST_OR_NONE, default=0)
    digest: int = field(kinds.UINT, default=0)
    figures: Figures = field(kinds.tuples("figures", Figures, kinds.ULONG), default=Figures())
    cluster: str = field(kinds.CLUSTER_OR_NONE, default="")
    cluster_name: str = field(kinds.CLUSTER_OR_NONE, default="")


@_message("advertisement")
class Advertisement(Composite):
    """A container's neighbours, as it sees them; flooded to everybody.

    Attributes:
        origin: The container.
        incarnation: Its incarnation.
        sequence: Newer ones replace older ones.
        age_s: Seconds since the origin sent it.
        neighbours: Ids and costs, sorted by id.
        life: The incarnation that the container began with; 0 where it is still that.
    """

    origin: str = field(kinds.CONTAINER)
    incarnation: int = field(kinds.INCARNATION)
    sequence: int = field(kinds.SEQUENCE)
    age_s: int = field(kinds.UINT, default=0)
    neighbours: tuple[tuple[str, int], ...] = field(kinds.NEIGHBOURS, default=())
    life: int = field(kinds.ULONG, default=0)


@_message("summary")
class Summary(Composite):
    """All that the sender knows, by version: the receiver answers with what is newer.

    Attributes:
        number: For the acknowledgement.
        versions: Of every container.
    """

    number: int = field(kinds.UINT)
    versions: tuple[Version, ...] = field(kinds.versions(Version), default=())


@_message("acknowledgement")
class Acknowledgement(Composite):
    """What has arrived.

    Attributes:
        summary: The number of the last summary; 0 for none.
        advertisements: Versions of advertisements that the sender now has, or has newer ones of.
        interests: Versions of interests that the sender now has.
    """

    summary: int = field(kinds.UINT, default=0)
    advertisements: tuple[Version, ...] = field(kinds.versions(Version), default=())
    interests: tuple[Version, ...] = field(kinds.versions(Version), default=())


@_message("interest-delta")
class InterestDelta(Composite):
    """What changed in a container's interests; flooded to everybody.

    Attributes:
        origin: The container.
        incarnation: Its incarnation.
        sequence: One more than that of the delta or snapshot before.
        digest: Of all entries, with this change.
        removed: Labels of the entries that have gone; applied first.
        added: New and changed entries by their label.
    """

    origin: str = field(kinds.CONTAINER)
    incarnation: int = field(kinds.INCARNATION)
    sequence: int = field(kinds.SEQUENCE)
    digest: int = field(kinds.UINT)
    removed: tuple[int, ...] = field(kinds.LABELS, default=())
    added: tuple[tuple[int, Interest], ...] = field(kinds.interests(Interest), default=())


@_message("interest-request")
class InterestRequest(Composite):
    """A gap: tell me more of this container's interests.

    Attributes:
        origin: The container.
        incarnation: Its incarnation.
        sequence: What the sender has; 0 for nothing, which asks for a snapshot.
    """

    origin: str = field(kinds.CONTAINER)
    incarnation: int = field(kinds.INCARNATION)
    sequence: int = field(kinds.UINT, default=0)


@_message("interest-snapshot")
class InterestSnapshot(Composite):
    """All interests of a container, in parts.

    Attributes:
        origin: The container.
        incarnation: Its incarnation.
        sequence: That of the last delta in it.
        digest: Of all entries.
        part: This part, from 0.
        parts: How many there are.
        entries: By their label.
    """

    origin: str = field(kinds.CONTAINER)
    incarnation: int = field(kinds.INCARNATION)
    sequence: int = field(kinds.SEQUENCE)
    digest: int = field(kinds.UINT)
    part: int = field(kinds.UINT, default=0)
    parts: int = field(kinds.UINT, default=1)
    entries: tuple[tuple[int, Interest], ...] = field(kinds.interests(Interest), default=())


@_message("redirect-hint")
class RedirectHint(Composite):
    """Clients may be sent to me, or may not.

    Attributes:
        hosts: Where clients reach the sender, as URLs, in order; none: send nobody.
    """

    hosts: tuple[str, ...] = field(kinds.HOSTS, default=())


Message = (
    Hello
    | Advertisement
    | Summary
    | Acknowledgement
    | InterestDelta
    | InterestRequest
    | InterestSnapshot
    | RedirectHint
)
