"""What a cluster has for all containers, as one list of entries; and the way from it to another.

Theory of operation. An entry is a kind, a virtual host, a name and options, in plain values. What
is there and what is wanted are compared here, at one container; the commands that lead from one to
the other are one command, which names what it expects to find. So either all of it is done, or, if
somebody was faster or one entry cannot be, nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cogwork.amqp091.tables import decode_table, encode_table
from cogwork.cluster.declarations import LIMIT, SET_SINCE, Declare, Delete, Set
from cogwork.cluster.topology import (
    Bind,
    DeclareExchange,
    DeleteExchange,
    SharedBinding,
    SharedExchange,
    Unbind,
)
from cogwork.container.cluster.declared_limits import problem_of_limit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cogwork.cluster.declarations import Declarations, Part
    from cogwork.cluster.topology import Topology

__all__ = ("DocumentEntry", "EntryRefused", "Step", "entries_of", "steps_between")

DECLARED = ("stream", "queue")
EXCHANGE, BINDING = "exchange", "binding"

Options = dict[str, Any]


class DocumentEntry(NamedTuple):
    """Something that a cluster has.

    Attributes:
        kind: What it is: `user`, `permission`, `vhost`, `limit`, `stream`, `queue`, `exchange` …
        vhost: Its virtual host.
        name: Its name there; for a binding all of it, as people read it.
        options: What it has.
    """

    kind: str
    vhost: str
    name: str
    options: Options

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is known by."""
        return self.kind, self.vhost, self.name


class Step(NamedTuple):
    """A difference, and what makes it none.

    Attributes:
        entry: What is wanted; what is there if it is to go.
        before: What is there; None for nothing.
        is_removed: Whether it is to go.
        command: Does it.
    """

    entry: DocumentEntry
    before: Options | None
    is_removed: bool
    command: Part


class EntryRefused(ValueError):
    """Nothing is done, as one entry cannot be.

    Attributes:
        key: The entry's kind, virtual host and name.
    """

    def __init__(self, key: tuple[str, str, str], problem: str) -> None:
        """Say what is wrong.

        Args:
            key: Of the entry.
            problem: What is wrong with it.
        """
        super().__init__(problem)
        self.key = key


def entries_of(declarations: Declarations) -> list[DocumentEntry]:
    """List what a cluster has for all containers, sorted; what is not durable is left out."""
    found = [
        DocumentEntry(each.kind, each.vhost, each.name, dict(each.options))
        for kind in (*SET_SINCE, *DECLARED)
        for each in declarations.all(kind)
    ]
    found += _topology_entries(declarations.topology)
    return sorted(found, key=lambda each: each.key)


def _topology_entries(topology: Topology) -> Iterator[DocumentEntry]:
    lasting = {each.name for each in topology if isinstance(each, SharedExchange) and each.durable}
    for each in topology:
        if isinstance(each, SharedExchange) and each.durable:
            yield DocumentEntry(
                EXCHANGE,
                each.vhost,
                each.name,
                {
                    "type": each.exchange_type,
                    "durable": True,
                    "auto_delete": each.auto_delete,
                    "internal": each.internal,
                    "arguments": decode_table(each.arguments),
                },
            )
        elif isinstance(each, SharedBinding):
            is_lasting = each.source in lasting or each.source.startswith("amq.")
            if is_lasting and _lasts(topology, each, lasting):
                yield _binding_entry(each)


def _lasts(topology: Topology, binding: SharedBinding, lasting: set[str]) -> bool:
    """Return whether where a binding leads outlives all containers."""
    if binding.kind == EXCHANGE:
        return binding.destination in lasting
    queue = topology.queue(binding.vhost, binding.destination)
    return queue is None or queue.durable


def _binding_entry(binding: SharedBinding) -> DocumentEntry:
    destination = f"{binding.kind}/{binding.destination}"
    options = {
        "source": binding.source,
        "destination": destination,
        "key": binding.binding_key.decode(errors="surrogateescape"),
        "arguments": decode_table(binding.arguments),
    }
    return DocumentEntry(BINDING, binding.vhost, binding_name(options), options)


def binding_name(options: Mapping[str, Any]) -> str:
    """Return what a binding is known by, which says all of it."""
    arguments = options.get("arguments") or {}
    more = f" with {sorted(arguments.items())}" if arguments else ""
    key = options.get("key", "")
    return f"{options['source']} to {options['destination']} by {key!r}{more}"


