"""What a node may be able to do besides the contract of nodes: optional capabilities.

Theory of operation. A node has a capability if its class derives from it: that is cheap to ask, and
nothing is taken for one by an accident of names. The container asks for capabilities alone, never
for a class of nodes, so a foreign node that keeps items is shared over linked containers as the
built-in queue is. Capabilities are looked up where nodes are made, and where links attach and
detach; no message waits for that.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from cogwork.plugin.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence, Set

    from cogwork.amqp.types import Symbol
    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.dataplane.addresses.exchange import Changes
    from cogwork.dataplane.addresses.partitions import PartitionedInlet
    from cogwork.dataplane.queue.store import Store
    from cogwork.dataplane.terminus import Terminus
    from cogwork.dataplane.transport.outgoing import OutgoingLink
    from cogwork.plugin.engine.contract import Bounds, Engine
    from cogwork.plugin.journals import ReplicaHandle
    from cogwork.plugin.node import Subscription
    from cogwork.plugin.stream_options import StreamOptions
    from cogwork.router.exchanges.forwards import Forward
    from cogwork.router.exchanges.graph import ExchangeGraph

__all__ = (
    "CAPABILITIES",
    "Bindable",
    "Capturing",
    "Exchanging",
    "Governed",
    "Partitioned",
    "Removable",
    "Replicated",
    "Resumable",
    "Shareable",
    "Storing",
    "Streaming",
    "replica_of",
)


class Storing(Node):
    """Keeps items in a `Store`.

    The container bounds the memory of the store, shows its figures, lets people look into it and
    take items out, and calls `tick` only if the store is not idle.

    Attributes:
        address: The node's address.
        store: Its items.
        wants_ticks: Whether it needs ticks although its store is idle.
    """

    address: str
    store: Store
    wants_ticks: bool = False

    @property
    @abstractmethod
    def durability(self) -> str:
        """How items are kept: `memory`, `auto`, `disk` or `replicated`."""

    @property
    @abstractmethod
    def is_on_disk(self) -> bool:
        """Whether its items outlive the container."""

    @abstractmethod
    def give_up(self, number: int, keep: Callable[[int], None]) -> None:
        """Give up an item that was put aside and accepted elsewhere, once that is durable.

        Args:
            number: The item's.
            keep: Is called instead if it was not accepted after all.
        """


class Governed(Storing):
    """Keeps items by options that a policy may replace while it stands."""

    @abstractmethod
    def govern(self, options: Mapping[str, Any]) -> None:
        """Have some options hold in the place of the node's own, until the next call.

        Args:
            options: By name, as in `QueueOptions`; what is not among them is the node's own again.
        """


class Removable(Node):
    """Can be removed for good while links are attached and something is kept."""

    @abstractmethod
    def end_links(self, why: str = "was deleted") -> None:
        """End all links.

        Args:
            why: What became of the node.
        """

    @abstractmethod
    def delete(self) -> None:
        """Give up what it keeps on disk by itself, for good; `close` comes next."""


class Resumable(Node):
    """Keeps what a consumer holds until its link is resumed (AMQP 1.0 §2.6.13).

    `unsubscribe` is called with the departure `KEPT` first, and again when the link is given up.
    """

    @property
    @abstractmethod
    def in_doubt_timeout_s(self) -> float:
        """How long a consumer may be away before it loses what it holds."""

    @abstractmethod
    def keeps(self, subscription: Subscription) -> bool:
        """Return whether anything is out at a consumer whose link may be resumed."""


class Shareable(Storing):
    """Shares its items with linked containers, each of which has a node of the kind.

    Consumers get what their own container does not have from others that have a backlog; a
    container that leaves moves its items to them.
    """

    @property
    @abstractmethod
    def is_ordered(self) -> bool:
        """Whether items that belong together go to one consumer at a time, in order."""

    @abstractmethod
    def near_entry(self) -> AddressEntry:
        """Return where the messages come in that other containers send."""

    @abstractmethod
    def end_credit(self) -> bool:
        """Have clients send no more; tell whether any could. What they have sent is taken."""


class Partitioned(Shareable):
    """Can have one of several linked containers accept each message, by what the message says.

    Attributes:
        inlet: Where the container that takes a message tells it apart; None until it is shared.
    """

    inlet: PartitionedInlet | None

    @property
    @abstractmethod
    def is_partitioned(self) -> bool:
        """Whether its options ask for that."""

    @property
    @abstractmethod
    def deduplication_window_s(self) -> float:
        """How long it remembers what it has taken; 0 if it remembers nothing."""

    @abstractmethod
    def share(self) -> PartitionedInlet:
        """Divide it; `PartitionedInlet.set_owners` says who takes what."""


class Replicated(Shareable):
    """Can be owned by one container, and led to by the others: for good, or as replicas decide.

    Attributes:
        inlet: Leads to the owner; None if nobody owns it, or this container does for good.
        replica: This container's part; None if nobody owns it.
    """

    inlet: PartitionedInlet | None
    replica: ReplicaHandle | None

    @abstractmethod
    def settle_at(self, home: str) -> None:
        """Become a queue whose home this container is, with all that it has.

        Args:
            home: This container's id.

        Raises:
            Refused: It is divided among containers.
        """

    @abstractmethod
    def when_durable(self, call: Callable[[bool], object]) -> None:
        """Have a call made once it is known whether all that has happened so far is durable."""


class Bindable(Node):
    """Copies each message to every outlet that has a pattern for its subject.

    Its class serves a prefix: what follows that in an address is the subject.

    Attributes:
        root: Where messages of anonymous senders come in: their `to` has the subject.
        near_root: The same for what other containers send.
    """

    root: AddressEntry
    near_root: AddressEntry

    @abstractmethod
    def subject_of(self, address: str) -> bytes:
        """Cut the prefix and its separator off an address."""

    @abstractmethod
    def near_entry(self, address: str) -> AddressEntry:
        """Return where messages to an address come in that other containers send.

        Raises:
            Refused: The address names no subject.
        """

    @abstractmethod
    def add_outlet(self, outlet: Terminus) -> None:
        """Let a link, or another node, have patterns."""

    @abstractmethod
    def remove_outlet(self, outlet: Terminus) -> None:
        """Forget an outlet with all its patterns."""

    @abstractmethod
    def bind(self, link: Terminus, pattern: bytes) -> bool:
        """Give an outlet one more pattern; return whether it is new.

        Raises:
            Refused: The pattern cannot be had.
        """

    @abstractmethod
    def unbind(self, link: Terminus, pattern: bytes) -> bool:
        """Take a pattern from an outlet; return whether it had it."""

    @abstractmethod
    def bind_far(self, pattern: bytes, outlet: Terminus) -> None:
        """Let copies of what is sent to this container go to an outlet, and of nothing else."""

    @abstractmethod
    def unbind_far(self, pattern: bytes, outlet: Terminus) -> None:
        """Take a pattern from such an outlet."""

    @abstractmethod
    def touch(self) -> None:
        """Have every entry look for its outlets again."""

    @abstractmethod
    def announce(self) -> None:
        """Tell other containers of all patterns that subscribers here have."""

    @property
    @abstractmethod
    def subscribers(self) -> Iterable[OutgoingLink]:
        """This container's subscribers."""

    @abstractmethod
    def patterns_of(self, link: Terminus) -> list[str]:
        """List an outlet's patterns."""


