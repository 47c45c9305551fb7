"""RabbitMQ's exported definitions, and what of them can be declared here.

The file comes from `rabbitmqctl export_definitions`, or `GET /api/definitions` of its management.
Each entry is judged for itself: what is malformed, or has no counterpart, is listed with the reason
and keeps nothing else from being taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from cogwork.amqp.errors import CogworkError
from cogwork.cli.migration.patterns import addresses_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = (
    "BadDefinitions",
    "Binding",
    "Exchange",
    "Left",
    "Permission",
    "Plan",
    "Policy",
    "Queue",
    "plan_of",
)

INT64 = range(-(2**63), 2**63)
DEPTH_MAX = 20
"""Of tables and arrays in an argument: beyond it no client writes any."""

ADMINISTRATOR = "administrator"
MANAGEMENT = "$management"

BUILT_IN = "amq."
"""What RabbitMQ and Cogwork both have from the start begins so."""

RIGHTS = {"configure": "manage", "write": "send", "read": "receive"}

NEW_PASSWORD = "needs a new password: RabbitMQ's hash is not one that is checked here"
OTHERS = {
    "topic_permissions": (
        "topic permission",
        "permissions by routing key: bind and permit queues instead",
    ),
    "parameters": (
        "parameter",
        "of RabbitMQ's plug-ins: links do what federation does, consumers what shovels do",
    ),
}
"""What has no counterpart, and what to do instead."""


class BadDefinitions(CogworkError):
    """A file that holds no definitions."""


ShortText = Annotated[str, msgspec.Meta(max_length=255)]
Table = dict[str, Any]


class _User(msgspec.Struct, frozen=True):
    name: ShortText
    tags: list[str] | str = []


class _Vhost(msgspec.Struct, frozen=True):
    name: ShortText


class _Grant(msgspec.Struct, frozen=True):
    user: ShortText
    vhost: ShortText
    configure: str = ""
    write: str = ""
    read: str = ""


class Policy(msgspec.Struct, frozen=True, rename={"apply_to": "apply-to"}):
    """A policy, as RabbitMQ has it."""

    name: ShortText
    vhost: ShortText
    pattern: str
    definition: Table
    priority: int = 0
    apply_to: str = "all"


class Exchange(msgspec.Struct, frozen=True):
    """An exchange, as RabbitMQ has it."""

    name: ShortText
    vhost: ShortText
    type: ShortText
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: Table = {}


class Queue(msgspec.Struct, frozen=True):
    """A queue, as RabbitMQ has it."""

    name: ShortText
    vhost: ShortText
    durable: bool = True
    auto_delete: bool = False
    arguments: Table = {}


class Binding(msgspec.Struct, frozen=True):
    """A binding, as RabbitMQ has it."""

    source: ShortText
    vhost: ShortText
    destination: ShortText
    destination_type: str
    routing_key: ShortText = ""
    arguments: Table = {}

    @property
    def name(self) -> str:
        """What people know it by."""
        return f"{self.source} -> {self.destination} by {self.routing_key!r}"


@dataclass(frozen=True)
class Permission:
    """What a user may do here; `vhost` is empty for the default one, `*` for all."""

    user: str
    vhost: str
    address: str
    rights: tuple[str, ...]

    @property
    def name(self) -> str:
        """What people know it by."""
        return f"{self.user} at {self.address}"


@dataclass(frozen=True)
class Left:
    """What is not taken.

    Attributes:
        kind: `queue`, `policy`.
        name: Which one, with its virtual host.
        reason: Why, and what to do instead.
    """

    kind: str
    name: str
    reason: str


@dataclass
class Plan:
    """What is declared, in this order, and what is not.

    Attributes:
        vhosts: Besides the default one.
        users: Their names; none of them has a password yet.
        permissions: Of those users.
        policies: All.
        exchanges: All but the built-in ones.
        queues: All.
        bindings: All but those of the default exchange, which every queue has.
        left: What has no counterpart.
        notes: What is taken in part, and what remains to be done.
    """

    vhosts: list[str] = field(default_factory=list)
    users: list[str] = field(default_factory=list)
    permissions: list[Permission] = field(default_factory=list)
    policies: list[Policy] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    queues: list[Queue] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    notes: list[Left] = field(default_factory=list)


def plan_of(data: bytes) -> Plan:
    """Read definitions, and decide on each of them.

    Args:
        data: The file.

    Raises:
        BadDefinitions: It is not a JSON object with lists.
    """
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadDefinitions(f"no JSON: {error}") from error
    if not isinstance(document, dict):
        raise BadDefinitions("no JSON object (expected what rabbitmqctl export_definitions writes)")
    plan = Plan()
    if not document.keys() & {
        "queues",
        "exchanges",
        "bindings",
        "users",
        "vhosts",
        "policies",
        *OTHERS,
    }:
        plan.left.append(Left("file", "definitions", "it defines nothing"))
    for kind, key, read in _Reader(plan).kinds():
        for entry in _listed(document, key):
            try:
                read(entry)
            except (msgspec.ValidationError, _NotTaken) as error:
                plan.left.append(Left(kind, _name_of(entry), str(error)))
    for key, (kind, reason) in OTHERS.items():
        plan.left += [Left(kind, _name_of(entry), reason) for entry in _listed(document, key)]
    return plan


class _NotTaken(Exception):
    """Why an entry is not taken."""


def _listed(document: Table, key: str) -> list[Any]:
    found = document.get(key, [])
    if not isinstance(found, list):
        raise BadDefinitions(f"{key} is no array")
    return found


class _Reader:
    """Reads entries, of each kind with a method of its own."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def kinds(self) -> Iterator[tuple[str, str, Callable[[object], None]]]:
        """Yield each kind, where it stands in the file, and what reads it, in the plan's order."""
        yield "vhost", "vhosts", self._vhost
        yield "user", "users", self._user
        yield "permission", "permissions", self._grant
        yield "policy", "policies", self._policy
        yield "exchange", "exchanges", self._exchange
        yield "queue", "queues", self._queue
        yield "binding", "bindings", self._binding

    def _vhost(self, entry: object) -> None:
        found = msgspec.convert(entry, _Vhost)
        if found.name != "/":
            self._plan.vhosts.append(found.name)

    def _user(self, entry: object) -> None:
        found = msgspec.convert(entry, _User)
        self._plan.users.append(found.name)
        self._plan.notes.append(Left("user", found.name, NEW_PASSWORD))
        tags = found.tags.split(",") if isinstance(found.tags, str) else found.tags
        if ADMINISTRATOR in tags:
            rights = ("send", "manage")
            self._plan.permissions.append(Permission(found.name, "*", MANAGEMENT, rights))

    def _grant(self, entry: object) -> None:
        self._plan.permissions.extend(_permissions_of(msgspec.convert(entry, _Grant)))

    def _policy(self, entry: object) -> None:
        found = msgspec.convert(entry, Policy)
        _check_arguments(found.definition)
        self._plan.policies.append(found)

    def _exchange(self, entry: object) -> None:
        found = msgspec.convert(entry, Exchange)
        _check_arguments(found.arguments)
        if found.name and not found.name.startswith(BUILT_IN):
            self._plan.exchanges.append(found)

    def _queue(self, entry: object) -> None:
        found = msgspec.convert(entry, Queue)
        _check_arguments(found.arguments)
        if found.arguments.get("x-queue-type") == "stream":
            raise _NotTaken("a stream: make one with `cogwork stream create`, with a capture")
        self._plan.queues.append(found)

    def _binding(self, entry: object) -> None:
        found = msgspec.convert(entry, Binding)
        _check_arguments(found.arguments)
        if found.destination_type not in ("queue", "exchange"):
            raise _NotTaken(f"{found.destination_type!r:.40} (expected queue or exchange)")
        if found.source:
            self._plan.bindings.append(found)


