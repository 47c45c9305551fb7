"""What RabbitMQ's definitions become, hostile ones among them; nothing is declared here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.main import run
from cogwork.cli.migration.definitions import BadDefinitions, Permission, plan_of
from cogwork.cli.migration.patterns import addresses_of

if TYPE_CHECKING:
    from pathlib import Path

    from cogwork.cli.migration.definitions import Plan


def planned(**document: Any) -> Plan:
    return plan_of(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("expression", "addresses"),
    [
        (".*", ["#"]),
        ("^.*$", ["#"]),
        ("", []),
        ("^$", []),
        ("^orders$", ["queue/orders", "exchange/orders"]),
        (r"^shop\.orders$", ["queue/shop.orders", "exchange/shop.orders"]),
        ("^(a|b)$", ["queue/a", "exchange/a", "queue/b", "exchange/b"]),
        ("^(?:a|b)$", ["queue/a", "exchange/a", "queue/b", "exchange/b"]),
        (r"^shop\..*", ["queue/shop.*.#", "exchange/shop.*.#"]),
        (r"^shop\..*$", ["queue/shop.*.#", "exchange/shop.*.#"]),
        ("orders", None),
        ("^orders", None),
        ("^shop.*", None),
        ("^shop.orders$", None),
        ("^a|b$", None),
        ("^(a|(b))$", None),
        ("^[a-z]+$", None),
        (r"^\d$", None),
        (r"^a\.\*$", None),
        (r"^a\#$", None),
        ("^a$\n", None),
        ("^(a|)$", None),
        ("(", None),
    ],
)
def test_an_expression_is_a_pattern_where_it_means_the_same(
    expression: str, addresses: list[str] | None
) -> None:
    assert addresses_of(expression) == addresses


def test_users_need_a_new_password_and_keep_their_rights() -> None:
    plan = planned(
        users=[
            {"name": "shop", "password_hash": "c2FsdA==", "tags": []},
            {"name": "root", "password_hash": "c2FsdA==", "tags": "monitoring,administrator"},
        ],
        permissions=[
            {"user": "shop", "vhost": "/", "configure": "^$", "write": ".*", "read": "^orders$"},
            {"user": "shop", "vhost": "blue", "configure": ".*", "write": ".*", "read": ".*"},
            {"user": "root", "vhost": "/", "configure": "^x", "write": "", "read": ""},
        ],
    )
    assert plan.users == ["shop", "root"]
    assert ["password" in each.reason for each in plan.notes] == [True, True]
    assert plan.permissions == [
        Permission("root", "*", "$management", ("send", "manage")),
        Permission("shop", "", "#", ("send",)),
        Permission("shop", "", "queue/orders", ("receive",)),
        Permission("shop", "", "exchange/orders", ("receive",)),
        Permission("shop", "blue", "#", ("manage", "send", "receive")),
    ]
    (left,) = plan.left
    assert (left.kind, left.name) == ("permission", "root")
    assert "c2FsdA" not in str(plan)


def test_what_both_have_from_the_start_is_not_declared() -> None:
    plan = planned(
        vhosts=[{"name": "/"}, {"name": "blue"}],
        exchanges=[
            {"name": name, "vhost": "/", "type": "direct"} for name in ("", "amq.topic", "mine")
        ],
        bindings=[
            {
                "source": source,
                "vhost": "/",
                "destination": "q",
                "destination_type": "queue",
                "routing_key": "q",
                "arguments": {},
            }
            for source in ("", "mine")
        ],
    )
    assert plan.vhosts == ["blue"]
    assert [each.name for each in plan.exchanges] == ["mine"]
    assert [each.source for each in plan.bindings] == ["mine"]
    assert plan.left == []


def test_what_has_no_counterpart_is_named_with_what_to_do() -> None:
    plan = planned(
        policies=[{"name": "ha", "vhost": "blue", "pattern": ""}],
        topic_permissions=[{"user": "ann", "vhost": "/"}],
        parameters=[{"component": "shovel", "name": "north", "vhost": "/", "value": {}}],
        queues=[{"name": "log", "vhost": "/", "arguments": {"x-queue-type": "stream"}}],
    )
    assert [(each.kind, each.name) for each in plan.left] == [
        ("policy", "ha in blue"),
        ("queue", "log"),
        ("topic permission", "ann"),
        ("parameter", "shovel north"),
    ]
    assert all(each.reason for each in plan.left)


DEEP: Any = {}
for _ in range(30):
    DEEP = {"a": DEEP}

HOSTILE: list[Any] = [
    None,
    7,
    "queue",
    [],
    {},
    {"name": None, "vhost": "/"},
    {"name": ["a"], "vhost": "/"},
    {"name": "a"},
    {"name": "a" * 256, "vhost": "/"},
    {"name": "a", "vhost": "/", "durable": "yes"},
    {"name": "a", "vhost": "/", "arguments": []},
    {"name": "a", "vhost": "/", "arguments": {"x-max-length": 2**70}},
    {"name": "a", "vhost": "/", "arguments": {"x": DEEP}},
    {"name": "a", "vhost": "/", "arguments": {"k" * 200: 1}},
    {"name": "\x1b[2J\u202e" * 500, "vhost": "\x00" * 500},
]


@pytest.mark.parametrize("entry", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_entry_costs_itself_alone(entry: Any) -> None:
    good = {"name": "good", "vhost": "/"}
    plan = planned(queues=[entry, good], exchanges=[entry], bindings=[entry], users=[entry])
    assert [each.name for each in plan.queues] == ["good"]
    assert plan.exchanges == []
    assert plan.bindings == []
    assert sum(each.kind == "queue" for each in plan.left) == 1
    assert all(len(each.name) < 1000 and len(each.reason) < 1000 for each in plan.left)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no json",
        b"\xff\xfe",
        b"[]",
        b"7",
        b'{"queues": 7}',
        b'{"queues": {"a": 1}}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
    ids=range(9),
)
def test_a_file_that_holds_no_definitions(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadDefinitions):
        plan_of(data)
    file = tmp_path / "definitions.json"
    file.write_bytes(data)
    assert run(["migrate", "rabbitmq", str(file), "--dry-run"]) == ExitCode.ERROR
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)


def test_a_dry_run_tells_and_shows_no_terminal_tricks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps({"queues": [{"name": "a", "vhost": "/"}]}))
    assert run(["migrate", "rabbitmq", str(file), "--dry-run"]) == ExitCode.OK
    assert "would be declared: 0 vhosts, 0 users" in capsys.readouterr().out
    file.write_text(json.dumps({"queues": [{"name": "\x1b[2J\u202e"}]}))
    assert run(["migrate", "rabbitmq", str(file), "--dry-run"]) == ExitCode.ERROR
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "\u202e" not in told
    assert run(["migrate", "rabbitmq", str(file), "--dry-run", "--json"]) == ExitCode.ERROR
    assert len(json.loads(capsys.readouterr().out)["left"]) == 1
    assert run(["migrate", "rabbitmq", str(file)]) == ExitCode.USAGE


def test_definitions_of_nothing_are_told() -> None:
    assert [each.reason for each in planned(rabbit_version="3.13").left] == ["it defines nothing"]
