"""What has been declared in a cluster: a state that equal commands make equal everywhere.

Theory of operation. Commands come in one order, from the stream `$cluster`; each has an answer, and
an error is an answer, too. The state has no clock and no chance in it. Written down, equal states
are equal octets: names are sorted, and the same holds for the names of options. So the digest of a
container that joined late is the leader's.

What a command does depends on the state alone, also where containers are of different versions:
the state has a *feature level*, and a command of a higher level is refused. The level rises by a
command, once every member knows the higher one. A version that meets what only later ones know must
not guess: `NotUnderstood` says so, and the container stops.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

import msgspec

from cogwork.cluster.levels import FIRST_LEVEL, HIGHEST_LEVEL, MEMBERS_MAX, NotUnderstood, lacking
from cogwork.cluster.topology import (
    TOPOLOGY_LEVEL,
    Bind,
    Change,
    DeclareExchange,
    DeclareQueue,
    DeleteExchange,
    DeleteQueue,
    EndIncarnations,
    Entry,
    Topology,
    TopologyCommand,
    TopologyState,
    Unbind,
    state_of,
)
from cogwork.plugin.engine.errors import Malformed
from cogwork.plugin.engine.placement import Placement
from cogwork.raft.membership import Membership

__all__ = (
    "ANNOUNCED_LEVEL",
    "APPLY_LEVEL",
    "DECLARATIONS_MAX",
    "LIMIT",
    "PERMISSION",
    "POLICY",
    "ROOT",
    "ROOT_NAME",
    "SET_SINCE",
    "USER",
    "VHOST",
    "Apply",
    "Check",
    "Command",
    "Declaration",
    "Declarations",
    "Declare",
    "Delete",
    "Kind",
    "Move",
    "Moved",
    "Outcome",
    "Part",
    "Primaries",
    "PrimariesMoved",
    "Raise",
    "Recover",
    "Set",
    "Supports",
    "Value",
    "decode",
    "encode",
    "replicas_of",
)

DECLARATIONS_MAX = 100_000
"""A cluster has no more: every container holds all of them."""

ANNOUNCED_LEVEL = 2
"""From this feature level on, members announce by a command what they know."""

APPLY_LEVEL = 7
"""From this feature level on, several commands can be one."""

OPTIONS_BYTES_MAX = 16 * 1024
"""For all options of a user, say, written down."""

REPLICAS = 3
"""So many of the primaries hold what is declared without saying who does."""

QUEUE_PREFIX = "queue/"
"""What the addresses of those queues begin with that the topology may have."""

NAME_BYTES_MAX = 1_024
OPTIONS_MAX = 64

Kind = str
"""What is declared: `stream` or `queue`, or with `Set` one of `SET_SINCE`."""

Value = bool | int | float | str | list[str] | None
"""What an option may be."""

_KINDS = ("stream", "queue")

USER, PERMISSION, VHOST, LIMIT, POLICY = "user", "permission", "vhost", "limit", "policy"

ROOT = ROOT_NAME = "root"
"""Who is not to become the root: a single entry, of this kind and name."""

SET_SINCE = {USER: 3, PERMISSION: 3, VHOST: 4, LIMIT: 4, POLICY: 6, ROOT: 8}
"""What is set, and may be set to something else, with its feature level; it has no replicas."""

VHOSTS_MAX = 255
"""Declared ones; a mesh knows no more."""

Check = Callable[[Kind, str, str, Mapping[str, Value]], str]
"""Says what is wrong with one of `SET_SINCE`, by kind, virtual host, name and options; or nothing.

It decides by these alone, and alike in every version that knows the feature level.
"""


class Declare(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Declares something, or says again what was declared.

    Attributes:
        kind: What it is.
        vhost: Its virtual host.
        name: Its name there.
        options: As given; what is left out is as the containers' configuration says.
    """

    kind: Kind
    vhost: str
    name: str
    options: dict[str, Value]


