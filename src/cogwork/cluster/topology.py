"""The topology of AMQP 0-9-1 that a cluster has: exchanges, shared queues and bindings.

Theory of operation. Commands and entries are as `declarations` has them; these come with feature
level 5. What outlives all containers has no owner. What is not durable is owned by an *incarnation*
of a container, from its start to its end, and one command ends all that earlier incarnations owned.
A binding goes with either of its ends.

Clients come back by thousands and bring new entries, so the digest is kept up with each of them: it
is the sum of all entries' digests, in which their order does not count. For the same reason a
snapshot takes a copy of what there is, and is written down aside.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = (
    "TOPOLOGY_LEVEL",
    "Bind",
    "Change",
    "DeclareExchange",
    "DeclareQueue",
    "DeleteExchange",
    "DeleteQueue",
    "EndIncarnations",
    "Entry",
    "Owner",
    "SharedBinding",
    "SharedExchange",
    "SharedQueue",
    "Topology",
    "TopologyCommand",
    "TopologyState",
    "Unbind",
)

TOPOLOGY_LEVEL: Final = 5
"""The feature level from which on a cluster has a topology."""

ENTRIES_MAX: Final = 100_000
"""Of all kinds together: every container holds all of them."""

NAME_BYTES_MAX: Final = 1_024
ARGUMENTS_BYTES_MAX: Final = 16 * 1024

EXCHANGE: Final = "exchange"
QUEUE: Final = "queue"
BINDING: Final = "binding"

PREDECLARED: Final = "amq."
"""What the names of exchanges begin with that are always there."""

DIGEST_MODULUS: Final = 1 << 256

Key = tuple[str, ...]

K = TypeVar("K")


class Owner(msgspec.Struct, frozen=True, array_like=True):
    """An incarnation of a container.

    Attributes:
        container: Which one.
        incarnation: When it was started, in milliseconds since 1970 (UTC).
    """

    container: str
    incarnation: int


class DeclareExchange(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Declares an exchange.

    Attributes:
        vhost: Its virtual host.
        name: Its name there.
        exchange_type: Its type.
        durable: Whether it outlives all containers.
        auto_delete: Whether it goes with the last binding from it.
        internal: Whether it takes messages from other exchanges alone.
        arguments: As they were given, as a field table.
        owner: Whose it is where it is not durable.
    """

    vhost: str
    name: str
    exchange_type: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: bytes
    owner: Owner | None


