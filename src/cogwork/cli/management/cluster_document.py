"""What a cluster has for all containers, as a document in the syntax of `cogwork.toml`.

Theory of operation. The cluster's entries are flat: a user, each of its permissions and each of its
limits are entries of their own. In the document they are one table, as in a configuration file, and
the reader of those files reads it, with its checks and its lines. A table of a user that has only
permissions or limits does not declare the user: that is one of a container's own file.
"""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

from cogwork.cluster.declarations import POLICY, ROOT, ROOT_NAME
from cogwork.config.errors import UNKNOWN_KEY, ConfigurationError
from cogwork.config.reading import parse
from cogwork.config.settings import Stream
from cogwork.config.toml_lines import find_lines, line_of
from cogwork.container.cluster.document import BINDING, EXCHANGE, DocumentEntry, binding_name
from cogwork.container.cluster.settings import OPTIONS, permission_name, policy_of
from cogwork.container.connections.shares import own_limit_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Place = tuple[str | int, ...]

__all__ = ("as_text", "entries_in", "tables_of")

BELOW_VHOST = ("stream", "queue", "exchange", "binding", "policy")
TOP = ("root", "limits", "user", "group", "vhost", *BELOW_VHOST)
"""The tables of a document; what else a configuration has is a container's own."""

USER_KEYS = ("password_hash", "scram_verifiers", "groups", "mesh")
"""Any of these in a user's table declares the user."""

WHOM = ("user", "group")
RULES = {"permissions": False, "deny": True}

Table = dict[str, Any]


def tables_of(entries: Iterable[DocumentEntry]) -> Table:
    """Return the document that some entries make, as nested tables."""
    document: Table = {}
    for entry in entries:
        match entry.kind:
            case "root":
                document[ROOT] = dict(entry.options)
            case "limit":
                _put_limit(document, entry)
            case "permission":
                _put_permission(document, entry)
            case "user":
                options = entry.options or {"groups": []}
                _named(document, "user", entry.name).update(options)
            case "vhost":
                _named(document, "vhost", entry.name)
            case _:
                inside = _named(document, "vhost", entry.vhost) if entry.vhost else document
                inside.setdefault(entry.kind, []).append(_table_of(entry))
    return {key: document[key] for key in TOP if key in document}


def _table_of(entry: DocumentEntry) -> Table:
    if entry.kind == BINDING:
        return {key: value for key, value in entry.options.items() if value not in ("", {})}
    if entry.kind == POLICY:
        policy = policy_of(entry.name, entry.options)
        own = {key: entry.options[key] for key in OPTIONS[POLICY] if key in entry.options}
        return {"name": entry.name, **own, "definition": policy.definition}
    if entry.kind == EXCHANGE:
        kept = {key: value for key, value in entry.options.items() if value not in (False, {})}
        return {"name": entry.name, **kept}
    if entry.kind == "stream":
        known = Stream.__struct_fields__
        own = {key: value for key, value in entry.options.items() if key in known}
        more = {key: value for key, value in entry.options.items() if key not in known}
        return {"address": f"stream/{entry.name}", **own, **({"options": more} if more else {})}
    return {"address": entry.name, **entry.options}


def _put_limit(document: Table, entry: DocumentEntry) -> None:
    value, name = entry.options["value"], entry.name
    if name.startswith("user/"):
        user, _, key = name.removeprefix("user/").rpartition("/")
        _named(document, "user", user).setdefault("limits", {})[key] = value
    else:
        document.setdefault("limits", {})[name] = value


def _put_permission(document: Table, entry: DocumentEntry) -> None:
    options = entry.options
    whom = "group" if options.get("group") is not None else "user"
    keys = ("address", "rights", "vhost")
    rule = {key: options[key] for key in keys if options.get(key) is not None}
    rules = "deny" if options.get("deny") else "permissions"
    _named(document, whom, options[whom]).setdefault(rules, []).append(rule)


def _named(document: Table, kind: str, name: str) -> Table:
    """Return the table of a name in an array, made if it is not there."""
    tables: list[Table] = document.setdefault(kind, [])
    for each in tables:
        if each["name"] == name:
            return each
    tables.append({"name": name})
    return tables[-1]


def as_text(document: Mapping[str, Any], path: str = "") -> str:
    """Write a document as TOML."""
    parts = []
    for key, value in document.items():
        name = f"{path}.{key}" if path else key
        if isinstance(value, dict) and not path:
            parts.append(f"[{name}]\n" + "".join(_lines_of(value)))
        elif _is_tables(value) and key in TOP:
            parts += [_array_item(name, each) for each in value]
    return "\n".join(parts)


