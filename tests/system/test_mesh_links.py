"""Links that are not wanted, and links twice: a clear line in both logs, and the rest goes on."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
from forked import forked

from cogwork.bench.servers.process import free_ports
from cogwork.cli.exit_codes import ExitCode
from cogwork.config.password_hash import hash_password

from .cables import Cables
from .meshes import Member
from .served import OPEN, READY_TIMEOUT_S, ran, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "eleven-spare-teeth"

CLOSED = f"{OPEN}mesh = false\n"

USERS = f"""{CLOSED}
[[user]]
name = "container"
password_hash = "{hash_password(SECRET)}"
mesh = true

[[user]]
name = "client"
password_hash = "{hash_password(SECRET)}"
"""


@contextlib.contextmanager
def running(*members: Member) -> Iterator[None]:
    """Run containers for the length of a `with` block."""
    try:
        for member in members:
            member.folder.mkdir(exist_ok=True)
            member.start()
        for member in members:
            within(READY_TIMEOUT_S, member.listens, f"{member.id} listens")
        yield
    finally:
        for member in members:
            if member.process is not None:
                member.kill()


def log_of(member: Member) -> str:
    return (member.folder / f"{member.id}.1.log").read_text()


def states(member: Member) -> list[str]:
    return [row["state"] for row in links_of(member)]


def links_of(member: Member) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        member.served.run("link", "list", member.url, "--json")
    )
    return found


def dialled(member: Member, other: Member) -> dict[str, Any]:
    return next(row for row in links_of(member) if row["url"].endswith(f":{other.port}"))


def reached(member: Member) -> list[str]:
    found = json.loads(member.served.run("mesh", member.url, "--json"))
    return [row["id"] for row in found["containers"] if row["cost"] is not None]


@pytest.mark.parametrize(
    ("other_id", "configuration", "says", "state"),
    [
        ("other", '[[vhost]]\nname = "blue"\n', "container own lacks 'blue'", "refused"),
        ("own", "", "two containers have the id own", "refused"),
        ("other", CLOSED, "a container without a name may not link with other", "connecting"),
    ],
)
def test_a_link_that_is_not_wanted_is_told_at_both_ends(
    tmp_path: Path, other_id: str, configuration: str, says: str, state: str
) -> None:
    ports = free_ports(3)
    own = Member("own", ports[0], ports[1:], tmp_path / "own")
    other = Member(other_id, ports[1], [], tmp_path / "other", configuration)
    friend = Member("friend", ports[2], [], tmp_path / "friend")
    with running(own, other, friend):
        both = (own, other)
        within(30, lambda: all(says in log_of(member) for member in both), "a clear line at both")

        def is_told() -> bool:
            link = dialled(own, other)  # it is dialled again now and then, so it is seen at once
            what = (says in str(link["error"]), link["state"], link["neighbour"])
            return what == (True, state, None)

        within(30, is_told, "the link says why")
        within(30, lambda: reached(own) == ["friend", "own"], "the friend is linked all the same")
        time.sleep(3)
        # Whoever meets the other's word first refuses, and another time the other one may.
        told = [line.partition(" ERROR ")[2] for line in log_of(own).splitlines() if says in line]
        assert sorted(set(told)) == sorted(told), "once, however often it is tried"
        assert dialled(own, friend)["state"] == "up"
        assert "Traceback" not in log_of(own) + log_of(other)


def test_a_link_to_itself_is_none(tmp_path: Path) -> None:
    port, friends_port = free_ports(2)
    own = Member("own", port, [friends_port], tmp_path / "own")
    friend = Member("friend", friends_port, [], tmp_path / "friend")
    with Cables() as cables, running(own, friend):
        for host in ("localhost", "127.1"):
            refused = ran("link", "add", own.url, f"{host}:{port}")
            told = "listens itself" in refused.stderr
            assert (refused.returncode, told) == (ExitCode.ERROR, True)
        # By a way of which only whoever takes it knows where it leads.
        way = f"127.0.0.1:{cables.lay('own', 'own', port)}"
        own.served.run("link", "add", own.url, way)
        within(30, lambda: "container own is linked to itself" in log_of(own), "a clear line")
        within(30, lambda: reached(own) == ["friend", "own"], "the friend is linked all the same")
        assert {row["state"] for row in links_of(own)} <= {"up", "refused", "connecting"}
        own.served.run("link", "remove", own.url, way)
        within(30, lambda: [row["neighbour"] for row in links_of(own)] == ["friend"], "removed")


def test_two_that_dial_each_other_keep_one_link(tmp_path: Path) -> None:
    ports = free_ports(2)
    one = Member("one", ports[0], ports[1:], tmp_path / "one")
    other = Member("other", ports[1], ports[:1], tmp_path / "other")
    with running(one, other):
        within(
            10,
            lambda: all(states(member)[:1] == ["up"] for member in (one, other)),
            "the links that are dialled are up",
        )
        within(30, lambda: count_in(one) + count_in(other) == 1, "one of them dialled it")
        time.sleep(1)
        before = [links_of(member) for member in (one, other)]
        for _ in range(15):
            time.sleep(0.2)
            now = [links_of(member) for member in (one, other)]
            assert [steady(rows) for rows in now] == [steady(rows) for rows in before]
        dialler, standby = (one, other) if count_in(other) else (other, one)
        dialler.kill()
        within(30, lambda: links_of(standby)[0]["state"] == "connecting", "it dials again")
        dialler.start()
        within(30.0, lambda: links_of(standby)[0]["state"] == "up", "and is linked again")


def count_in(member: Member) -> int:
    return sum(row["direction"] == "in" for row in links_of(member))


def steady(rows: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    return [tuple(row[key] for key in ("url", "direction", "state", "since")) for row in rows]


def test_only_users_that_may_be_containers_link(tmp_path: Path) -> None:
    ports = free_ports(3)
    server = Member("server", ports[0], [], tmp_path / "server", USERS)
    good = Member("good", ports[1], [], tmp_path / "good")
    bad = Member("bad", ports[2], [], tmp_path / "bad")
    with running(server, good, bad):
        target = f"{SECRET}@127.0.0.1:{server.port}"
        good.served.run("link", "add", good.url, f"amqp://container:{target}", "--cost", "3")
        bad.served.run("link", "add", bad.url, f"amqp://client:{target}")
        within(30, lambda: reached(server) == ["good", "server"], "the user of containers links")
        says = "user 'client' may not link with server"
        within(30, lambda: says in str(links_of(bad)[0]["error"]), "the other one is told why not")
        assert says in log_of(server)
        (row,) = links_of(good)
        assert row["url"] == f"amqp://container@127.0.0.1:{server.port}"
        assert (row["state"], row["cost"]) == ("up", 3)
        shown = [good.served.run(*words) for words in (("status", good.url), ("mesh", good.url))]
        logs = [log_of(member) for member in (server, good, bad)]
        assert SECRET not in json.dumps([*shown, *logs, links_of(good), links_of(bad)])


def test_messages_are_counted_where_they_pass_and_nowhere_else(tmp_path: Path) -> None:
    """A line of three, and a fourth container at its middle that wants nothing."""
    ports = free_ports(4)
    first = Member("first", ports[0], [], tmp_path / "first")
    middle = Member("middle", ports[1], [ports[0]], tmp_path / "middle")
    last = Member("last", ports[2], [ports[1]], tmp_path / "last")
    idle = Member("idle", ports[3], [ports[1]], tmp_path / "idle")
    with running(first, middle, last, idle):
        within(30, lambda: len(reached(first)) == 4, "all are reached")
        receive = ("receive", last.url, "topic/counted.#", "--count", "100")
        receiver = forked(*receive, stdout=subprocess.DEVNULL)
        within(30, lambda: wanted(first, "last") == 1, "first knows what last wants")
        first.served.run("send", first.url, "topic/counted.x", "x", "--count", "99")
        first.served.run("send", first.url, "topic/counted.x", "y" * 100_000)
        assert receiver.wait(20) == 0
        within(30, lambda: wanted(first, "last") == 0, "last wants no more")
        first.served.run("send", first.url, "topic/counted.x", "nobody wants it")
        counts = {
            (member.id, row["neighbour"]): (row["messages_in"], row["messages_out"])
            for member in (first, middle, last, idle)
            for row in links_of(member)
        }
    assert counts["idle", "middle"] == counts["middle", "idle"] == (0, 0)
    assert counts["first", "middle"] == counts["middle", "last"] == (0, 100)
    assert counts["middle", "first"] == counts["last", "middle"] == (100, 0)


def wanted(member: Member, container: str) -> int:
    found = json.loads(member.served.run("mesh", member.url, "--json"))
    rows = {row["id"]: row for row in found["containers"]}
    return int(rows[container]["interests"]["topic"])
