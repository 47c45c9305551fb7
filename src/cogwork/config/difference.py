"""What a configuration read again changes, line by line, and what of it waits for a restart.

Theory of operation. Two tables are compared key by key. Entries of an array of tables are the same
entry where they name the same thing (a user's name, a queue's address), wherever they stand. What
can be taken over at once holds for connections and links made from then on.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, structs

from cogwork.config.secrets import SECRET_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cogwork.config.settings import Configuration

__all__ = ("Change", "difference")

_IDENTITIES: dict[str, Callable[[Any], str]] = {
    "listen": attrgetter("endpoint"),
    "link": attrgetter("target.endpoint"),
    "user": attrgetter("name"),
    "group": attrgetter("name"),
    "vhost": attrgetter("name"),
    "address": lambda rule: str(rule.prefix or rule.pattern),
    "queue": attrgetter("address"),
    "stream": attrgetter("address"),
    "schema": attrgetter("address"),
    "exchange": attrgetter("name"),
    "binding": lambda it: f"{it.source} {it.destination} {it.key} {it.arguments or ''}".strip(),
    "policy": attrgetter("name"),
    "audit": attrgetter("queue"),
    "engine": attrgetter("name"),
    "node": attrgetter("address"),
}

RESTART_KEYS = frozenset(
    {"id", "data_dir", "workers", "listen", "link", "mesh", "cluster", "engine", "node", "arrow"}
    | {"telemetry", "audit", "security_log", "gateway"}
)
"""What the process holds on to: its identity, its directory, sockets, links, nodes and records."""

LIVE_MESH_KEYS = frozenset({"redirect_margin"})
"""What every newcomer is looked at anew for."""

LIVE_LISTEN_KEYS = frozenset(
    {"tls", "sasl", "origins", "advertise", "require_tls"}
    | {"proxy_protocol", "proxy_from", "allow", "deny"}
)
"""What every new connection on a listener looks up anew."""

LIVE_LINK_KEYS = frozenset(
    {"url", "password", "password_file", "token_file", "certificate", "key", "key_password"}
    | {"key_password_file", "ca", "crl_file", "minimum_version", "ciphers"}
)
"""What every new attempt at a link to the same place looks up anew."""

DECLARED = frozenset({"queue", "stream", "exchange", "binding"})
"""What is declared when it is read; what was declared stays."""

_Path = tuple[str, ...]


class Change(NamedTuple):
    """One difference between two configurations.

    Attributes:
        key: Where, such as `user[alice].permissions`.
        what: What happened to it, without secrets.
        needs_restart: Whether the running container cannot take it over.
    """

    key: str
    what: str
    needs_restart: bool

    def __str__(self) -> str:
        return f"{self.key}: {self.what}{' (needs a restart)' if self.needs_restart else ''}"


def difference(old: Configuration, new: Configuration) -> list[Change]:
    """List what is not the same in two configurations.

    Args:
        old: The one in force.
        new: The one that was read.

    Returns:
        A change for each key; empty where they say the same.
    """
    return list(_compare_tables((), old, new))


def _compare_tables(path: _Path, old: Struct, new: Struct) -> Iterator[Change]:
    for each in structs.fields(type(old)):
        key, before, after = each.encode_name, getattr(old, each.name), getattr(new, each.name)
        if before == after:
            continue
        if key in _IDENTITIES and isinstance(before, list):
            yield from _compare_entries((*path, key), before, after)
        elif isinstance(before, Struct) and isinstance(after, Struct):
            yield from _compare_tables((*path, key), before, after)
        else:
            yield _change((*path, key), _describe_change(key, before, after))


def _compare_entries(path: _Path, old: Sequence[Struct], new: Sequence[Struct]) -> Iterator[Change]:
    before, after = _by_identity(path[-1], old), _by_identity(path[-1], new)
    for identity in before | after:
        entry = (*path, f"[{identity}]")
        if identity not in after:
            yield _change(entry, "removed")
        elif identity not in before:
            yield _change(entry, "added")
        else:
            yield from _compare_tables(entry, before[identity], after[identity])


def _by_identity(key: str, entries: Sequence[Struct]) -> dict[str, Struct]:
    """Name the entries; those that share a name (listeners on any free port) are numbered."""
    named: dict[str, Struct] = {}
    for entry in entries:
        name = identity = _IDENTITIES[key](entry)
        number = 1
        while name in named:
            number += 1
            name = f"{identity} #{number}"
        named[name] = entry
    return named


def _change(path: _Path, what: str) -> Change:
    key = "".join(part if part.startswith("[") else f".{part}" for part in path)
    return Change(key.removeprefix("."), what, _needs_restart(path, what))


def _needs_restart(path: _Path, what: str) -> bool:
    if path[0] == "listen" and path[2:3] and path[2] in LIVE_LISTEN_KEYS:
        return False
    if path[0] == "link" and path[2:3] and path[2] in LIVE_LINK_KEYS:
        return False
    if path[0] == "mesh" and path[1] in LIVE_MESH_KEYS:
        return False
    if path[0] in ("user", "group", "anonymous"):
        return False
    if not DECLARED.isdisjoint(path):
        return what != "added"  # a queue that holds items keeps the options it was declared with
    return not RESTART_KEYS.isdisjoint(path)


def _describe_change(key: str, before: object, after: object) -> str:
    if key in SECRET_KEYS:
        return "changed"
    if isinstance(before, dict) and isinstance(after, dict):
        return _describe_free(before, after)
    return f"{_inline(before)} → {_inline(after)}"


def _describe_free(before: dict[str, object], after: dict[str, object]) -> str:
    """Name the keys of a table of which only its owner knows what is secret."""
    missing = object()
    names = [
        name
        for name in sorted({*before, *after})
        if before.get(name, missing) != after.get(name, missing)
    ]
    return f"{', '.join(names)} changed"


def _inline(value: object) -> str:
    """Write a value in the manner of TOML; what a table leaves to its default is left out."""
    match value:
        case None:
            return "unset"
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case list():
            return f"[{', '.join(map(_inline, value))}]"
        case dict() | Struct():
            return _inline_table(value)
        case _:
            return str(value)


def _inline_table(table: dict[str, object] | Struct) -> str:
    entries = _set_keys(table) if isinstance(table, Struct) else table
    shown = {key: "..." if key in SECRET_KEYS else _inline(it) for key, it in entries.items()}
    return f"{{{', '.join(f'{key} = {value}' for key, value in shown.items())}}}"


def _set_keys(table: Struct) -> dict[str, object]:
    keys = ((each, getattr(table, each.name)) for each in structs.fields(type(table)))
    return {each.encode_name: value for each, value in keys if value != each.default}