def _array_item(name: str, table: Table) -> str:
    nested = {key: value for key, value in table.items() if _is_tables(value) and key in TOP}
    own = {key: value for key, value in table.items() if key not in nested}
    text = f"[[{name}]]\n" + "".join(_lines_of(own))
    below = as_text(nested, name)
    return f"{text}\n{below}" if below else text


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _lines_of(table: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{_key(key)} = {_value(value)}\n" for key, value in table.items())


def _key(key: str) -> str:
    is_bare = key.isascii() and key.replace("_", "a").replace("-", "a").isalnum()
    return key if is_bare else json.dumps(key, ensure_ascii=False)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list | tuple):
        if _is_tables(value):
            return "[\n" + "".join(f"  {_value(each)},\n" for each in value) + "]"
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items()) + " }"
        )
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def entries_in(text: str, source: str) -> dict[tuple[str, str, str], tuple[DocumentEntry, int]]:
    """Return the entries of a document, each with its line, by what it is known by.

    Args:
        text: TOML.
        source: What messages call it.

    Raises:
        ConfigurationError: It is no document of a cluster; the error names the line.
    """
    parse(text, source, beside=(ROOT,))
    document, lines = tomllib.loads(text), find_lines(text)
    _refuse_own(document, lines, source)
    found: dict[tuple[str, str, str], tuple[DocumentEntry, int]] = {}
    for entry, place in _entries_of(document):
        line = line_of(lines, place)
        if entry.key in found:
            what, expected = f"{entry.name!r:.200} again", "each once"
            raise ConfigurationError(source, line, entry.kind, what, expected)
        found[entry.key] = entry, line
    return found


def _refuse_own(document: Table, lines: dict[Place, int], source: str) -> None:
    """Refuse what is not the cluster's.

    Raises:
        ConfigurationError: There is something.
    """
    if not isinstance(document.get(ROOT, {}), dict):
        line, found = line_of(lines, (ROOT,)), repr(document[ROOT])
        raise ConfigurationError(source, line, ROOT, found, "a table")
    for key in document:
        if key not in TOP:
            _refuse((key,), lines, source, f"one of {', '.join(TOP)}: what else there is, ")
    for number, vhost in enumerate(document.get("vhost", ())):
        for key in vhost:
            if key not in ("name", *BELOW_VHOST):
                _refuse(("vhost", number, key), lines, source, f"one of {', '.join(BELOW_VHOST)}: ")
    known = ("name", *USER_KEYS, *RULES, "limits")
    for number, user in enumerate(document.get("user", ())):
        for key in user:
            if key not in known:
                _refuse(("user", number, key), lines, source, f"one of {', '.join(known)}: ")


def _refuse(place: Place, lines: dict[Place, int], source: str, expected: str) -> None:
    key = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in place)
    text = f"{expected}this belongs into the files of containers"
    raise ConfigurationError(source, line_of(lines, place), key[1:], UNKNOWN_KEY, text)


def _entries_of(document: Table) -> Iterator[tuple[DocumentEntry, Place]]:
    if ROOT in document:
        yield DocumentEntry(ROOT, "", ROOT_NAME, _root_options(document[ROOT])), (ROOT,)
    for name, value in document.get("limits", {}).items():
        yield DocumentEntry("limit", "", name, {"value": value}), ("limits", name)
    for whom in WHOM:
        for number, table in enumerate(document.get(whom, ())):
            yield from _of_whom(whom, table, (whom, number))
    yield from _of_vhost("", document, ())
    for number, table in enumerate(document.get("vhost", ())):
        place = ("vhost", number)
        yield DocumentEntry("vhost", "", table["name"], {}), place
        yield from _of_vhost(table["name"], table, place)


def _root_options(table: Table) -> Table:
    """Return who is not to become the root, as a cluster keeps it: sorted, and no false flag."""
    options = {key: value for key, value in table.items() if value is not False}
    disabled = options.get("disabled", [])
    if isinstance(disabled, list):
        options["disabled"] = sorted(map(str, disabled))
    return options


def _of_whom(whom: str, table: Table, place: Place) -> Iterator[tuple[DocumentEntry, Place]]:
    name = table["name"]
    declared = {key: table[key] for key in USER_KEYS if key in table}
    if whom == "user" and declared:
        if declared == {"groups": []}:
            declared = {}
        yield DocumentEntry("user", "", name, declared), place
    for rules, is_denied in RULES.items():
        for number, rule in enumerate(table.get(rules, ())):
            options = {whom: name, **rule, **({"deny": True} if is_denied else {})}
            key = permission_name(options)
            yield DocumentEntry("permission", "", key, options), (*place, rules, number)
    for key, value in table.get("limits", {}).items():
        limit = own_limit_name(name, key)
        yield DocumentEntry("limit", "", limit, {"value": value}), (*place, "limits", key)


def _of_vhost(vhost: str, tables: Table, above: Place) -> Iterator[tuple[DocumentEntry, Place]]:
    for kind in BELOW_VHOST:
        for number, table in enumerate(tables.get(kind, ())):
            yield _entry_of(kind, vhost, table), (*above, kind, number)


def _entry_of(kind: str, vhost: str, table: Table) -> DocumentEntry:
    rest = {key: value for key, value in table.items() if key not in ("address", "name")}
    if kind == BINDING:
        options = {"key": "", "arguments": {}, **table}
        return DocumentEntry(kind, vhost, binding_name(options), options)
    if kind == EXCHANGE:
        fixed = {"type": "direct", "durable": True, "auto_delete": False, "internal": False}
        return DocumentEntry(kind, vhost, table["name"], {**fixed, "arguments": {}, **rest})
    if kind == POLICY:
        definition = rest.pop("definition")
        return DocumentEntry(kind, vhost, table["name"], {**rest, **definition})
    if kind == "stream":
        more = rest.pop("options", {})
        name = str(table["address"]).removeprefix("/").removeprefix("stream/")
        return DocumentEntry(kind, vhost, name, {**rest, **more})
    return DocumentEntry(kind, vhost, str(table["address"]).removeprefix("/"), rest)
