"""Streams and replicated queues are deleted everywhere, or stay everywhere: a majority says so."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

from cogwork.cli.exit_codes import ExitCode

from .meshes import Member, linked, meshed
from .served import READY_TIMEOUT_S, done, ran, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MADE = {
    "queue": ("queue", "declare", "work/a", ("--durability", "replicated")),
    "stream": ("stream", "create", "stream/a", ("--engine", "raft")),
}


@pytest.fixture
def members(tmp_path: Path) -> Iterator[dict[str, Member]]:
    def head(name: str) -> str:
        return f'data_dir = "{tmp_path / "data" / name}"\n[cluster]\nprimaries = ["a", "b", "c"]\n'

    with meshed(tmp_path, "abc", ["ab", "bc", "ca"], head=head) as made:
        linked(made.values())
        yield made


def make(members: dict[str, Member], kind: str) -> str:
    """Make one with a message in it; return its address."""
    _, verb, address, options = MADE[kind]
    done(kind, verb, members["a"].url, address, *options)
    for member in members.values():
        within(READY_TIMEOUT_S, partial(has, member, kind), f"{member.id} has it")
    done("send", members["a"].url, address, "hello")
    return address


def listed(member: Member, kind: str) -> list[str]:
    rows = json.loads(done(kind, "list", member.url, "--json").stdout)
    return [row["address"] for row in rows]


def has(member: Member, kind: str) -> bool:
    return listed(member, kind) == [MADE[kind][2]]


def lacks(member: Member, kind: str) -> bool:
    return not has(member, kind)


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("kept", ["leader", "follower"])
def test_what_no_majority_deletes_stays_everywhere(
    kind: str, kept: str, members: dict[str, Member]
) -> None:
    address = make(members, kind)
    leader = members["a"].served.status()["container"]["cluster"]["leader"]
    follower = next(name for name in members if name != leader)
    asked = members[leader if kept == "leader" else follower]
    others = [member for member in members.values() if member is not asked]
    for member in others:
        member.kill()

    refused = ran(kind, "delete", asked.url, address)
    assert refused.returncode == ExitCode.ERROR
    assert f"{address!r} is not deleted: a majority of a, b, c has to be up" in refused.stderr
    assert f"no answer comes from {', '.join(each.id for each in others)}" in refused.stderr
    assert has(asked, kind)

    for member in others:
        member.start()
    linked(members.values())
    read = ("receive", asked.url, address, "--count", "1", "--timeout", "30")
    from_first = ("--from", "first") if kind == "stream" else ()
    assert done(*read, *from_first).stdout == "hello\n", "it is there, with all that it held"

    assert done(kind, "delete", asked.url, address).stdout == f"{address} deleted\n"
    assert not has(asked, kind)
    for member in others:
        within(READY_TIMEOUT_S, partial(lacks, member, kind), f"{member.id} hears of it")


def test_who_knows_of_no_majority_does_not_say_that_there_is_no_queue(
    members: dict[str, Member],
) -> None:
    address = make(members, "queue")
    for member in members.values():
        member.kill()
    asked = members["a"]
    asked.start()
    within(READY_TIMEOUT_S, asked.listens, "a is back")
    refused = ran("queue", "delete", asked.url, address)
    assert refused.returncode == ExitCode.ERROR
    assert "not known here yet what the cluster has declared" in refused.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("queue", "declare", "work/new", "--durability", "replicated"),
        ("stream", "create", "stream/new", "--engine", "raft"),
        ("stream", "create", "stream/new", "--engine", "orb"),
    ],
)
def test_what_no_majority_declares_is_not_there(
    options: tuple[str, ...], members: dict[str, Member]
) -> None:
    """It would be here until this container ends, and for the others never have been."""
    kind, verb, address, *rest = options
    make(members, kind)
    for name in "bc":
        members[name].kill()
    declare = (kind, verb, members["a"].url, address, *rest)
    refused = ran(*declare)
    assert (refused.returncode, refused.stdout) == (ExitCode.ERROR, "")
    assert f"{address!r} is not created: a majority of a, b, c has to be up" in refused.stderr
    assert "no answer comes from b, c" in refused.stderr
    assert has(members["a"], kind), "it has no other one than before"
    members["b"].start()
    linked([members["a"], members["b"]])
    done(*declare)
    within(READY_TIMEOUT_S, lambda: address in listed(members["b"], kind), "b hears of it")
