"""Users and permissions of a cluster: made at one container, they hold in all, at once."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from forked import forked

from cogwork.cli.exit_codes import ExitCode

from .meshes import Member, linked, meshed
from .served import READY_TIMEOUT_S, done, ran, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IDS = ("a", "b", "c")
EDGES = (("a", "b"), ("b", "c"), ("c", "a"))
PASSWORD = "tr0ub4dor"  # of these tests alone


class Cluster:
    """Three primaries."""

    def __init__(self, folder: Path, members: dict[str, Member]) -> None:
        self.members = members
        self.password = folder / "password"
        self.password.write_text(PASSWORD)

    def facts(self, name: str) -> dict[str, Any]:
        found = ran("status", self.members[name].url, "--json")
        return json.loads(found.stdout)["container"]["cluster"] if found.returncode == 0 else {}

    def agree(self, *names: str) -> bool:
        facts = [self.facts(name) for name in names]
        return all(facts) and len({each["digest"] for each in facts}) == 1

    def as_user(self, name: str, user: str = "bob", password: str = PASSWORD) -> str:
        return f"amqp://{user}:{password}@127.0.0.1:{self.members[name].port}"

    def sends(self, name: str, user: str = "bob", password: str = PASSWORD) -> int:
        url = self.as_user(name, user, password)
        return ran("send", url, "queue/jobs", "hello", "--timeout", "5").returncode

    def add_bob(self, at: str) -> None:
        url = self.members[at].url
        done("user", "add", url, "bob", "--new-password-file", str(self.password))
        grant = ("--user", "bob", "--address", "queue/#", "--rights", "send,receive")
        done("permission", "add", url, *grant)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Run three primaries whose feature level has risen."""

    def head(name: str) -> str:
        return f'data_dir = "{tmp_path / name}"\n[cluster]\nprimaries = ["a", "b", "c"]\n'

    with meshed(tmp_path, IDS, EDGES, head=head) as members:
        linked(members.values())
        made = Cluster(tmp_path, members)
        within(
            READY_TIMEOUT_S,
            lambda: all(made.facts(each).get("level", 0) >= 3 for each in IDS),
            "the feature level has risen",
        )
        yield made


def test_a_user_of_one_logs_in_at_another_also_while_the_third_is_away(cluster: Cluster) -> None:
    c = cluster.members["c"]
    c.kill()
    cluster.add_bob("a")
    assert cluster.sends("b") == ExitCode.OK
    assert cluster.sends("b", password="wrong") == ExitCode.AUTHENTICATION
    refused = ran("send", cluster.as_user("b"), "topic/x", "hello")
    assert "no permission" in refused.stderr, refused

    c.start()
    within(READY_TIMEOUT_S, lambda: cluster.sends("c") == ExitCode.OK, "bob logs in at c, too")
    within(READY_TIMEOUT_S, lambda: cluster.agree(*IDS), "all know the same")
    for name in IDS:
        (row,) = json.loads(done("user", "list", cluster.members[name].url, "--json").stdout)
        assert (row["name"], row["origin"]) == ("bob", "cluster")
        assert PASSWORD not in json.dumps(row)
        assert "$" not in row["login"], "the hash is nobody's to see"


