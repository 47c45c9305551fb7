"""Containers of two versions in one cluster: the feature level waits, rises, and is kept."""

from __future__ import annotations

import json
import signal
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from cogwork.cli.exit_codes import ExitCode
from cogwork.cluster.levels import HIGHEST_LEVEL

from .meshes import Member, linked, meshed
from .served import OPEN, READY_TIMEOUT_S, done, ran, within

if TYPE_CHECKING:
    from pathlib import Path

IDS = ("a", "b", "c")
EDGES = (("a", "b"), ("b", "c"), ("c", "a"))

OLDER = """\
import os
import cogwork.cluster.levels as levels
levels.HIGHEST_LEVEL = int(os.environ["HIGHEST_LEVEL"])
"""


def facts(member: Member) -> dict[str, Any]:
    """Return what a container knows of the cluster; nothing where it does not answer."""
    found = ran("status", member.url, "--json")
    return json.loads(found.stdout)["container"]["cluster"] if found.returncode == 0 else {}


def test_the_level_waits_for_an_older_member_which_cannot_come_back_later(tmp_path: Path) -> None:
    (tmp_path / "older").mkdir()
    (tmp_path / "older" / "sitecustomize.py").write_text(OLDER)
    older = {"PYTHONPATH": str(tmp_path / "older"), "HIGHEST_LEVEL": "1"}

    def head(name: str) -> str:
        return f'data_dir = "{tmp_path / name}"\n[cluster]\nprimaries = ["a", "b", "c"]\n'

    def dress(member: Member) -> None:
        if member.id == "c":
            member.environment.update(older)

    with meshed(tmp_path, IDS, EDGES, head=head, dress=dress) as members:
        a, c = members["a"], members["c"]
        linked(members.values())
        declare = ("queue", "declare", a.url, "queue/x", "--durability", "replicated")
        within(READY_TIMEOUT_S, lambda: ran(*declare).returncode == 0, "the cluster has begun")
        told = "the cluster's feature level stays 1 until c can do level 2"
        logs = [tmp_path / f"{name}.1.log" for name in "ab"]
        within(
            READY_TIMEOUT_S,
            lambda: any(told in each.read_text() for each in logs) or facts(a)["leader"] == "c",
            "whoever leads waits for the older one, or that leads itself",
        )
        assert {facts(each)["level"] for each in members.values()} == {1}

        c.kill()
        c.environment.clear()
        c.start()
        within(
            READY_TIMEOUT_S,
            lambda: all(facts(each).get("level") == HIGHEST_LEVEL for each in members.values()),
            "the level has risen everywhere",
        )
        within(
            READY_TIMEOUT_S,
            lambda: len({facts(each).get("digest") for each in members.values()}) == 1,
            "all know the same",
        )
        assert facts(a)["supports"] == dict.fromkeys("abc", HIGHEST_LEVEL)

        c.kill()
        c.environment.update(older)
        c.start()
        assert c.process is not None
        assert c.process.wait(READY_TIMEOUT_S) == ExitCode.CONFIGURATION
        log = c.log()
        assert "ERROR" in log
        assert "feature level" in log
        assert "knows feature levels up to 1 only" in log
        assert "Traceback" not in log

        done("queue", "declare", a.url, "queue/y", "--durability", "replicated")
        c.environment.clear()
        c.start()
        within(
            READY_TIMEOUT_S,
            lambda: len({facts(each).get("digest") for each in members.values()}) == 1,
            "who has the version again has what it missed",
        )


def test_a_member_that_is_gone_for_good_is_waited_for_until_it_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "older").mkdir()
    (tmp_path / "older" / "sitecustomize.py").write_text(OLDER)
    older = HIGHEST_LEVEL - 1

    def head(name: str) -> str:
        data = f'data_dir = "{tmp_path / name}"\n' if name == "a" else ""
        return f'{data}[cluster]\nprimaries = ["a"]\n'

    def dress(member: Member) -> None:
        path = str(tmp_path / "older")
        member.environment.update({"PYTHONPATH": path, "HIGHEST_LEVEL": str(older)})

    with meshed(tmp_path, ("a", "b"), (("a", "b"),), head=head, dress=dress) as members:
        a, b = members["a"], members["b"]
        linked(members.values())
        within(READY_TIMEOUT_S, lambda: facts(a).get("level") == older, "all that both know")
        a.kill()
        a.environment.clear()  # b was counted before, so that the level waits for it
        a.start()
        counted = {"a": HIGHEST_LEVEL, "b": older}
        within(READY_TIMEOUT_S, lambda: facts(a).get("supports") == counted, "both are counted")
        within(
            READY_TIMEOUT_S, lambda: facts(a).get("level") == older, "it is as high as it can be"
        )
        refused = ran("cluster", "forget", a.url, "b")
        assert "'b' is there: stop it first" in refused.stderr
        refused = ran("cluster", "forget", a.url, "a")
        assert "'a' is a primary" in refused.stderr
        b.kill()
        within(READY_TIMEOUT_S, lambda: not a.reaches({"b"}), "a has noticed")
        assert facts(a)["level"] == older
        done("cluster", "forget", a.url, "b")
        within(READY_TIMEOUT_S, lambda: facts(a).get("level") == HIGHEST_LEVEL, "the level rises")
        assert facts(a)["supports"] == {"a": HIGHEST_LEVEL}