class Delete(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Takes a declaration back.

    Attributes:
        kind: What it is.
        vhost: Its virtual host.
        name: Its name there.
    """

    kind: Kind
    vhost: str
    name: str


class Move(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Has others hold the replicas of something.

    Attributes:
        kind: What it is.
        vhost: Its virtual host.
        name: Its name there.
        number: Its own: one that was declared anew under the name stays where it is.
        voters: Who is to hold it, in order of leader priority.
        learners: Who is to have a copy that counts for nothing.
        present: Who holds it; counts where it was never moved.
    """

    kind: Kind
    vhost: str
    name: str
    number: int
    voters: list[str]
    learners: list[str]
    present: list[str]


class Moved(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Says that those that are to hold the replicas do, and nobody else needs to.

    Attributes:
        kind: What it is.
        vhost: Its virtual host.
        name: Its name there.
        number: Its own.
        move: Which move is done: where another one has followed, this says nothing.
        term: Of an entry that those who hold the replicas have committed.
        index: Of that entry.
    """

    kind: Kind
    vhost: str
    name: str
    number: int
    move: int
    term: int
    index: int


class Recover(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Says that one container has made a new cluster of what it had.

    Attributes:
        uuid: The new cluster's.
        only: The container.
        held: The numbers of what it holds, which it holds alone from now on.
        present: The primaries so far; what is not held stays where it was by these.
    """

    uuid: str
    only: str
    held: list[int]
    present: list[str] = []


class Primaries(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Has others hold the replicas of the declarations themselves.

    Attributes:
        voters: Who is to hold them, in order of leader priority.
        present: Who holds them; what is where it is by these stays there.
    """

    voters: list[str]
    present: list[str]


class PrimariesMoved(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Says that those that are to hold the declarations do.

    Attributes:
        move: Which move is done: where another one has followed, this says nothing.
        term: Of an entry that those who hold the replicas have committed.
        index: Of that entry.
    """

    move: int
    term: int
    index: int


class Raise(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Raises the feature level, once every member knows the higher one.

    Attributes:
        level: The new one; it is one more than the present one.
        supports: The highest level that members know, as they have said it to who proposes this.
        present: The primaries; counts where they were never moved.
    """

    level: int
    supports: dict[str, int]
    present: list[str]


class Supports(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Announces the highest feature level that a container knows; from level 2 on.

    Attributes:
        container: Which one.
        level: The highest that it knows; 0 where it has left for good.
    """

    container: str
    level: int


class Set(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Declares one of `SET_SINCE`, or changes it; from the level on that it has there.

    Attributes:
        kind: What it is.
        vhost: Its virtual host.
        name: Its name there.
        options: All of them; they replace those that it has.
        expected: Those that it has, as its author knows it; None where it is new.
    """

    kind: Kind
    vhost: str
    name: str
    options: dict[str, Value]
    expected: dict[str, Value] | None


Part = Set | Delete | Declare | DeclareExchange | DeleteExchange | Bind | Unbind
"""What may be one of several commands in one."""


class Apply(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Does what several commands say, or nothing if one of them cannot be done.

    Attributes:
        commands: In this order.
    """

    commands: list[Part]


Command = (
    Declare
    | Delete
    | Move
    | Moved
    | Recover
    | Primaries
    | PrimariesMoved
    | Raise
    | Supports
    | Set
    | DeclareExchange
    | DeleteExchange
    | DeclareQueue
    | DeleteQueue
    | Bind
    | Unbind
    | EndIncarnations
    | Apply
)

_FIELDS = {each.__name__: len(each.__struct_fields__) for each in Command.__args__}


class Declaration(msgspec.Struct, frozen=True, array_like=True):
    """Something declared.

    Attributes:
        number: Its own, and never another one's.
        kind: What it is.
        vhost: Its virtual host.
        name: Its name there.
        options: As given.
    """

    number: int
    kind: Kind
    vhost: str
    name: str
    options: dict[str, Value]


class Outcome(msgspec.Struct, frozen=True):
    """What a command did.

    Attributes:
        declaration: What it is about, as it stands, or stood; None where there is none.
        has_changed: Whether the command changed anything.
        problem: Why it did not do what it says; empty where it did.
        entry: What it is about where that is a part of the topology.
        changes: What has come to the topology, and gone from it.
        parts: Of several commands that were one: each with what it did.
        failed: Which of these could not be done, from 0.
    """

    declaration: Declaration | None
    has_changed: bool
    problem: str = ""
    entry: Entry | None = None
    changes: tuple[Change, ...] = ()
    parts: tuple[tuple[Command, Outcome], ...] = ()
    failed: int | None = None


class _State(msgspec.Struct, array_like=True):
    level: int
    next_number: int
    declarations: list[Declaration]
    placements: list[tuple[int, Placement]] = []
    primaries: Placement | None = None
    supports: list[tuple[str, int]] = []
    topology: TopologyState | None = None


_encoder = msgspec.msgpack.Encoder(order="deterministic")
_commands = msgspec.msgpack.Decoder(Command)
_states = msgspec.msgpack.Decoder(_State)
_untyped = msgspec.msgpack.Decoder()


class Declarations:
    """All that is declared.

    Attributes:
        primaries: Who holds the declarations; None where it is who began the cluster.
        level: The feature level, which all rules of applying commands depend on.
        supports: The highest level that each member has announced, by container.
        topology: Exchanges, the queues that all share, and bindings.
    """

    def __init__(self, check: Check | None = None) -> None:
        """Initialize it; it knows nothing yet.

        Args:
            check: Says what is wrong with what is set; None finds nothing.
        """
        self._check = check
        self.primaries: Placement | None = None
        self.level = FIRST_LEVEL
        self.supports: dict[str, int] = {}
        self.topology = Topology()
        self._next_number = 1
        self._by_name: dict[tuple[Kind, str, str], Declaration] = {}
        self._by_number: dict[int, Declaration] = {}
        self._placements: dict[int, Placement] = {}
        self._digest = ""

    def __len__(self) -> int:
        return len(self._by_name)

    def find(self, kind: Kind, vhost: str, name: str) -> Declaration | None:
        """Return a declaration; None where there is none."""
        return self._by_name.get((kind, vhost, name))

    def numbered(self, number: int) -> Declaration | None:
        """Return the declaration of a number; None where there is none."""
        return self._by_number.get(number)

    def all(self, kind: Kind) -> list[Declaration]:
        """List the declarations of a kind, by virtual host and name."""
        return [self._by_name[key] for key in sorted(self._by_name) if key[0] == kind]

    def placement(self, declaration: Declaration) -> Placement | None:
        """Return where something is; None where it was never moved."""
        return self._placements.get(declaration.number)

    def apply(self, command: Command) -> Outcome:
        """Do what a command says.

        Raises:
            NotUnderstood: It raises the level beyond what this version knows; nothing is changed.
        """
        if isinstance(command, Raise | Supports):
            outcome = self._raise(command) if isinstance(command, Raise) else self._note(command)
            self._digest = ""
            return outcome
        if isinstance(command, Recover | Primaries | PrimariesMoved):
            outcome = self._apply_to_primaries(command)
            self._digest = ""
            return outcome
        if isinstance(command, TopologyCommand):
            return self._apply_to_topology(command)
        if isinstance(command, Apply):
            return self._apply_all(command)
        return self._apply_to_declared(command)

    def _apply_to_declared(self, command: Declare | Set | Delete | Move | Moved) -> Outcome:
        key = (command.kind, command.vhost, command.name)
        match command:
            case Declare():
                outcome = self._declare(key, command)
            case Set():
                outcome = self._set(key, command)
            case Delete():
                outcome = self._delete_with_queue(key)
            case Move():
                outcome = self._move(self._by_name.get(key), command)
            case Moved():
                outcome = self._end_move(self._by_name.get(key), command)
        if outcome.has_changed:
            self._digest = ""
        return outcome

    def _apply_all(self, command: Apply) -> Outcome:
        """Do what several commands say; where one of them cannot be done all stays as it was."""
        if self.level < APPLY_LEVEL:
            text = f"feature level {APPLY_LEVEL} is needed for that: the cluster's is {self.level}"
            return Outcome(None, False, text)
        before = (self._next_number, dict(self._by_name), dict(self._by_number))
        placements, next_entry = dict(self._placements), self.topology.next_number
        parts: list[tuple[Command, Outcome]] = []
        for index, each in enumerate(command.commands):
            outcome = self.apply(each)
            if outcome.problem:
                changes = [change for _, done in parts for change in done.changes]
                self.topology.take_back(changes, next_entry)
                self._next_number, self._by_name, self._by_number = before
                self._placements, self._digest = placements, ""
                return Outcome(outcome.declaration, False, outcome.problem, failed=index)
            parts.append((each, outcome))
        has_changed = any(outcome.has_changed for _, outcome in parts)
        return Outcome(None, has_changed, parts=tuple(parts))

    def _apply_to_topology(self, command: TopologyCommand) -> Outcome:
        if self.level < TOPOLOGY_LEVEL:
            text = (
                f"feature level {TOPOLOGY_LEVEL} is needed for that: the cluster's is {self.level}"
            )
            return Outcome(None, False, text)
        problem = ""
        if isinstance(command, DeclareQueue):
            problem = self._problem_with_queue(command)
        if problem:
            return Outcome(None, False, problem)
        result = self.topology.apply(command)
        return Outcome(None, bool(result.changes), *result[2:], result.entry, result.changes)

    def _problem_with_queue(self, command: DeclareQueue) -> str:
        """Return why a queue cannot be where it is to be: its records go with it, or are none."""
        is_replicated = ("queue", command.vhost, QUEUE_PREFIX + command.name) in self._by_name
        if is_replicated and command.home:
            return f"queue {command.name!r:.200} is there as a replicated one"
        if not is_replicated and not command.home:
            return f"the records of queue {command.name!r:.200} are not declared"
        return ""

    def _delete_with_queue(self, key: tuple[Kind, str, str]) -> Outcome:
        """Take a declaration back, and what the topology has of a queue whose records these are."""
        kind, vhost, name = key
        outcome = self._delete(key)
        if not outcome.has_changed or kind != "queue" or not name.startswith(QUEUE_PREFIX):
            return outcome
        result = self.topology.apply(DeleteQueue(vhost, name.removeprefix(QUEUE_PREFIX), 0))
        return Outcome(outcome.declaration, True, entry=result.entry, changes=result.changes)

    def _delete(self, key: tuple[Kind, str, str]) -> Outcome:
        kind, _, name = key
        found = self._by_name.get(key)
        if found is None:
            return Outcome(None, False)
        inside = self._first_in(name) if kind == VHOST else ""
        if inside:
            return Outcome(
                found,
                False,
                f"virtual host {name!r:.200} has the {inside}: delete it and all others first",
            )
        del self._by_name[key], self._by_number[found.number]
        self._placements.pop(found.number, None)
        return Outcome(found, True)

    def _first_in(self, vhost: str) -> str:
        """Name something that is declared in a virtual host; empty where nothing is."""
        found = next((each for each in self._by_name if each[1] == vhost), None)
        if found is not None:
            return f"{found[0]} {found[2]!r:.200}"
        return self.topology.first_in(vhost)

    def _raise(self, command: Raise) -> Outcome:
        if command.level <= self.level:
            return Outcome(None, False)
        if command.level != self.level + 1:
            return Outcome(None, False, f"the feature level is {self.level}: it rises one by one")
        primaries = self.primaries.voters if self.primaries is not None else command.present
        known = self.supports | command.supports
        without = lacking({*primaries, *known}, known, command.level)
        if without or not primaries:
            return Outcome(
                None,
                False,
                f"the feature level stays {self.level}: {', '.join(without) or 'nobody'} does not "
                f"know level {command.level} yet",
            )
        if command.level > HIGHEST_LEVEL:
            raise NotUnderstood(f"feature level {command.level}")
        self.level, self.supports = command.level, known
        return Outcome(None, True)

    def _note(self, command: Supports) -> Outcome:
        if self.level < ANNOUNCED_LEVEL:
            return Outcome(None, False, f"feature level {ANNOUNCED_LEVEL} is needed for that")
        before = self.supports.get(command.container, 0)
        if before == command.level:
            return Outcome(None, False)
        if command.level <= 0:
            del self.supports[command.container]
        elif command.container not in self.supports and len(self.supports) >= MEMBERS_MAX:
            return Outcome(None, False, f"{MEMBERS_MAX} containers have announced a level already")
        else:
            self.supports[command.container] = command.level
        return Outcome(None, True)

    def _apply_to_primaries(self, command: Recover | Primaries | PrimariesMoved) -> Outcome:
        match command:
            case Recover():
                return self._recover(command)
            case Primaries():
                return self._move_primaries(command)
        before = self.primaries
        if before is None or before.is_settled or before.move != command.move:
            return Outcome(None, False)
        self.primaries = before.done((command.term, command.index))
        return Outcome(None, True)

    def _move_primaries(self, command: Primaries) -> Outcome:
        problem = _problem_with_members(command.voters, [], command.present)
        if problem:
            return Outcome(None, False, problem)
        before = self.primaries or Placement(command.present, founders=command.present)
        if before.voters == command.voters:
            return Outcome(None, False)
        self._pin(before.voters)
        self.primaries = before.moved(command.voters, [])
        return Outcome(None, True)

    def _pin(self, primaries: list[str]) -> None:
        """Have what is where it is by the primaries stay there when they change."""
        for number, declaration in self._by_number.items():
            is_replicated = (
                declaration.kind in _KINDS and declaration.options.get("engine", "raft") == "raft"
            )
            if number not in self._placements and is_replicated:
                first = replicas_of(declaration, primaries)
                self._placements[number] = Placement(first, founders=first)

    def _recover(self, command: Recover) -> Outcome:
        before = self.primaries.move if self.primaries is not None else 0
        present = self.primaries.voters if self.primaries is not None else command.present
        if present:
            self._pin(present)
        self.primaries = _alone(command.only, before + 1)
        for number in command.held:
            if number in self._by_number:
                move = self._placements[number].move if number in self._placements else 0
                self._placements[number] = _alone(command.only, move + 1)
        return Outcome(None, True)

    def _declare(self, key: tuple[Kind, str, str], command: Declare) -> Outcome:
        problem = _problem_with(command)
        if problem:
            return Outcome(None, False, problem)
        found = self._by_name.get(key)
        if found is not None:
            return Outcome(found, False, _difference(found, command, self.placement(found)))
        if len(self._by_name) >= DECLARATIONS_MAX:
            return Outcome(None, False, f"{DECLARATIONS_MAX} declarations are there already")
        homed = self.topology.queue(command.vhost, command.name.removeprefix(QUEUE_PREFIX))
        if command.kind == "queue" and command.name.startswith(QUEUE_PREFIX) and homed is not None:
            text = f"{command.name!r:.200} is there, at its home {homed.home!r:.80}"
            return Outcome(None, False, text)
        made = Declaration(self._next_number, *key, command.options)
        self._next_number += 1
        self._by_name[key] = self._by_number[made.number] = made
        return Outcome(made, True)

    def _set(self, key: tuple[Kind, str, str], command: Set) -> Outcome:
        problem = self._problem_with_setting(command)
        if problem:
            return Outcome(None, False, problem)
        found = self._by_name.get(key)
        if found is not None and found.options == command.options:
            return Outcome(found, False)
        if found is None and command.expected is not None:
            return Outcome(None, False, f"there is no {command.kind} {command.name!r:.200}")
        if found is not None and found.options != command.expected:
            changed = "has been changed meanwhile: look at it, and try again"
            there = "is there already" if command.expected is None else changed
            return Outcome(found, False, f"{command.kind} {command.name!r:.200} {there}")
        full = "" if found is not None else self._why_full(command.kind)
        if full:
            return Outcome(None, False, full)
        number = self._next_number if found is None else found.number
        self._next_number += found is None
        made = Declaration(number, *key, command.options)
        self._by_name[key] = self._by_number[number] = made
        return Outcome(made, True)

    def _why_full(self, kind: Kind) -> str:
        if len(self._by_name) >= DECLARATIONS_MAX:
            return f"{DECLARATIONS_MAX} declarations are there already"
        if kind == VHOST and len(self.all(VHOST)) >= VHOSTS_MAX:
            return f"{VHOSTS_MAX} virtual hosts are declared already"
        return ""

    def _problem_with_setting(self, command: Set) -> str:
        level = SET_SINCE.get(command.kind)
        if level is None:
            return f"{command.kind!r:.80} cannot be set: there are {', '.join(SET_SINCE)}"
        if self.level < level:
            return (
                f"feature level {level} is needed for a {command.kind:.80}, and the "
                f"cluster's is {self.level}: it rises once every member has a version that knows it"
            )
        if not command.name or len(command.name.encode()) > NAME_BYTES_MAX:
            return f"a {command.kind}'s name has 1 to {NAME_BYTES_MAX} octets"
        if len(_encoder.encode(command.options)) > OPTIONS_BYTES_MAX:
            return f"the options of a {command.kind} have at most {OPTIONS_BYTES_MAX} octets"
        if self._check is None:
            return ""
        return self._check(command.kind, command.vhost, command.name, command.options)

    def _move(self, found: Declaration | None, command: Move) -> Outcome:
        if found is None or found.number != command.number or found.kind not in _KINDS:
            return Outcome(None, False, f"{command.kind} {command.name!r:.200} is not there")
        problem = _problem_with_members(command.voters, command.learners, command.present)
        if problem:
            return Outcome(found, False, problem)
        present = Placement(command.present, founders=command.present)
        before = self._placements.get(found.number, present)
        if (before.voters, before.learners) == (command.voters, command.learners):
            return Outcome(found, False)
        self._placements[found.number] = before.moved(command.voters, command.learners)
        return Outcome(found, True)

    def _end_move(self, found: Declaration | None, command: Moved) -> Outcome:
        before = self._placements.get(command.number)
        if found is None or found.number != command.number or before is None:
            return Outcome(None, False)
        if before.is_settled or before.move != command.move:
            return Outcome(found, False)
        self._placements[found.number] = before.done((command.term, command.index))
        return Outcome(found, True)

    def to_bytes(self) -> bytes:
        """Write the state down; equal states are equal octets."""
        return self.writer()()

    def writer(self) -> Callable[[], bytes]:
        """Return what writes the state down as it is now: it may be called later, in a thread."""
        if self.level < TOPOLOGY_LEVEL:
            octets = _encoder.encode(self._base())
            return lambda: octets
        base, topology = self._base(), self.topology
        next_number, entries = topology.next_number, topology.entries
        return lambda: _encoder.encode((*base, state_of(next_number, entries)))

    def _base(self) -> tuple[object, ...]:
        """Return the state without the topology, as a snapshot has it."""
        declared = [self._by_name[key] for key in sorted(self._by_name)]
        state = (self.level, self._next_number, declared)
        placements = sorted(self._placements.items())
        if self.level > FIRST_LEVEL:
            return (*state, placements, self.primaries, sorted(self.supports.items()))
        if self.primaries is not None:
            return (*state, placements, self.primaries)
        # As it was before anything could be moved, where nothing has been.
        return (*state, placements) if placements else state

    @classmethod
    def from_bytes(cls, data: bytes, check: Check | None = None) -> Declarations:
        """Read the state back.

        Args:
            data: As `to_bytes` wrote it.
            check: As for a new one.

        Raises:
            Malformed: It is none.
            NotUnderstood: It is of a higher feature level than this version knows.
        """
        try:
            match _untyped.decode(data):
                case [int(level), *_] if level > HIGHEST_LEVEL:
                    raise NotUnderstood(f"a snapshot of feature level {level}")
                case [_, *rest] if len(rest) >= len(_State.__struct_fields__):
                    raise NotUnderstood(f"a snapshot with {len(rest) + 1} fields")
            state = _states.decode(data)
        except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
            raise Malformed("a cluster's state", str(error)) from error
        if state.level < FIRST_LEVEL:
            raise Malformed("a cluster's state", f"its feature level is {state.level}")
        made = cls(check)
        made.level, made.supports = state.level, dict(state.supports)
        made._next_number = state.next_number
        made._by_name = {(each.kind, each.vhost, each.name): each for each in state.declarations}
        made._by_number = {each.number: each for each in state.declarations}
        made._placements = dict(state.placements)
        made.primaries = state.primaries
        if state.topology is not None:
            made.topology = Topology.restored(state.topology)
        return made

    @property
    def next_number(self) -> int:
        """The number that the next declaration gets; none was ever higher."""
        return self._next_number

    @property
    def digest(self) -> str:
        """Returns what two containers compare to know that they agree."""
        if not self._digest:
            self._digest = hashlib.sha256(_encoder.encode(self._base())).hexdigest()
        if self.level < TOPOLOGY_LEVEL:
            return self._digest
        return hashlib.sha256(self._digest.encode() + self.topology.digest).hexdigest()


def encode(command: Command) -> bytes:
    """Write a command."""
    return _encoder.encode(command)


def decode(data: bytes) -> Command:
    """Read a command.

    Raises:
        Malformed: It is none, which every version says of it.
        NotUnderstood: It may be one of a later version.
    """
    try:
        match _untyped.decode(data):
            case [str(tag), *_] if tag not in _FIELDS:
                raise NotUnderstood(f"a command {tag!r:.80}")
            case [str(tag), *fields] if len(fields) > _FIELDS[tag]:
                raise NotUnderstood(f"a command {tag!r} with {len(fields)} fields")
            case ["Apply", [*parts]]:
                for each in parts:
                    _demand_understood(each)
        command: Command = _commands.decode(data)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise Malformed("a declaration", str(error)) from error
    return command


def _demand_understood(part: object) -> None:
    """See that one of several commands is none of a later version.

    Raises:
        NotUnderstood: It may be.
    """
    match part:
        case [str(tag), *fields] if len(fields) > _FIELDS.get(tag, -1):
            raise NotUnderstood(f"a command {tag!r:.80} with {len(fields)} fields")


def _problem_with(command: Declare) -> str:
    if command.kind not in _KINDS:
        return f"{command.kind!r:.80} cannot be declared: there are {', '.join(_KINDS)}"
    if not command.name or len(command.name.encode()) > NAME_BYTES_MAX:
        return f"a {command.kind}'s name has 1 to {NAME_BYTES_MAX} octets"
    if len(command.options) > OPTIONS_MAX:
        return f"a declaration has at most {OPTIONS_MAX} options"
    return ""


def replicas_of(declaration: Declaration, primaries: list[str]) -> list[str]:
    """Return who holds something first: who is named, or some primaries, each in turn."""
    named = declaration.options.get("replicas")
    if isinstance(named, list) and named:
        return list(named)
    first = declaration.number % len(primaries)
    return (primaries[first:] + primaries[:first])[:REPLICAS]


def _alone(container: str, move: int) -> Placement:
    """Return the placement of what a container holds alone since a move."""
    return Placement([container], founders=[container], move=move, settled=move)


def _problem_with_members(voters: list[str], learners: list[str], present: list[str]) -> str:
    try:
        for members in ((voters, learners), (present, [])):
            Membership(*map(tuple, members)).check()
    except ValueError as error:
        return str(error)
    return ""


def _difference(found: Declaration, command: Declare, placement: Placement | None) -> str:
    """Return what is declared otherwise; empty where nothing is.

    Something that was moved may be declared as it was at first, or as it is.
    """
    for key in sorted(found.options.keys() | command.options.keys()):
        there, wanted = found.options.get(key), command.options.get(key)
        if key == "replicas" and placement is not None and wanted == placement.voters:
            continue
        if there != wanted:
            return (
                f"{found.name!r:.200} is there with {key} = {there}, not {wanted}: delete it "
                "first, or declare it with the options it has"
            )
    return ""