def _permissions_of(found: _Grant) -> list[Permission]:
    rights: dict[str, list[str]] = {}
    for key, right in RIGHTS.items():
        expression = getattr(found, key)
        addresses = addresses_of(expression)
        if addresses is None:
            raise _NotTaken(
                f"{key} {expression!r:.80} is no pattern of addresses: add it by `cogwork "
                "permission add`"
            )
        for address in addresses:
            rights.setdefault(address, []).append(right)
    vhost = "" if found.vhost == "/" else found.vhost
    return [Permission(found.user, vhost, address, tuple(each)) for address, each in rights.items()]


def _check_arguments(arguments: Table) -> None:
    """Refuse what no table of AMQP 0-9-1 holds."""
    todo: list[tuple[object, int]] = [(arguments, 0)]
    while todo:
        value, depth = todo.pop()
        if depth > DEPTH_MAX:
            raise _NotTaken(f"an argument has more than {DEPTH_MAX} tables in each other")
        if isinstance(value, int) and value not in INT64:
            raise _NotTaken(f"the argument {value:.3e} does not fit 64 bits")
        if isinstance(value, dict):
            if any(len(str(key).encode()) > 128 for key in value):
                raise _NotTaken("the name of an argument is longer than 128 bytes")
            todo += [(each, depth + 1) for each in value.values()]
        elif isinstance(value, list):
            todo += [(each, depth + 1) for each in value]


def _name_of(entry: object) -> str:
    """Say which entry it is, whatever it holds."""
    if not isinstance(entry, dict):
        return f"{entry!r:.60}"
    keys: Sequence[str] = ("component", "name", "user", "source", "destination")
    name = " ".join(f"{entry[key]!s:.100}" for key in keys if key in entry) or f"{entry!r:.60}"
    vhost = entry.get("vhost")
    return name if vhost in (None, "/") else f"{name} in {vhost!s:.100}"
