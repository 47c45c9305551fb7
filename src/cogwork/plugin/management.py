"""What the container lets its management node see and change.

Theory of operation. Nodes know nothing of containers, connections and other nodes. The one node
that manages them gets a `ContainerView` with its context: entities of each type as rows of plain
values, and the few things that can be done to them. Rows are made when they are asked for, a page
at a time, so that looking costs nothing where nobody looks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Struct, field

from cogwork.amqp.errors import CogworkError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from cogwork.dataplane.terminus import Terminus
    from cogwork.plugin.engine.contract import Bounds, Engine
    from cogwork.plugin.mesh import MeshView

__all__ = (
    "BACKUP",
    "CONSUMER",
    "LIMIT",
    "LINK",
    "MESH",
    "PERMISSION",
    "POLICY",
    "USER",
    "VHOST",
    "Collection",
    "ContainerView",
    "ExchangeOptions",
    "ManagedBackups",
    "ManagedExchanges",
    "ManagedQueue",
    "ManagedStream",
    "ManagementError",
    "OnOutcome",
    "OnPut",
    "Pending",
    "Report",
    "Requester",
    "Row",
)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Row = dict[str, object]
"""One entity: its attributes by name, as plain values; `name` is what it is asked for by."""

BAD_REQUEST, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT, TOO_MANY, NOT_IMPLEMENTED = (
    400,
    401,
    403,
    404,
    409,
    429,
    501,
)
"""Status codes of replies: those of HTTP, as AMQP Management has them."""


BACKUP = "org.cogwork.backup"

CONSUMER = "org.cogwork.consumer"
"""A consumer that tells where it is, where `link` is one that the container sees."""

LIMIT = "org.cogwork.limit"
POLICY = "org.cogwork.policy"

LINK = "org.cogwork.link"
"""A link between containers, where `link` is one between a client and a node."""

MESH = "org.cogwork.mesh"
PERMISSION = "org.cogwork.permission"
USER = "org.cogwork.user"
VHOST = "org.cogwork.vhost"


class ManagementError(CogworkError):
    """A request that is not carried out.

    Attributes:
        status: The reply's `statusCode`.
        description: What was wrong, and what would be right.
    """

    def __init__(self, status: int, description: str) -> None:
        super().__init__(description)
        self.status = status
        self.description = description


class Requester(Protocol):
    """Who asks: the peer of one connection."""

    @property
    def identity(self) -> str | None:
        """The name it proved; None for an anonymous peer."""

    def may(self, right: str, address: str) -> bool:
        """Return whether it has a right (`send`, `receive`, `manage`) at an address."""

    def is_denied(self, right: str, address: str) -> bool:
        """Return whether a right is denied to it, whatever it may do otherwise."""

    def takes_reply(self, address: str) -> bool:
        """Return whether a reply may go to `address`: its own source, or where it may send.

        False, too, where replies pile up that it does not take.
        """


@dataclass(frozen=True, slots=True)
class Report:
    """What a query that reads elsewhere tells of itself.

    Attributes:
        name: What it is asked for by.
        address: The stream's.
        kind: What it is: `spark`.
        query: Its own name, for people.
        position: The offset of the record that is next.
        end: The stream's next offset, as far as it knows.
        records_per_s: How quickly it reads.
        batch: The number of its last batch.
    """

    name: str
    address: str
    kind: str
    query: str
    position: int
    end: int
    records_per_s: float
    batch: int


class ExchangeOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """What an exchange is declared with.

    Attributes:
        type: `direct`, `fanout`, `topic`, `headers` or one of a plug-in.
        durable: Whether it outlives the container, where there is a data directory.
        auto_delete: Whether it goes with the last binding from it.
        internal: Whether it takes messages from other exchanges alone.
        arguments: What its type heeds, and `alternate-exchange`.
    """

    type: str = "direct"
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: dict[str, object] = field(default_factory=dict)


class ManagedExchanges(Protocol):
    """The exchanges of a virtual host, as management sees them: by their addresses.

    Each of these raises `ManagementError` where it is refused. In a cluster it is awaited: by then
    it is so at all containers that are linked.
    """

    def declare(
        self, address: str, options: ExchangeOptions, requester: Requester
    ) -> bool | Awaitable[bool]:
        """Make an exchange; return False if it was there, and the same."""

    def delete(self, address: str, *, if_unused: bool) -> bool | Awaitable[bool]:
        """Delete an exchange; return False if it was not there."""

    def bind(
        self,
        source: str,
        destination: str,
        key: str,
        arguments: Mapping[str, object],
        requester: Requester,
    ) -> bool | Awaitable[bool]:
        """Bind a queue or an exchange; return False if it was bound so already."""

    def unbind(
        self, source: str, destination: str, key: str, arguments: Mapping[str, object]
    ) -> bool | Awaitable[bool]:
        """Remove a binding; return whether it was there."""


class ManagedBackups(Protocol):
    """Backups of the data directory, as management sees them; one at a time is under way."""

    def rows(self) -> Iterator[Row]:
        """Yield the backup that is under way, if there is one."""

    async def begin(self) -> Row:
        """Keep the data directory as it is now; return what there is to know of it.

        Raises:
            ValueError: There is none, or another backup is under way.
            OSError: Its files cannot be linked.
        """

    def files(self, name: str, index: int, count: int) -> list[list[object]]:
        """Return some files: path, octets to copy, length, and the time of the last change.

        Raises:
            ValueError: There is no such backup.
        """

    async def read(self, name: str, number: int, offset: int, size_bytes: int) -> bytes:
        """Return a part of a file.

        Raises:
            ValueError: There is no such backup or file.
            OSError: It cannot be read.
        """

    def end(self, name: str) -> bool:
        """Let a backup go; return whether there was one."""


class Collection(Protocol):
    """The entities of one type."""

    @property
    def attributes(self) -> Sequence[str]:
        """The names of what a row may hold, in the order in which people read them."""

    def __len__(self) -> int:
        """Count the entities."""

    def rows(
        self, index: int, count: int, sees: Callable[[str], bool] | None = None
    ) -> Iterator[Row]:
        """Yield entities in a stable order.

        Args:
            index: The first one, from 0.
            count: How many at most.
            sees: Tells whether an entity may be shown; None shows all. Only those are counted.
        """

    def find(self, name: str) -> Row | None:
        """Return one entity; None where it is not there."""


class ManagedQueue(Protocol):
    """A queue, as management sees it."""

    def peek(self, count: int, offset: int = 0) -> Sequence[tuple[bytes, Mapping[str, object]]]:
        """Return items, encoded and with facts about each, and leave them where they are.

        Args:
            count: How many at most.
            offset: How many to leave out first.
        """

    def purge(self, count: int) -> int:
        """Drop up to `count` items that no consumer holds; return how many."""

    def take_ready(self, count: int) -> Sequence[tuple[int, bytes]]:
        """Put the first messages that are ready aside; return them, numbered and encoded.

        A queue on disk has them until `moved` says that they have arrived elsewhere.
        """

    def moved(self, number: int) -> None:
        """Give up what was put aside."""

    def put_back(self, number: int) -> None:
        """Have what was put aside back, as the last one."""

    def routed_back(self, message: bytes) -> tuple[str | None, bytes]:
        """Return where a dead letter came from.

        Returns:
            Its address, None where it is no dead letter, and the message without what it says of
            its death.
        """


class Pending(Protocol[T_co]):
    """Something that takes its time."""

    def done(self) -> bool:
        """Return whether it is over."""

    def result(self) -> T_co:
        """Return what came of it, once it is over, or raise."""


class ManagedStream(Protocol):
    """A stream, as management sees it."""

    @property
    def state(self) -> str:
        """Returns `opening`, `open`, `away` or `failed`."""

    @property
    def problem(self) -> str | None:
        """What keeps it from being open; None where nothing does."""

    @property
    def engine(self) -> Engine | None:
        """What keeps it; None until it is open."""

    def trim(self, before: int) -> Awaitable[Bounds]:
        """Give up records below an offset; return what is left.

        Raises:
            ConsensusError: That cannot be done, or not now.
        """

    def move(self, voters: Sequence[str], learners: Sequence[str]) -> Awaitable[None]:
        """Declare that others are to hold the stream; return before they do.

        Args:
            voters: Who is to hold it, in order of leader priority.
            learners: Who is to have a copy that counts for nothing.

        Raises:
            ConsensusError: That cannot be done, or not now.
            ValueError: These cannot hold it.
        """


class ContainerView(Protocol):
    """The container, as the management node of one virtual host sees it.

    Attributes:
        on_done: Called whenever something is done that was begun.
    """

    on_done: Callable[[], object]

    @property
    def collections(self) -> Mapping[str, Collection]:
        """The entities by type: container, connection, session, link, address, queue, stream, node.

        And exchange, binding and `org.cogwork.consumer`; the default virtual host's has
        `org.cogwork.link` and `org.cogwork.mesh`, too.
        """

    @property
    def mesh(self) -> MeshView:
        """The other containers."""

    @property
    def exchanges(self) -> ManagedExchanges:
        """The exchanges, and what can be done to them."""

    @property
    def backups(self) -> ManagedBackups:
        """The backup of the data directory that is under way, and what can be done to it."""

    def requester(self, source: Terminus | None) -> Requester | None:
        """Find whose request came from `source`; None where its link has gone."""

    @property
    def takes_tokens(self) -> bool:
        """Whether anybody logs in by a token here."""

    def put_token(self, requester: Requester, token: str, on_put: OnPut) -> None:
        """Have a token hold from now on for the connection of who has asked.

        Args:
            requester: Who has asked.
            token: As it was given.
            on_put: Learns what came of it, unless the connection ends before.
        """

    def note_request(
        self, requester: Requester, what: Mapping[str, str], *, refusal: str | None
    ) -> None:
        """Take note, for the security log, of a request that did more than look, or was refused.

        Args:
            requester: Who has asked.
            what: The `operation`, the `type` and the `name` of the request.
            refusal: Which permission is missing; None where it was carried out.
        """

    def soon(self, step: Callable[[], None]) -> None:
        """Call `step` once other traffic has had its turn."""

    def close_connection(self, name: str, reason: str) -> bool:
        """Close a connection; return whether it was there."""

    def disconnect_user(self, name: str, reason: str) -> int:
        """Close all connections of a user, links of containers too; return how many."""

    def detach_link(self, name: str, reason: str) -> bool:
        """Detach a link; return whether it was there."""

    def bind(self, requester: Requester, link: str, pattern: str) -> bool:
        """Give a topic subscriber one more pattern; return whether it is new.

        Args:
            requester: Who asks.
            link: The subscriber's link: its id, or its name on the requester's connection.
            pattern: An address with wildcards, as in the source of a subscriber.

        Raises:
            ManagementError: There is no such link, it is no subscriber of that topic, or it is
                somebody else's.
        """

    def unbind(self, requester: Requester, link: str, pattern: str) -> bool:
        """Take a pattern from a topic subscriber; return whether it had it.

        Args:
            requester: Who asks.
            link: As for `bind`.
            pattern: As for `bind`.

        Raises:
            ManagementError: As for `bind`.
        """

    def note_report(self, report: Report) -> None:
        """Keep what a query elsewhere tells of itself, for a while."""

    def forget_report(self, name: str) -> bool:
        """Give it up; return whether it was there."""

    def queue(self, address: str) -> ManagedQueue | None:
        """Find a queue; None where there is none yet."""

    def cluster_entries(self) -> list[list[object]]:
        """List what the cluster has for all containers: kind, virtual host, name and options.

        Raises:
            ValueError: This container is in no cluster.
        """

    def apply_entries(
        self, entries: Sequence[Sequence[Any]], *, is_pruning: bool, is_dry: bool
    ) -> Awaitable[list[dict[str, object]]]:
        """Have the cluster have other entries, all or none; return what changes.

        Args:
            entries: Those that it is to have, as `cluster_entries` lists them.
            is_pruning: Whether what is not among them goes, but for streams and queues.
            is_dry: Whether nothing is done.

        Returns:
            For each change `kind`, `vhost`, `name`, `before` and `after`, each null for nothing;
            or one row with a `problem`, for which nothing is done.

        Raises:
            ConsensusError: It is not known whether it is done, or it is not.
            ValueError: This container is in no cluster.
        """

    def declare_queue(
        self, address: str, options: Mapping[str, object], requester: Requester | None = None
    ) -> bool:
        """Make a queue; return False where it was there with these options.

        Args:
            address: Its address.
            options: As in `[[queue]]`.
            requester: For whom it is made; None is never refused for having too many.

        Raises:
            ManagementError: An option is wrong, the address is none of a queue, the queue is there
                with other options, or the requester has too many.
        """

    def delete_queue(self, address: str) -> bool:
        """Give up a queue with what it holds; return False where this container has none.

        Nor has it one by itself that the whole cluster has: `withdraw_queue` comes next.

        Raises:
            ManagementError: The queue is in use.
        """

    def purge_elsewhere(self, address: str) -> Awaitable[int] | None:
        """Drop what waits in a queue that another container owns; return how much that was.

        None is returned where the queue is not another container's.

        Raises:
            Unavailable: Its owner does not answer.
        """

    def peek_elsewhere(
        self, address: str, count: int, offset: int
    ) -> Awaitable[list[dict[str, object]]] | None:
        """Return items of a queue that another container owns, each with `message` and its facts.

        Fewer than `count` come where they are large, and none where there are no more. None is
        returned where the queue is not another container's.

        Raises:
            Unavailable: Its owner does not answer.
        """

    def has_queue(self, address: str) -> bool:
        """Return whether there is a queue, wherever its items are."""

    def move_elsewhere(
        self, address: str, count: int, target: str | None, requester: Requester
    ) -> Awaitable[Mapping[str, int]] | None:
        """Move items of a queue that another container owns; return what has become of them.

        `moved`, `refused`, `unconfirmed` and `strangers` are counted. None is returned where the
        queue is not another container's.

        Args:
            address: The queue.
            count: How many at most.
            target: Where to; None sends dead letters back to where they came from.
            requester: Who asks, and may send to some addresses.

        Raises:
            Unavailable: Its owner does not answer.
        """

    def withdraw_queue(self, address: str) -> Awaitable[bool]:
        """Have the whole cluster give up a queue with what it holds; tell whether there was one.

        Raises:
            Unavailable: No majority of the cluster answers; the queue stays.
            ConsensusError: It is not known whether it does.
        """

    def relocate_queue(
        self, address: str, voters: Sequence[str], learners: Sequence[str]
    ) -> Awaitable[None]:
        """Declare that others are to hold a replicated queue; return before they do.

        Args:
            address: Its address.
            voters: Who is to hold it, in order of leader priority.
            learners: Who is to have a copy that counts for nothing.

        Raises:
            ConsensusError: That cannot be done, or not now.
            ManagementError: There is no such queue.
            ValueError: These cannot hold it, or it is not replicated.
        """

    @property
    def knows_declarations(self) -> bool:
        """Whether it is known what the cluster has declared, or there is none."""

    def demand_holders(self, names: Sequence[str]) -> None:
        """See that containers which are to hold replicas are there, or were.

        Raises:
            ManagementError: Nobody has heard of one, or one is named twice.
        """

    def move_primaries(self, voters: Sequence[str]) -> Awaitable[None]:
        """Declare that others are to hold what the cluster has declared; return before they do.

        Args:
            voters: Who is to hold it, in order of leader priority.

        Raises:
            ConsensusError: That cannot be done, or not now.
            ValueError: These cannot hold it, or there is no cluster.
        """

    def set_root(self, name: str, *, is_enabled: bool, allows_none: bool) -> Awaitable[None]:
        """Declare whether a container may become the root of the cluster.

        Args:
            name: Its id.
            is_enabled: Whether it may.
            allows_none: Whether it is so even if nobody who answers may, then.

        Raises:
            ConsensusError: That cannot be done, or not now.
            ManagementError: Nobody has heard of the container.
            ValueError: It is so already, nobody who answers could be the root, or there is no
                cluster.
        """

    def rebalance(self, most: int) -> Awaitable[dict[str, object]]:
        """Move some of the clients that this container has beyond its share.

        Args:
            most: How many at most.

        Returns:
            `usage`, `surplus`, `movable` and `moved`, as in `docs/management.md`.
        """

    def cluster_status(self) -> Awaitable[dict[str, object]]:
        """Ask all members of the cluster how they are; see `cogwork.container.cluster.roll_call`.

        Raises:
            ValueError: There is no cluster.
        """

    def forget_member(self, name: str) -> Awaitable[None]:
        """Have the feature level no longer wait for a container that is gone for good.

        Raises:
            ConsensusError: That is not known, or not done.
            ValueError: It is not gone, is a primary, or is not counted at all.
        """

    def set_setting(
        self, kind: str, name: str, options: Mapping[str, object], *, is_new: bool
    ) -> Awaitable[None]:
        """Declare something for all containers, or change it.

        Args:
            kind: `user`, `permission`, `vhost`, `limit`, or `policy`: one of this virtual host.
            name: Its name.
            options: What it is to have; for one that is there, what it has stays otherwise.
            is_new: Whether it must not be there yet; else it must be.

        Raises:
            ValueError: It cannot be; the text says why.
            ConsensusError: It is not known whether it is, or it is not.
        """

    def remove_setting(self, kind: str, name: str) -> Awaitable[bool]:
        """Take something back, in all containers; tell whether it was there.

        Raises:
            ValueError: This container is in no cluster, or it may not be taken back.
            ConsensusError: It is there still, or that is not known.
        """

    def demand_rooms(self, options: Mapping[str, object]) -> Awaitable[None]:
        """See that the containers which are to hold something new can do so.

        Args:
            options: Of a stream or a queue; `replicas` names the containers.

        Raises:
            ValueError: One cannot, or is in another cluster; the text says what to configure.
        """

    def demand_majority(self) -> Awaitable[None]:
        """Wait a while until a majority of the cluster answers, if there is a cluster.

        Raises:
            Unavailable: None does; the text says who is missing.
        """

    def stream(self, address: str) -> ManagedStream | None:
        """Find a stream; None where there is none yet."""

    def declare_stream(
        self, address: str, options: Mapping[str, object], requester: Requester | None = None
    ) -> bool:
        """Make a stream; return False where it was there with these options.

        Args:
            address: Its address.
            options: As in `[[stream]]`.
            requester: For whom it is made; None is never refused for having too many.

        Raises:
            ManagementError: An option is wrong, the address is none of a stream, the stream is
                there with other options, or the requester has too many.
        """

    def delete_stream(self, address: str) -> Awaitable[bool]:
        """Give up a stream with its records; tell whether it was there.

        Raises:
            ConsensusError: It is there still, or that is not known.
            ManagementError: The stream is in use.
        """

    def abandon_stream(self, address: str) -> None:
        """Let a stream go that was just made and cannot be opened; it may be another's, too."""

    def begin(self, work: Awaitable[T]) -> Pending[T]:
        """Have something done that takes its time."""

    def send(self, address: str, message: bytes, on_outcome: OnOutcome) -> bool:
        """Send a message from within.

        Args:
            address: Where to, as a client would name it.
            message: Encoded.
            on_outcome: Learns once, now or later, whether it was accepted.

        Returns:
            False where the address leads nowhere; then `on_outcome` is not called.
        """


class OnPut(Protocol):
    """Learns what became of a token."""

    def __call__(self, status: int, description: str) -> None:
        """Called once, with a status of HTTP and words for people."""


class OnOutcome(Protocol):
    """Learns what became of a message."""

    def __call__(self, *, accepted: bool) -> None:
        """Called once."""
