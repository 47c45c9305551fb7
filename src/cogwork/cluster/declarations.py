"""What has been declared in a cluster: a state that equal commands make equal everywhere.

Theory of operation. Commands come in one order, from the stream `$cluster`; each has an answer, and
an error is an answer, too. The state has no clock and no chance in it. Written down, equal states
are equal octets: names are sorted, and the same holds for the names of options. So the digest of a
container that joined late is the leader's.
"""

from __future__ import annotations

import hashlib

import msgspec

from cogwork.consensus.errors import Malformed

__all__ = (
    "DECLARATIONS_MAX",
    "Command",
    "Declaration",
    "Declarations",
    "Declare",
    "Delete",
    "Kind",
    "Outcome",
    "Value",
    "decode",
    "encode",
)

VERSION = 1

DECLARATIONS_MAX = 100_000
"""A cluster has no more: every container holds all of them."""

NAME_BYTES_MAX = 1_024
OPTIONS_MAX = 64

Kind = str
"""What is declared: `stream` or `queue`."""

Value = bool | int | float | str | list[str] | None
"""What an option may be."""

_KINDS = ("stream", "queue")


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


Command = Declare | Delete


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
    """

    declaration: Declaration | None
    has_changed: bool
    problem: str = ""


class _State(msgspec.Struct, array_like=True):
    version: int
    next_number: int
    declarations: list[Declaration]


_encoder = msgspec.msgpack.Encoder(order="deterministic")
_commands = msgspec.msgpack.Decoder(Command)
_states = msgspec.msgpack.Decoder(_State)


class Declarations:
    """All that is declared."""

    def __init__(self) -> None:
        self._next_number = 1
        self._by_name: dict[tuple[Kind, str, str], Declaration] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def find(self, kind: Kind, vhost: str, name: str) -> Declaration | None:
        """Returns a declaration; None where there is none."""
        return self._by_name.get((kind, vhost, name))

    def all(self, kind: Kind) -> list[Declaration]:
        """Lists the declarations of a kind, by virtual host and name."""
        return [self._by_name[key] for key in sorted(self._by_name) if key[0] == kind]

    def apply(self, command: Command) -> Outcome:
        """Does what a command says."""
        if isinstance(command, Delete):
            gone = self._by_name.pop((command.kind, command.vhost, command.name), None)
            return Outcome(gone, gone is not None)
        problem = _problem_with(command)
        if problem:
            return Outcome(None, False, problem)
        key = (command.kind, command.vhost, command.name)
        found = self._by_name.get(key)
        if found is not None:
            return Outcome(found, False, _difference(found, command))
        if len(self._by_name) >= DECLARATIONS_MAX:
            return Outcome(None, False, f"{DECLARATIONS_MAX} declarations are there already")
        made = Declaration(self._next_number, *key, command.options)
        self._next_number += 1
        self._by_name[key] = made
        return Outcome(made, True)

    def to_bytes(self) -> bytes:
        """Writes the state down; equal states are equal octets."""
        declared = [self._by_name[key] for key in sorted(self._by_name)]
        return _encoder.encode(_State(VERSION, self._next_number, declared))

    @classmethod
    def from_bytes(cls, data: bytes) -> Declarations:
        """Reads the state back.

        Raises:
            Malformed: It is none, or of another version.
        """
        try:
            state = _states.decode(data)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise Malformed("a cluster's state", str(error)) from error
        if state.version != VERSION:
            raise Malformed("a cluster's state", f"its version is {state.version}, not {VERSION}")
        made = cls()
        made._next_number = state.next_number
        made._by_name = {(each.kind, each.vhost, each.name): each for each in state.declarations}
        return made

    @property
    def digest(self) -> str:
        """Returns what two containers compare to know that they agree."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


def encode(command: Command) -> bytes:
    """Writes a command."""
    return _encoder.encode(command)


def decode(data: bytes) -> Command:
    """Reads a command.

    Raises:
        Malformed: It is none.
    """
    try:
        command: Command = _commands.decode(data)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise Malformed("a declaration", str(error)) from error
    return command


def _problem_with(command: Declare) -> str:
    if command.kind not in _KINDS:
        return f"{command.kind!r:.80} cannot be declared: there are {', '.join(_KINDS)}"
    if not command.name or len(command.name.encode()) > NAME_BYTES_MAX:
        return f"a {command.kind}'s name has 1 to {NAME_BYTES_MAX} octets"
    if len(command.options) > OPTIONS_MAX:
        return f"a declaration has at most {OPTIONS_MAX} options"
    return ""


def _difference(found: Declaration, command: Declare) -> str:
    """Says what is declared otherwise; empty where nothing is."""
    for key in sorted(found.options.keys() | command.options.keys()):
        there, wanted = found.options.get(key), command.options.get(key)
        if there != wanted:
            return (
                f"{found.name!r:.200} is there with {key} = {there}, not {wanted}: delete it "
                "first, or declare it with the options it has"
            )
    return ""