def test_a_user_that_is_removed_is_cut_off_at_all_three(cluster: Cluster) -> None:
    cluster.add_bob("a")
    held: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name in IDS:
            within(READY_TIMEOUT_S, partial(may_send, cluster, name), f"bob at {name}")
            words = ("receive", cluster.as_user(name), f"queue/of-{name}")
            held[name] = forked(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            within(READY_TIMEOUT_S, partial(is_connected, cluster, name), f"bob stays at {name}")

        refused = ran("user", "add", cluster.members["c"].url, "bob", "--no-password")
        assert "is there already" in refused.stderr
        done("user", "remove", cluster.members["b"].url, "bob")
        for name, process in held.items():
            assert process.wait(READY_TIMEOUT_S) != ExitCode.OK, name
            assert cluster.sends(name) == ExitCode.AUTHENTICATION
        within(READY_TIMEOUT_S, lambda: cluster.agree(*IDS), "all know the same")
        gone = ran("user", "remove", cluster.members["a"].url, "bob")
        assert gone.returncode == ExitCode.NOT_FOUND, gone
    finally:
        for process in held.values():
            process.kill()
            process.communicate()


def logs_in(cluster: Cluster, name: str) -> bool:
    return cluster.sends(name) == ExitCode.OK


def may_send(cluster: Cluster, name: str) -> bool:
    return cluster.sends(name) == ExitCode.OK


def is_connected(cluster: Cluster, name: str) -> bool:
    found = ran("connection", "list", cluster.members[name].url, "--json")
    return any(row["user"] == "bob" for row in json.loads(found.stdout or "[]"))


def test_a_user_is_changed_and_what_is_wrong_is_refused(cluster: Cluster) -> None:
    a, b = cluster.members["a"].url, cluster.members["b"].url
    cluster.add_bob("a")
    cluster.password.write_text("another one")
    done("user", "set", b, "bob", "--new-password-file", str(cluster.password))
    within(
        READY_TIMEOUT_S,
        lambda: cluster.sends("a", password="another%20one") == ExitCode.OK,
        "the new password holds",
    )
    assert cluster.sends("b") == ExitCode.AUTHENTICATION
    bob = ("--user", "bob", "--rights", "send")
    for words, told in (
        (("user", "set", a, "eve", "--mesh"), "the cluster has no user 'eve'"),
        (("permission", "add", a, *bob, "--address", "x/#/y#"), "address"),
        (("permission", "add", a, *bob[:2], "--rights", "fly", "--address", "x"), "rights"),
    ):
        refused = ran(*words)
        assert refused.returncode != ExitCode.OK
        assert told in refused.stderr, refused
        assert "Traceback" not in refused.stderr
    taken = ("--user", "bob", "--address", "queue/#")
    done("permission", "remove", b, *taken)
    within(
        READY_TIMEOUT_S,
        lambda: cluster.sends("a", password="another%20one") != ExitCode.OK,
        "the permission has gone",
    )


def test_virtual_hosts_and_limits_come_and_go(cluster: Cluster) -> None:
    a, b, c = (cluster.members[each] for each in IDS)
    within(
        READY_TIMEOUT_S,
        lambda: all(cluster.facts(each).get("level", 0) >= 4 for each in IDS),
        "the feature level has risen",
    )
    check_limits(a, b, c)
    done("vhost", "add", a.url, "blue")
    for member in (a, b, c):
        within(READY_TIMEOUT_S, partial(has_blue, member), f"{member.id} has it")
    done("queue", "declare", f"{b.url}/blue", "queue/kept", "--durability", "disk")
    done("send", f"{b.url}/blue", "queue/kept", "hello", "--durable")
    received = ran("receive", f"{c.url}/blue", "queue/kept", "--count", "1", "--timeout", "20")
    assert "hello" in received.stdout, received
    done("send", f"{b.url}/blue", "queue/kept", "again", "--durable")
    b.kill()
    b.start()
    within(READY_TIMEOUT_S, partial(has_blue, b), "b has it after its start")
    received = ran("receive", f"{b.url}/blue", "queue/kept", "--count", "1", "--timeout", "20")
    assert "again" in received.stdout, "its items were kept"
    assert "cannot open queue" not in b.log()

    done("queue", "declare", f"{a.url}/blue", "queue/all", "--durability", "replicated")
    refused = ran("vhost", "remove", c.url, "blue")
    assert "has the queue 'queue/all': delete it and all others first" in refused.stderr
    done("queue", "delete", f"{a.url}/blue", "queue/all")
    words = ("receive", f"{b.url}/blue", "queue/kept")
    held = forked(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        within(READY_TIMEOUT_S, lambda: in_blue(b) == 1, "a client is in it")
        done("vhost", "remove", c.url, "blue")
        for member in (a, b, c):
            within(READY_TIMEOUT_S, partial(lacks_blue, member), f"{member.id} has it no more")
        assert held.wait(READY_TIMEOUT_S) != ExitCode.OK
    finally:
        held.kill()
        held.communicate()
    within(READY_TIMEOUT_S, lambda: cluster.agree(*IDS), "all know the same")
    gone = ran("send", f"{b.url}/blue", "queue/kept", "x", "--timeout", "5")
    assert "'blue' is not served here" in gone.stderr, gone


def check_limits(a: Member, b: Member, c: Member) -> None:
    """Set a limit, which all members go by until it is removed."""
    before = limits_of(b)
    refused = ran("limit", "set", a.url, "conections_per_user", "7")
    assert "did you mean connections_per_user?" in refused.stderr
    refused = ran("limit", "set", a.url, "connections_per_user", "0")
    assert "connections_per_user cannot be 0" in refused.stderr
    assert ran("limit", "set", a.url, "connections_per_user", "inf").returncode == ExitCode.USAGE
    for value in ("8", "7"):
        done("limit", "set", a.url, "connections_per_user", value)
    for member in (a, b, c):
        within(
            READY_TIMEOUT_S,
            partial(has_limits, member, before | {"connections_per_user": 7}),
            f"{member.id} goes by it",
        )
    rows = json.loads(done("limit", "list", c.url, "--json").stdout)
    (row,) = [each for each in rows if each["origin"] == "cluster"]
    assert (row["name"], row["value"]) == ("connections_per_user", 7)
    assert row["configured"] == before["connections_per_user"]
    check_limit_of_user(a, c)
    done("limit", "remove", c.url, "connections_per_user")
    within(READY_TIMEOUT_S, lambda: limits_of(b) == before, "the file's holds again")
    gone = ran("limit", "remove", a.url, "connections_per_user")
    assert gone.returncode == ExitCode.NOT_FOUND, gone


def check_limit_of_user(a: Member, c: Member) -> None:
    """Set a limit of one user, which another member tells of."""
    done("user", "add", a.url, "ann", "--no-password")
    refused = ran("limit", "set", a.url, "--user", "ann", "connections_per_user", "7")
    assert "unknown limit 'connections_per_user' (expected one of connections," in refused.stderr
    done("limit", "set", a.url, "--user", "ann", "connections", "7")
    within(
        READY_TIMEOUT_S,
        lambda: "user/ann/connections" in done("limit", "list", c.url, "--json").stdout,
        "another member knows it",
    )
    done("limit", "remove", c.url, "--user", "ann", "connections")
    done("user", "remove", a.url, "ann")


def limits_of(member: Member) -> dict[str, Any]:
    limits: dict[str, Any] = member.served.status()["container"]["limits"]
    return limits


def vhosts_of(member: Member) -> list[dict[str, Any]]:
    found = ran("vhost", "list", member.url, "--json")
    return json.loads(found.stdout) if found.returncode == 0 else []


def has_blue(member: Member) -> bool:
    return [(row["name"], row["origin"]) for row in vhosts_of(member)] == [("blue", "cluster")]


def lacks_blue(member: Member) -> bool:
    return not has_blue(member)


def has_limits(member: Member, limits: dict[str, Any]) -> bool:
    return limits_of(member) == limits


def in_blue(member: Member) -> int:
    return sum(row["connections"] for row in vhosts_of(member))
