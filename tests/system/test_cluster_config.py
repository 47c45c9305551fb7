"""A cluster's document: shown, previewed, applied as a whole or not at all, the same everywhere."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from cogwork.cluster.levels import HIGHEST_LEVEL

from .meshes import Member, linked, meshed
from .served import OPEN, READY_TIMEOUT_S, done, ran, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = ("a", "b", "c")
DOCUMENT = """
[limits]
connections = 900

[[vhost]]
name = "west"

[[user]]
name = "bob"
mesh = true
permissions = [{ address = "queue/#", rights = ["send"] }]

[[stream]]
address = "stream/orders"
engine = "raft"

[[queue]]
address = "work/jobs"
durability = "replicated"

[[exchange]]
name = "logs"
type = "topic"

[[policy]]
name = "ttl"
pattern = "^mails"
definition = { message-ttl = 60000 }

[[binding]]
source = "logs"
destination = "queue/jobs"
key = "a.#"
"""


@pytest.fixture
def members(tmp_path: Path) -> Iterator[dict[str, Member]]:
    def head(name: str) -> str:
        return f'data_dir = "{tmp_path / name}"\n[cluster]\nprimaries = ["a", "b", "c"]\n'

    edges = (("a", "b"), ("b", "c"), ("c", "a"))
    with meshed(tmp_path, NAMES, edges, OPEN, head=head) as made:
        linked(made.values())
        for each in made.values():
            within(READY_TIMEOUT_S, partial(is_ready, each), "all is known")
        yield made


def is_ready(member: Member) -> bool:
    facts = member.served.status()["container"]["cluster"]
    return bool(facts["is_current"]) and facts["level"] == HIGHEST_LEVEL


def shows(member: Member, wanted: dict[str, Any]) -> bool:
    return config(member, "show") == wanted


def config(member: Member, verb: str, *words: str) -> dict[str, Any]:
    printed = done("cluster", "config", verb, member.url, *words, "--json").stdout
    found: dict[str, Any] = json.loads(printed)
    return found


def kinds(found: dict[str, Any]) -> list[tuple[str, str]]:
    return sorted((each["kind"], each["name"]) for each in found["changes"])


def test_a_document_is_previewed_applied_and_the_same_everywhere(
    members: dict[str, Member], tmp_path: Path
) -> None:
    file = tmp_path / "document.toml"
    file.write_text(DOCUMENT)
    a, b, c = (members[name] for name in NAMES)
    before = config(a, "show")
    preview = config(b, "apply", str(file), "--dry-run")
    assert [kind for kind, _ in kinds(preview)] == sorted(
        ("limit", "vhost", "user", "permission", "stream", "queue", "exchange", "binding", "policy")
    )
    assert config(a, "show") == before, "a preview changes nothing"
    assert kinds(config(c, "apply", str(file))) == kinds(preview)
    assert config(b, "apply", str(file))["changes"] == [], "it has what the document says"
    shown = config(a, "show")
    for each in (b, c):
        within(READY_TIMEOUT_S, partial(shows, each, shown), "all show it")
    rows = json.loads(done("user", "list", b.url, "--json").stdout)
    assert [row["name"] for row in rows if row["origin"] == "cluster"] == ["bob"]
    done("send", c.url, "stream/orders", "hello")
    done("send", b.url, "work/jobs", "hello")
    done("exchange", "publish", b.url, "logs", "hello", "--key", "a.b")
    printed = done("cluster", "config", "show", a.url).stdout
    file.write_text(printed)
    assert config(a, "apply", str(file), "--prune")["changes"] == [], "what is shown is what is"


def test_one_wrong_entry_refuses_all_and_is_named_with_its_line(
    members: dict[str, Member], tmp_path: Path
) -> None:
    a, file = members["a"], tmp_path / "document.toml"
    file.write_text(DOCUMENT)
    config(a, "apply", str(file))
    before = config(a, "show")
    changed = DOCUMENT.replace("900", "800").replace('type = "topic"', 'type = "fanout"')
    file.write_text(changed)
    line = changed[: changed.index("[[exchange]]")].count("\n") + 1
    for more in ((), ("--dry-run",)):
        found = ran("cluster", "config", "apply", a.url, str(file), *more)
        assert found.returncode == 1
        assert f"{file}:{line}: exchange logs: " in found.stderr
        assert "nothing is changed" in found.stderr
    file.write_text(DOCUMENT.replace('destination = "queue/jobs"', 'destination = "exchange/no"'))
    found = ran("cluster", "config", "apply", a.url, str(file))
    assert (found.returncode, '"exchange/no"' in found.stderr) == (3, True), found.stderr
    file.write_text(DOCUMENT + "\n[[listen]]\nport = 5\n")
    found = ran("cluster", "config", "apply", a.url, str(file))
    assert (found.returncode, "files of containers" in found.stderr) == (3, True), found.stderr
    assert config(a, "show") == before


def test_what_a_document_lacks_goes_with_prune_alone_and_streams_never(
    members: dict[str, Member], tmp_path: Path
) -> None:
    a, file = members["a"], tmp_path / "document.toml"
    file.write_text(DOCUMENT)
    config(a, "apply", str(file))
    file.write_text("[limits]\nconnections = 700\n")
    assert kinds(config(a, "apply", str(file))) == [("limit", "connections")]
    gone = config(a, "apply", str(file), "--prune")
    assert sorted(kind for kind, _ in kinds(gone)) == sorted(
        ("vhost", "user", "permission", "exchange", "binding", "policy")
    )
    shown = config(a, "show")
    assert shown["limits"] == {"connections": 700}
    assert [each["address"] for each in shown["stream"]] == ["stream/orders"]
    assert kinds(config(a, "set", "limits.connections", "600")) == [("limit", "connections")]
    assert config(a, "show")["limits"] == {"connections": 600}
    noted = done("cluster", "config", "show", a.url).stderr
    assert "limit connections: the cluster's holds" in noted
    found = ran("cluster", "config", "set", a.url, "user.nobody.mesh", "true")
    assert (found.returncode, "no 'user'" in found.stderr) == (2, True), found.stderr