class DeleteExchange(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Deletes an exchange with its bindings.

    Attributes:
        vhost: Its virtual host.
        name: Its name there.
        number: Its own: one that was declared anew under the name stays; 0 is any.
        if_unused: Whether it stays where anything is bound to it.
    """

    vhost: str
    name: str
    number: int
    if_unused: bool


class DeclareQueue(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Declares a queue that all containers share.

    Attributes:
        vhost: Its virtual host.
        name: Its name there: its address without the prefix.
        durable: Whether it outlives its container.
        auto_delete: Whether it goes with its last consumer.
        arguments: As they were given, as a field table.
        home: The container that has its messages; empty where it is replicated.
        owner: Whose it is where it is not durable.
    """

    vhost: str
    name: str
    durable: bool
    auto_delete: bool
    arguments: bytes
    home: str
    owner: Owner | None


class DeleteQueue(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Deletes a queue with the bindings to it.

    Attributes:
        vhost: Its virtual host.
        name: Its name there.
        number: Its own: one that was declared anew under the name stays; 0 is any.
    """

    vhost: str
    name: str
    number: int


class Bind(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Binds a queue or an exchange to an exchange.

    Attributes:
        vhost: The virtual host of both.
        source: The exchange that messages come from.
        kind: `queue` or `exchange`: what they go to.
        destination: Its name.
        number: Its own, which it must still have; 0 for a queue that no cluster has declared, and
            for exchanges that are always there.
        key: The binding key.
        arguments: What the type of the exchange heeds, as a field table.
    """

    vhost: str
    source: str
    kind: str
    destination: str
    number: int
    key: bytes
    arguments: bytes


class Unbind(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Removes a binding.

    Attributes:
        vhost: The virtual host of both ends.
        source: The exchange that messages come from.
        kind: `queue` or `exchange`: what they go to.
        destination: Its name.
        key: The binding key.
        arguments: As they were given, as a field table.
    """

    vhost: str
    source: str
    kind: str
    destination: str
    key: bytes
    arguments: bytes


class EndIncarnations(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Deletes all that earlier incarnations of a container owned.

    Attributes:
        container: Which one.
        before: The first incarnation that keeps what it owns.
        keeps_exchanges: Whether exchanges stay: clients of other containers may use them, too. It
            is said from the level on that has `Apply`.
    """

    container: str
    before: int
    keeps_exchanges: bool = False


TopologyCommand = (
    DeclareExchange | DeleteExchange | DeclareQueue | DeleteQueue | Bind | Unbind | EndIncarnations
)


class SharedExchange(msgspec.Struct, frozen=True, array_like=True):
    """An exchange; see `DeclareExchange`.

    Attributes:
        number: Its own, and never another one's.
    """

    number: int
    vhost: str
    name: str
    exchange_type: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: bytes
    owner: Owner | None

    @property
    def key(self) -> Key:
        """What it is known by."""
        return EXCHANGE, self.vhost, self.name


class SharedQueue(msgspec.Struct, frozen=True, array_like=True):
    """A queue; see `DeclareQueue`.

    Attributes:
        number: Its own, and never another one's.
    """

    number: int
    vhost: str
    name: str
    durable: bool
    auto_delete: bool
    arguments: bytes
    home: str
    owner: Owner | None

    @property
    def key(self) -> Key:
        """What it is known by."""
        return QUEUE, self.vhost, self.name


class SharedBinding(msgspec.Struct, frozen=True, array_like=True):
    """A binding; see `Bind`."""

    vhost: str
    source: str
    kind: str
    destination: str
    binding_key: bytes
    arguments: bytes

    @property
    def key(self) -> Key:
        """What it is known by."""
        octets = (self.binding_key.hex(), self.arguments.hex())
        return BINDING, self.vhost, self.source, self.kind, self.destination, *octets


Entry = SharedExchange | SharedQueue | SharedBinding


class Change(NamedTuple):
    """An entry that has come or gone.

    Attributes:
        entry: Which one.
        is_there: Whether it is there now.
    """

    entry: Entry
    is_there: bool


class TopologyState(msgspec.Struct, array_like=True):
    """All of it, as a snapshot has it."""

    next_number: int
    exchanges: list[SharedExchange]
    queues: list[SharedQueue]
    bindings: list[SharedBinding]


class Result(NamedTuple):
    """What a command did.

    Attributes:
        entry: What it is about, as it stands, or stood; None where there is none.
        changes: What has come and gone, in order: what is bound comes after its ends.
        problem: Why it did not do what it says; empty where it did.
    """

    entry: Entry | None = None
    changes: tuple[Change, ...] = ()
    problem: str = ""


_encoder = msgspec.msgpack.Encoder(order="deterministic")


class Topology:
    """All exchanges, shared queues and bindings of a cluster, by virtual host and name."""

    def __init__(self) -> None:
        """Start with none."""
        self._entries: dict[Key, Entry] = {}
        self._around: dict[Key, dict[Key, None]] = {}
        self._from: dict[Key, dict[Key, None]] = {}
        self._owned: dict[str, dict[Key, None]] = {}
        self._next_number = 1
        self._sum = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        """Go over all entries: bindings after both of their ends."""
        entries = tuple(self._entries.values())
        yield from (each for each in entries if not isinstance(each, SharedBinding))
        yield from (each for each in entries if isinstance(each, SharedBinding))

    def exchange(self, vhost: str, name: str) -> SharedExchange | None:
        """Return an exchange; None where there is none."""
        found = self._entries.get((EXCHANGE, vhost, name))
        return found if isinstance(found, SharedExchange) else None

    def queue(self, vhost: str, name: str) -> SharedQueue | None:
        """Return a queue; None where there is none."""
        found = self._entries.get((QUEUE, vhost, name))
        return found if isinstance(found, SharedQueue) else None

    def has(self, entry: Entry) -> bool:
        """Return whether an entry is there: the same one, not one of its name."""
        return self._entries.get(entry.key) == entry

    def first_in(self, vhost: str) -> str:
        """Name something that is in a virtual host; empty where nothing is."""
        found = next((each for each in self._entries.values() if each.vhost == vhost), None)
        return "" if found is None else f"{found.key[0]} {found.key[2]!r:.200}"

    def has_ended(self, command: EndIncarnations) -> bool:
        """Return whether there is anything that a command would delete."""
        return any(True for _ in self._ended(command))

    @property
    def owners(self) -> tuple[str, ...]:
        """The containers that own anything."""
        return tuple(self._owned)

    # -- commands

    def apply(self, command: TopologyCommand) -> Result:
        """Do what a command says."""
        match command:
            case DeclareExchange():
                result = self._declare_exchange(command)
            case DeclareQueue():
                result = self._declare_queue(command)
            case DeleteExchange():
                result = self._delete_exchange(command)
            case DeleteQueue():
                result = self._delete_queue(command)
            case Bind():
                result = self._bind(command)
            case Unbind():
                result = self._unbind(command)
            case EndIncarnations():
                result = self._end(command)
        for change in result.changes:
            (self._add if change.is_there else self._remove)(change.entry)
        return result

    def _declare_exchange(self, command: DeclareExchange) -> Result:
        problem = _problem_with(command.name, command.arguments)
        if not problem and command.name.startswith(PREDECLARED):
            problem = f"exchange name {command.name!r:.200} is reserved"
        found = self.exchange(command.vhost, command.name)
        if problem or found is not None:
            return Result(found, problem=problem)
        made = SharedExchange(self._next_number, *msgspec.structs.astuple(command))
        return self._made(made)

    def _declare_queue(self, command: DeclareQueue) -> Result:
        problem = _problem_with(command.name, command.arguments)
        found = self.queue(command.vhost, command.name)
        if problem or found is not None:
            return Result(found, problem=problem)
        made = SharedQueue(self._next_number, *msgspec.structs.astuple(command))
        return self._made(made)

    def _made(self, entry: Entry) -> Result:
        if len(self._entries) >= ENTRIES_MAX:
            text = f"{ENTRIES_MAX} exchanges, queues and bindings are declared already"
            return Result(problem=text)
        return Result(entry, (Change(entry, True),))

    def _delete_exchange(self, command: DeleteExchange) -> Result:
        found = self.exchange(command.vhost, command.name)
        if found is None or command.number not in {0, found.number}:
            return Result()
        if command.if_unused and self._from.get(found.key):
            return Result(found, problem=f"exchange {command.name!r:.200} is in use")
        return Result(found, self._without(found))

    def _delete_queue(self, command: DeleteQueue) -> Result:
        found = self.queue(command.vhost, command.name)
        if found is None or command.number not in {0, found.number}:
            return Result()
        return Result(found, self._without(found))

    def _without(self, *ends: SharedExchange | SharedQueue) -> tuple[Change, ...]:
        """Return the changes when something goes, with its bindings before it."""
        # In one order everywhere: that in which they came differs where a snapshot was read.
        keys = {key for end in ends for key in self._around.get(end.key, ())}
        gone: list[Entry] = [self._entries[key] for key in sorted(keys)]
        return tuple(Change(each, False) for each in (*gone, *ends))

    def _bind(self, command: Bind) -> Result:
        problem = self._problem_with_ends(command)
        if problem:
            return Result(problem=problem)
        ends = (command.vhost, command.source, command.kind, command.destination)
        binding = SharedBinding(*ends, command.key, command.arguments)
        if binding.key in self._entries:
            return Result(binding)
        return self._made(binding)

    def _problem_with_ends(self, command: Bind) -> str:
        vhost, source = command.vhost, command.source
        if not source.startswith(PREDECLARED) and self.exchange(vhost, source) is None:
            return f"there is no exchange {source!r:.200}"
        if command.kind not in (QUEUE, EXCHANGE):
            return f"{command.kind!r:.80} cannot be bound: there are queue, exchange"
        end = self._entries.get((command.kind, vhost, command.destination))
        number = end.number if isinstance(end, SharedExchange | SharedQueue) else 0
        is_always = command.kind == QUEUE or command.destination.startswith(PREDECLARED)
        if number != command.number or (not number and not is_always):
            return f"there is no such {command.kind} {command.destination!r:.200} any more"
        if len(command.arguments) > ARGUMENTS_BYTES_MAX or len(command.key) > NAME_BYTES_MAX:
            return f"arguments have at most {ARGUMENTS_BYTES_MAX} octets, a key {NAME_BYTES_MAX}"
        return ""

    def _unbind(self, command: Unbind) -> Result:
        binding = SharedBinding(*msgspec.structs.astuple(command))
        if binding.key not in self._entries:
            return Result()
        return Result(binding, (Change(binding, False),))

    def _end(self, command: EndIncarnations) -> Result:
        return Result(None, self._without(*self._ended(command)))

    def _ended(self, command: EndIncarnations) -> Iterator[SharedExchange | SharedQueue]:
        for key in sorted(self._owned.get(command.container, ())):
            entry = self._entries[key]
            if isinstance(entry, SharedBinding) or entry.owner is None:
                continue
            if command.keeps_exchanges and isinstance(entry, SharedExchange):
                continue
            if entry.owner.incarnation < command.before:
                yield entry

    def take_back(self, changes: Iterable[Change], next_number: int) -> None:
        """Undo what commands did.

        Args:
            changes: All of it since, in order.
            next_number: As it was before.
        """
        for change in reversed([*changes]):
            (self._remove if change.is_there else self._add)(change.entry)
        self._next_number = next_number

    # -- entries

    def _add(self, entry: Entry) -> None:
        key = entry.key
        self._entries[key] = entry
        self._sum = (self._sum + _digest_of(entry)) % DIGEST_MODULUS
        if isinstance(entry, SharedBinding):
            source, destination = _ends(entry)
            for index in (self._around.setdefault(source, {}), self._from.setdefault(source, {})):
                index[key] = None
            self._around.setdefault(destination, {})[key] = None
            return
        self._next_number = max(self._next_number, entry.number + 1)
        if entry.owner is not None:
            self._owned.setdefault(entry.owner.container, {})[key] = None

    def _remove(self, entry: Entry) -> None:
        key = entry.key
        del self._entries[key]
        self._sum = (self._sum - _digest_of(entry)) % DIGEST_MODULUS
        if isinstance(entry, SharedBinding):
            source, destination = _ends(entry)
            _discard(self._around, source, key)
            _discard(self._from, source, key)
            _discard(self._around, destination, key)
        elif entry.owner is not None:
            _discard(self._owned, entry.owner.container, key)

    # -- what containers compare, and keep

    @property
    def digest(self) -> bytes:
        """What two that are equal have in common, and others have not."""
        return self._sum.to_bytes(32) + self._next_number.to_bytes(8)

    def state(self) -> TopologyState:
        """Return all of it, sorted: equal ones have equal octets. It may be called in a thread."""
        return state_of(self._next_number, self.entries)

    @property
    def entries(self) -> list[Entry]:
        """A copy of all entries, in no order."""
        return list(self._entries.values())

    @property
    def next_number(self) -> int:
        """The number of what is declared next."""
        return self._next_number

    @classmethod
    def restored(cls, state: TopologyState) -> Topology:
        """Make it of a snapshot."""
        made = cls()
        entries: list[Entry] = [*state.exchanges, *state.queues, *state.bindings]
        for entry in entries:
            made._add(entry)
        made._next_number = state.next_number
        return made


def state_of(next_number: int, entries: Iterable[Entry]) -> TopologyState:
    """Return the state that some entries make, sorted."""
    in_order = sorted(entries, key=lambda each: each.key)
    return TopologyState(
        next_number,
        [each for each in in_order if isinstance(each, SharedExchange)],
        [each for each in in_order if isinstance(each, SharedQueue)],
        [each for each in in_order if isinstance(each, SharedBinding)],
    )


def _ends(binding: SharedBinding) -> tuple[Key, Key]:
    destination = (binding.kind, binding.vhost, binding.destination)
    return (EXCHANGE, binding.vhost, binding.source), destination


def _discard(index: dict[K, dict[Key, None]], at: K, key: Key) -> None:
    """Take a key out of an index, and a place of it that is empty then."""
    keys = index.get(at, {})
    keys.pop(key, None)
    if not keys:
        index.pop(at, None)


def _digest_of(entry: Entry) -> int:
    octets = _encoder.encode((entry.key[0], entry))
    return int.from_bytes(hashlib.sha256(octets).digest())


def _problem_with(name: str, arguments: bytes) -> str:
    if not name or len(name.encode()) > NAME_BYTES_MAX:
        return f"the name {name!r:.200} has not 1 to {NAME_BYTES_MAX} octets"
    if len(arguments) > ARGUMENTS_BYTES_MAX:
        return f"the arguments of {name!r:.200} have more than {ARGUMENTS_BYTES_MAX} octets"
    return ""
