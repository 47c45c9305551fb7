"""What a configuration read again changes."""

from __future__ import annotations

import pytest

from cogwork.config.difference import difference
from cogwork.config.reading import parse

USER = """
[[user]]
name = "alice"
password_hash = "scrypt$16384$8$1$c2FsdHNhbHRzYWx0c2FsdA==$NSQDZDgyBdmShxmx4LUzp3u3wtRZ2DJDv0pC"
permissions = [{ address = "queue/#", rights = ["send"] }]
"""


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("", "", []),
        (
            "",
            "[limits]\nidle_timeout_s = 30\nconnections = 5",
            ["limits.connections: 10000 → 5", "limits.idle_timeout_s: 60.0 → 30.0"],
        ),
        ("id = 'a'", "id = 'b'", ['id: "a" → "b" (needs a restart)']),
        ("", "data_dir = 'd'", ['data_dir: unset → "d" (needs a restart)']),
        (
            "listen = ['localhost:1', 'localhost:2']",
            "listen = ['localhost:3', 'localhost:2']",
            [
                "listen[localhost:1]: removed (needs a restart)",
                "listen[localhost:3]: added (needs a restart)",
            ],
        ),
        (
            "[[listen]]\nport = 1\ntransport = 'amqps'\ntls = { certificate = 'a' }",
            "[[listen]]\nport = 1\ntransport = 'wss'\ntls = { certificate = 'b' }",
            [
                'listen[127.0.0.1:1].transport: "amqps" → "wss" (needs a restart)',
                'listen[127.0.0.1:1].tls.certificate: "a" → "b"',
            ],
        ),
        ("listen = [':0', ':0']", "listen = [':0']", ["listen[127.0.0.1:0 #2]: removed (needs"]),
        (
            USER,
            USER.replace('"send"', '"send", "manage"'),
            [
                'user[alice].permissions: [{address = "queue/#", rights = ["send"]}] → '
                '[{address = "queue/#", rights = ["send", "manage"]}]'
            ],
        ),
        (USER, USER.replace("YWx0", "YWx1"), ["user[alice].password_hash: changed"]),
        ("", USER, ["user[alice]: added"]),
        (USER, f"{USER}mesh = true", ["user[alice].mesh: false → true"]),
        (
            "link = ['h:1', 'h:2']\n[mesh]\nheartbeat_s = 2",
            "link = ['h:1', 'h:3']",
            [
                "link[h:2]: removed (needs a restart)",
                "link[h:3]: added (needs a restart)",
                "mesh.heartbeat_s: 2.0 → 1.0 (needs a restart)",
            ],
        ),
        (
            "",
            "[mesh]\nredirect_margin = 5\nready_timeout_s = 1",
            [
                "mesh.ready_timeout_s: 3.0 → 1.0 (needs a restart)",
                "mesh.redirect_margin: unset → 5",
            ],
        ),
        (
            "[[link]]\nurl = 'amqps://a:hunter2@h:1'\ncost = 2",
            "[[link]]\nurl = 'amqps://a:hunter3@h:1'",
            ["link[h:1].url: changed", "link[h:1].cost: 2 → 1 (needs a restart)"],
        ),
        (
            "[[address]]\nprefix = 'a'",
            "[[address]]\nprefix = 'b'\n[[address]]\nprefix = 'a'\nttl_s = 5",
            ["address[a].ttl_s: unset → 5.0", "address[b]: added"],
        ),
        (
            "[[queue]]\naddress = 'queue/a'",
            "[[queue]]\naddress = 'queue/a'\ndelay = false\n[[queue]]\naddress = 'queue/b'",
            ["queue[queue/a].delay: true → false (needs a restart)", "queue[queue/b]: added"],
        ),
        (
            "[[vhost]]\nname = 'blue'",
            "[[vhost]]\nname = 'blue'\n[[vhost.address]]\npattern = '#'\n[[vhost.node]]\n"
            "address = 'a'\nkind = 'sink'",
            ["vhost[blue].address[#]: added", "vhost[blue].node[a]: added (needs a restart)"],
        ),
        (
            "[[node]]\naddress = 'a'\nkind = 'sink'",
            "[[node]]\naddress = 'a'\nkind = 'sink'\noptions = { loud = true }",
            ["node[a].options: loud changed (needs a restart)"],
        ),
    ],
)
def test_each_change_is_a_line(old: str, new: str, lines: list[str]) -> None:
    found = [str(change) for change in difference(parse(old), parse(new))]
    assert len(found) == len(lines)
    for text, wanted in zip(found, lines, strict=True):
        assert text.startswith(wanted)
        assert text.endswith("(needs a restart)") == ("(needs" in wanted)


def test_secrets_stay_secret() -> None:
    changes = difference(parse(USER), parse(USER.replace("YWx0", "YWx1")))
    assert "scrypt" not in str(changes)


def test_of_what_only_its_owner_reads_the_names_are_told() -> None:
    """Where the servers of an engine are, and how to log in there, is among its options."""
    told = '[[engine]]\nname = "redis"\n[engine.options]\nprefix = "a"\nurl = "redis://:{}@here"\n'
    gateway = "[gateway.zeromq]\ncurve_secret_file = '{}'"
    old, new = (parse((told + gateway).replace("{}", each)) for each in ("secret", "hidden"))
    assert list(map(str, difference(old, new))) == [
        "engine[redis].options: url changed (needs a restart)",
        "gateway: zeromq changed (needs a restart)",
    ]
