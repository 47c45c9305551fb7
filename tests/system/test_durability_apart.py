"""Linked containers that keep one queue otherwise: whoever declares it, or looks, is told."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from .meshes import linked, meshed
from .served import done, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .meshes import Member

QUEUE = "queue/kept"
RULE = '[[address]]\nprefix = "queue/"\ndurability = "%s"\n'


@pytest.fixture
def members(tmp_path: Path) -> Iterator[dict[str, Member]]:
    """Three containers with disks; the rules of the last one have all queues on its own."""

    def dress(member: Member) -> None:
        member.configuration += RULE % ("disk" if member.id == "c" else "memory")

    def head(name: str) -> str:
        return f'data_dir = "{tmp_path}/{name}"\n'

    with meshed(tmp_path, "abc", [("a", "b"), ("b", "c")], head=head, dress=dress) as made:
        linked(made.values())
        yield made


def shown(member: Member) -> tuple[str, str | None]:
    """Return a container's durability of the queue, and what it says of others."""
    rows = json.loads(done("queue", "list", member.url, "--json").stdout)
    row = next(each for each in rows if each["address"] == QUEUE)
    return row["durability"], row["problem"]


def test_containers_say_that_they_keep_a_queue_otherwise(members: dict[str, Member]) -> None:
    a, b = members["a"], members["b"]
    done("send", b.url, QUEUE, "in memory there")
    declare = ("queue", "declare", a.url, QUEUE, "--durability", "disk")
    declared = done(*declare)
    assert declared.stdout == f"{QUEUE} declared, on disk\n"
    assert declared.stderr == f"cogwork: {QUEUE}: not on disk at container b\n"
    assert json.loads(done(*declare, "--json").stdout) == {
        "address": QUEUE,
        "is_new": False,
        "durability": "disk",
        "problem": "not on disk at container b",
    }
    assert shown(a) == ("disk", "not on disk at container b")
    in_memory = ("memory", "in memory here, on disk at containers a, c")
    within(30.0, lambda: shown(b) == in_memory, "the other one knows")
    assert b.log().count(f"queue '{QUEUE}' is in memory here but on disk at container") == 1
    table = done("queue", "list", b.url).stdout
    assert "durability" in table
    assert "in memory here" in table


def test_containers_that_keep_a_queue_alike_say_nothing(members: dict[str, Member]) -> None:
    a, b = members["a"], members["b"]
    options = (QUEUE, "--durability", "disk")
    done("queue", "declare", a.url, *options)
    declared = done("queue", "declare", b.url, *options)
    assert (declared.stdout, declared.stderr) == (f"{QUEUE} declared, on disk\n", "")
    within(30.0, lambda: shown(a) == ("disk", None), "the first one knows")
    done("queue", "delete", b.url, QUEUE)
    within(30.0, lambda: shown(a)[1] == "not on disk at container b", "it is given up there")
    assert "in memory here" not in b.log()


def test_rules_that_are_read_again_are_told(members: dict[str, Member]) -> None:
    a, b = members["a"], members["b"]
    file = b.folder / "b.toml"
    before = file.read_text()
    done("queue", "declare", a.url, QUEUE, "--durability", "disk")
    within(30.0, lambda: shown(a)[1] == "not on disk at container b", "the rules of the other one")
    file.write_text(before.replace(RULE % "memory", RULE % "disk"))
    b.signal(signal.SIGHUP)
    within(30.0, lambda: shown(a)[1] is None, "it would keep the queue on disk now")
    file.write_text(before)
    b.signal(signal.SIGHUP)
    within(30.0, lambda: shown(a)[1] == "not on disk at container b", "and would not any more")
