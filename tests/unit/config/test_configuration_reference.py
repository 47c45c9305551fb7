"""The reference of the configuration is complete: every key, with its type and its default."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from cogwork.config import settings
from cogwork.config.limits import Limits, UserLimits
from cogwork.config.reading import parse
from cogwork.plugin.shape import describe
from cogwork.router.addresses import DEFAULT_RULES

REFERENCE = Path(__file__).parents[3] / "docs" / "configuration.md"

SECTIONS: dict[str, type[msgspec.Struct]] = {
    "The top level": settings.Configuration,
    "`[[listen]]`": settings.Listen,
    "`[listen.tls]`": settings.Tls,
    "`[[link]]`": settings.Link,
    "`[dial]`": settings.Dial,
    "`[mesh]`": settings.MeshOptions,
    "`[cluster]`": settings.Cluster,
    "`[[user]]`": settings.User,
    "`[user.limits]`": UserLimits,
    "`[[user.permissions]]`, `[[anonymous.permissions]]`": settings.Permission,
    "`[[group]]`": settings.Group,
    "`[oauth]`": settings.OAuth,
    "`[anonymous]`": settings.Anonymous,
    "`[[address]]`": settings.Address,
    "Options of a queue": settings.QueueOptions,
    "`[[queue]]`": settings.Queue,
    "`[[stream]]`": settings.Stream,
    "`[[exchange]]`": settings.Exchange,
    "`[[binding]]`": settings.Binding,
    "`[[policy]]`": settings.Policy,
    "`[[schema]]`": settings.Schema,
    "`[telemetry]`": settings.Telemetry,
    "`[[audit]]`": settings.Audit,
    "`[security_log]`": settings.SecurityLogOptions,
    "`[[engine]]`": settings.Engine,
    "`[[node]]`": settings.Node,
    "`[[vhost]]`": settings.Vhost,
    "`[amqp091]`": settings.Amqp091Options,
    "`[arrow]`": settings.Arrow,
    "`[limits]`": Limits,
}

IN_WORDS = {
    "listen": "`127.0.0.1:5672`",
    "anonymous": "everything",
    "limits": "as below",
    "sasl": "what is safe",
    "in_doubt": "of the prefix",
}
"""Defaults that are more than a value."""


def structs_below(root: type[msgspec.Struct]) -> set[type[msgspec.Struct]]:
    """List every Struct that the configuration is made of."""
    found: set[type[msgspec.Struct]] = set()

    def walk(declared: msgspec.inspect.Type) -> None:
        if isinstance(declared, msgspec.inspect.StructType) and declared.cls not in found:
            found.add(declared.cls)
            for each in declared.fields:
                walk(each.type)
        elif isinstance(declared, msgspec.inspect.UnionType):
            for one in declared.types:
                walk(one)
        elif isinstance(declared, msgspec.inspect.ListType):
            walk(declared.item_type)

    walk(msgspec.inspect.type_info(root))
    return found


def rows_of(section: str) -> dict[str, list[str]]:
    """Read the table below a heading: type and default of each key."""
    text = REFERENCE.read_text()
    match = re.search(
        rf"^##+ {re.escape(section)}\n(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE
    )
    assert match, f"no section {section}"
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (\S.*) \|$", match[1], re.MULTILINE)
    return {key: [declared, default] for key, declared, default, _ in rows}


def default_in_words(struct: type[msgspec.Struct], each: msgspec.inspect.Field) -> str:
    """Return what holds where the key is left out."""
    if struct is settings.User and each.encode_name == "permissions":
        return "`[]`"
    is_table = each.encode_name in ("amqp091", "arrow", "cluster", "mesh")
    if struct is settings.Configuration and is_table:
        return "as below"
    if each.encode_name in IN_WORDS:
        return IN_WORDS[each.encode_name]
    if each.required:
        return "required"
    if each.default_factory is not msgspec.NODEFAULT:
        return "none" if "tables" in describe(each.type) else f"`{each.default_factory()}`"
    return "none" if each.default is None else f"`{msgspec.json.encode(each.default).decode()}`"


def expected_rows(struct: type[msgspec.Struct]) -> dict[str, list[str]]:
    declared = msgspec.inspect.type_info(struct)
    assert isinstance(declared, msgspec.inspect.StructType)
    inherited = set(settings.QueueOptions.__struct_encode_fields__)
    is_own = struct is settings.QueueOptions
    return {
        each.encode_name: [describe(each.type), default_in_words(struct, each)]
        for each in declared.fields
        if is_own
        or not issubclass(struct, settings.QueueOptions)
        or each.encode_name not in inherited
    }


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_is_in_the_reference_with_its_type_and_default(section: str) -> None:
    assert rows_of(section) == expected_rows(SECTIONS[section])


def test_every_table_is_in_the_reference() -> None:
    described = set(SECTIONS.values()) - {settings.QueueOptions}
    assert structs_below(settings.Configuration) == described


def test_every_example_is_a_configuration() -> None:
    first, *others = re.findall(r"```toml\n(.*?)```", REFERENCE.read_text(), re.DOTALL)
    assert tomllib.loads(first)
    salt = "c2FsdHNhbHRzYWx0c2FsdA=="
    assert parse(first.replace("5$...", f"5${salt}${salt}")).id == "north"
    for each in others:
        parse('data_dir = "data"\n' + each)


def test_every_built_in_rule_is_in_the_reference() -> None:
    text = REFERENCE.read_text().partition("### The built-in rules\n")[2].partition("\n##")[0]
    rows = re.findall(r"^\| (.+?) \| `(\w+)` \| (\w+) \| \S", text, re.MULTILINE)
    shown = {
        (prefix.strip("`/"), kind, distribution)
        for prefixes, kind, distribution in rows
        for prefix in prefixes.replace("any other", "").split(", ")
    }
    assert shown == {(rule.prefix, rule.kind, str(rule.distribution)) for rule in DEFAULT_RULES}