BEFORE = 6
"""The level of clusters before several commands could be one."""

ITEMS = 20


def goes_on(members: dict[str, Member], level: int) -> bool:
    """Return whether all members are at a level and have the same declarations."""
    found = [facts(each) for each in members.values()]
    return {each.get("level") for each in found} == {level} and (
        len({each.get("digest") for each in found}) == 1
    )


def restart(member: Member, environment: dict[str, str]) -> None:
    member.signal(signal.SIGTERM)
    assert member.process is not None
    assert member.process.wait(READY_TIMEOUT_S) == ExitCode.OK, member.log()
    member.environment.clear()
    member.environment.update(environment)
    member.start()
    within(READY_TIMEOUT_S, member.listens, f"{member.id} listens")


def names_of(member: Member, *words: str) -> set[str]:
    rows = json.loads(done(*words, member.url, "--json").stdout)
    return {row["name"] for row in rows}


@pytest.mark.timeout(300)
def test_data_and_peers_of_an_earlier_level_are_taken_over_in_two_steps(tmp_path: Path) -> None:
    """First every container is restarted, and any may go back; then the level rises for good."""
    (tmp_path / "older").mkdir()
    (tmp_path / "older" / "sitecustomize.py").write_text(OLDER)
    older = {"PYTHONPATH": str(tmp_path / "older"), "HIGHEST_LEVEL": str(BEFORE)}

    def head(name: str) -> str:
        return f'data_dir = "{tmp_path / name}"\n[cluster]\nprimaries = ["a", "b", "c"]\n'

    def dress(member: Member) -> None:
        member.environment.update(older)

    with meshed(tmp_path, IDS, EDGES, OPEN, head=head, dress=dress) as members:
        a, b, c = members.values()
        linked(members.values())
        within(READY_TIMEOUT_S, lambda: goes_on(members, BEFORE), "all are at the earlier level")
        done("queue", "declare", a.url, "queue/x", "--durability", "replicated")
        done("policy", "set", a.url, "bounded", "^logs", "max-length=10")
        done("vhost", "add", a.url, "west")
        for number in range(ITEMS):
            done("send", a.url, "queue/x", str(number))

        # The first step, at one of them: it works with the others, in both directions.
        restart(c, {})
        within(READY_TIMEOUT_S, lambda: goes_on(members, BEFORE), "the newer one follows")
        done("vhost", "add", c.url, "by-the-newer")
        done("vhost", "add", a.url, "by-the-older")
        for each in members.values():
            wanted = {"west", "by-the-newer", "by-the-older"}
            within(READY_TIMEOUT_S, partial(has_vhosts, each, wanted), f"{each.id} has them")
        refused = ran("cluster", "root", c.url, "--disable", "a")
        assert "feature level 8 is needed" in refused.stderr
        assert facts(c)["level"] == BEFORE

        # It may go back to the earlier version, with what it has written meanwhile.
        restart(c, older)
        within(READY_TIMEOUT_S, lambda: goes_on(members, BEFORE), "it has gone back")

        for each in (c, b, a):
            restart(each, {})
        # The second step follows by itself, once the last one is back.
        within(READY_TIMEOUT_S, lambda: goes_on(members, HIGHEST_LEVEL), "the level has risen")
        assert has_vhosts(b, {"west", "by-the-newer", "by-the-older"})
        assert "bounded" in names_of(b, "policy", "list")
        done("cluster", "root", c.url, "--disable", "a")
        taken = done("receive", c.url, "queue/x", "--count", str(ITEMS), "--timeout", "20").stdout
        assert sorted(map(int, taken.split())) == [*range(ITEMS)]


def has_vhosts(member: Member, wanted: set[str]) -> bool:
    return names_of(member, "vhost", "list") >= wanted