def steps_between(
    declarations: Declarations, wanted: Iterable[DocumentEntry], *, is_pruning: bool
) -> list[Step]:
    """Return what leads from what a cluster has to what it is to have.

    Args:
        declarations: What it has.
        wanted: What it is to have.
        is_pruning: Whether what is not wanted goes; streams and queues never do, as they hold
            records and items.

    Raises:
        EntryRefused: An entry cannot be made of what is there.
    """
    there = {each.key: each for each in entries_of(declarations)}
    steps, named = [], set()
    for entry in sorted(map(_as_declared, wanted), key=lambda each: _order(each.kind)):
        if entry.key in named:
            raise EntryRefused(entry.key, f"{entry.kind} {entry.name!r:.200} is there twice")
        named.add(entry.key)
        found = there.get(entry.key)
        if found is None or found.options != entry.options:
            before = None if found is None else found.options
            steps.append(Step(entry, before, False, _to_make(declarations, entry, before)))
    if is_pruning:
        gone = [each for key, each in there.items() if key not in named]
        for entry in sorted(gone, key=lambda each: -_order(each.kind)):
            if entry.kind not in DECLARED:
                command = _to_remove(declarations, entry)
                steps.append(Step(entry, entry.options, True, command))
    return steps


def _as_declared(entry: DocumentEntry) -> DocumentEntry:
    """Return an entry with the options that a cluster keeps: the engine `raft` goes unsaid."""
    if entry.kind == "stream" and entry.options.get("engine") == "raft":
        kept = {key: value for key, value in entry.options.items() if key != "engine"}
        return entry._replace(options=kept)
    return entry


def _order(kind: str) -> int:
    """Return when something is made: virtual hosts first, bindings after both of their ends."""
    order = ("vhost", *SET_SINCE, *DECLARED, EXCHANGE, BINDING)
    return order.index(kind) if kind in order else len(order)


def _to_make(declarations: Declarations, entry: DocumentEntry, before: Options | None) -> Part:
    """Return what makes an entry, or changes the one that is there.

    Raises:
        EntryRefused: The one that is there cannot be changed, or the entry is none.
    """
    kind, vhost, name, options = entry
    if kind in SET_SINCE:
        problem = problem_of_limit(name, options.get("value")) if kind == LIMIT else ""
        if problem:
            raise EntryRefused(entry.key, problem)
        return Set(kind, vhost, name, options, before)
    if kind in DECLARED:
        if before is not None:
            text = (
                f"{kind} {name!r:.200} is there with other options: {_differing(before, options)}"
            )
            raise EntryRefused(entry.key, f"{text}; delete it first")
        if kind == "queue" and options.get("durability") != "replicated":
            text = f'queue {name!r:.200} needs durability = "replicated" to be a cluster\'s'
            raise EntryRefused(entry.key, text)
        return Declare(kind, vhost, name, options)
    if kind == EXCHANGE:
        if before is not None:
            text = f"exchange {name!r:.200} is there with {_differing(before, options)}"
            raise EntryRefused(entry.key, f"{text}; delete it first")
        return _exchange(vhost, name, options)
    if kind == BINDING:
        source, end, destination, key, arguments = _parts(options)
        number = _number_of(declarations.topology, vhost, end, destination)
        return Bind(vhost, source, end, destination, number, key, arguments)
    raise EntryRefused(entry.key, f"a cluster has no {kind!r:.80}")


def _exchange(vhost: str, name: str, options: Options) -> DeclareExchange:
    return DeclareExchange(
        vhost,
        name,
        str(options.get("type", "direct")),
        True,
        bool(options.get("auto_delete", False)),
        bool(options.get("internal", False)),
        encode_table(options.get("arguments") or {}),
        None,
    )


def _number_of(topology: Topology, vhost: str, kind: str, name: str) -> int:
    """Return the number of what a binding leads to; 0 for what has none, or is made before it."""
    found = topology.exchange(vhost, name) if kind == EXCHANGE else topology.queue(vhost, name)
    return 0 if found is None else found.number


def _to_remove(declarations: Declarations, entry: DocumentEntry) -> Part:
    kind, vhost, name, options = entry
    if kind == EXCHANGE:
        found = declarations.topology.exchange(vhost, name)
        return DeleteExchange(vhost, name, 0 if found is None else found.number, False)
    if kind == BINDING:
        source, end, destination, key, arguments = _parts(options)
        return Unbind(vhost, source, end, destination, key, arguments)
    return Delete(kind, vhost, name)


def _parts(options: Options) -> tuple[str, str, str, bytes, bytes]:
    kind, _, destination = str(options["destination"]).partition("/")
    key = str(options.get("key", "")).encode(errors="surrogateescape")
    table = cast("dict[str, Any]", options.get("arguments") or {})
    return str(options["source"]), kind, destination, key, encode_table(table)


def _differing(before: Options, options: Options) -> str:
    """Return what is there otherwise."""
    keys = sorted(key for key in before.keys() | options.keys() if _is_other(key, before, options))
    told = (f"{key} = {before.get(key)!r:.80}, not {options.get(key)!r:.80}" for key in keys)
    return ", ".join(told)


def _is_other(key: str, before: Options, options: Options) -> bool:
    return before.get(key) != options.get(key)