class Capturing(Node):
    """Gets a copy of what is published to topics.

    Attributes:
        capture: What the copies go to.
    """

    capture: Terminus

    @property
    @abstractmethod
    def captured(self) -> Sequence[str]:
        """The topics, which may hold wildcards."""

    @property
    @abstractmethod
    def is_everywhere(self) -> bool:
        """Whether every container of the cluster has the node.

        Then each captures what is published at it; else what is published elsewhere, too.
        """


class Streaming(Removable):
    """Keeps records by an engine, and is managed as a stream.

    Attributes:
        address: The node's address.
        options: Its declaration.
        engine: What keeps it; None until it is open.
    """

    address: str
    options: StreamOptions
    engine: Engine | None

    @property
    @abstractmethod
    def name(self) -> str:
        """What the engine knows it by."""

    @property
    @abstractmethod
    def is_everywhere(self) -> bool:
        """Whether every container of the cluster has it."""

    @property
    @abstractmethod
    def state(self) -> str:
        """Returns `opening`, `open`, `away` or `failed`."""

    @property
    @abstractmethod
    def problem(self) -> str | None:
        """Why it is not open, or cannot be read; None if all is well."""

    @property
    @abstractmethod
    def filters(self) -> Set[Symbol]:
        """Descriptors of the filters that it knows besides the selector."""

    @abstractmethod
    def demand_prospects(self) -> None:
        """See that it is open, or may yet be.

        Raises:
            Refused: Its engine will never take it as it is declared.
        """

    @abstractmethod
    def give_back(self) -> None:
        """Return to their senders what waits to be appended, and what comes from now on."""

    @abstractmethod
    async def move(self, voters: Sequence[str], learners: Sequence[str]) -> None:
        """Declare that others are to hold it; return before they do."""

    @abstractmethod
    async def trim(self, before: int) -> Bounds:
        """Give up records below an offset; return what is left."""


class Exchanging(Node):
    """Holds the exchanges of a virtual host, and sends messages on by their bindings.

    Its class serves a prefix: what follows that in an address is an exchange, with a `/` in its
    name written `%2F`, and perhaps a `/` and a routing key. The container declares exchanges and
    bindings, and decides who may.

    Attributes:
        graph: The exchanges with their bindings. Whoever changes it calls `changed`.
        find_queue: Returns where messages of a queue come in; None if there is no such queue.
        find_forward: Returns where messages for other containers' private queues come in, by the
            container and the route there, and by who says keys that messages do not say; None if
            that container is not known.
    """

    graph: ExchangeGraph
    find_queue: Callable[[str], AddressEntry | None]
    find_forward: Callable[[Forward, Changes], AddressEntry | None]

    @abstractmethod
    def split(self, address: str) -> tuple[str, bytes | None]:
        """Return the exchange that an address names, and the routing key if it names one.

        Raises:
            Refused: It names no exchange.
        """

    @abstractmethod
    def address(self, name: str) -> str:
        """Return the address of an exchange."""

    @abstractmethod
    def entry_of(self, name: str) -> AddressEntry:
        """Return where the messages of an exchange come in; they say their keys themselves."""

    @abstractmethod
    def changed(self) -> None:
        """Have the queues of all messages found anew."""

    @abstractmethod
    def removed(self, name: str, entries: Iterable[AddressEntry]) -> None:
        """Give up what there was for an exchange that the graph has no longer.

        Args:
            name: The exchange's.
            entries: Those of its addresses, which the container had.
        """

    @abstractmethod
    def figures(self, name: str) -> Mapping[str, int]:
        """Count what has come to an exchange, what went to queues, and what nobody took."""


def replica_of(node: object) -> ReplicaHandle | None:
    """Return a container's part in a node that one container owns; None if nobody does."""
    return node.replica if isinstance(node, Replicated) else None


CAPABILITIES = (
    Storing,
    Governed,
    Removable,
    Resumable,
    Shareable,
    Partitioned,
    Replicated,
    Bindable,
    Capturing,
    Streaming,
    Exchanging,
)
"""All of them, as `docs/nodes.md` lists them."""
