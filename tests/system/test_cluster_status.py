"""`cogwork cluster status`, `promote` and `demote`, with members that are killed and come back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cogwork.cli.exit_codes import ExitCode

from .meshes import Member, linked, meshed
from .served import READY_TIMEOUT_S, done, ran, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IDS = ("a", "b", "c", "d")
EDGES = (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("d", "b"), ("d", "c"))

Members = dict[str, Member]


def status(member: Member) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done("cluster", "status", member.url, "--json").stdout)
    return found


def rows(member: Member) -> dict[str, dict[str, Any]]:
    return {each["id"]: each for each in status(member)["members"]}


def is_well(member: Member) -> bool:
    found = status(member)
    return bool(found["root"]) and {each["state"] for each in found["members"]} == {"active"}


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Members]:
    """Run three primaries and a secondary."""

    def head(name: str) -> str:
        return f'data_dir = "{tmp_path / name}"\n[cluster]\nprimaries = ["a", "b", "c"]\n'

    with meshed(tmp_path, IDS, EDGES, head=head) as members:
        linked(members.values())
        within(READY_TIMEOUT_S, lambda: is_well(members["a"]), "all members are active")
        yield members


def test_every_member_finds_the_same_cluster(members: Members) -> None:
    found = [status(each) for each in members.values()]
    assert [each["id"] for each in found[0]["members"]] == [*IDS]
    assert [each["role"] for each in found[0]["members"]] == [*["primary"] * 3, "secondary"]
    for key in ("uuid", "root", "term", "warnings"):
        assert len({json.dumps(each[key]) for each in found}) == 1, key
    spids = [{row["spid"] for row in each["members"]} for each in found]
    assert all(each == spids[0] for each in spids)
    assert found[0]["warnings"] == []


def test_a_killed_member_is_gone_and_comes_back_as_a_younger_one(members: Members) -> None:
    before = rows(members["a"])["c"]["spid"]
    members["c"].kill()
    within(READY_TIMEOUT_S, lambda: rows(members["a"])["c"]["state"] == "gone", "it is gone")
    shown = done("cluster", "status", members["a"].url).stdout
    assert "WARNING: no answer from c" in shown
    assert "gone since" in shown
    members["c"].start()
    within(READY_TIMEOUT_S, lambda: is_well(members["a"]), "it is back")
    assert rows(members["a"])["c"]["spid"] > before


def test_a_secondary_is_promoted_and_a_primary_demoted(members: Members) -> None:
    told = json.loads(done("cluster", "promote", members["a"].url, "d", "--json").stdout)
    assert told["voters"] == ["a", "b", "c", "d"]
    assert not told["moving"]
    assert "use an odd number" in status(members["b"])["warnings"][0]
    told = json.loads(done("cluster", "demote", members["b"].url, "a", "--json").stdout)
    assert told["voters"] == ["b", "c", "d"]
    assert rows(members["c"])["a"]["role"] == "secondary"
    within(
        READY_TIMEOUT_S,
        lambda: status(members["a"])["root"] in ("b", "c", "d"),
        "one of the primaries is the root",
    )


def test_a_primary_is_made_the_root(members: Members) -> None:
    before = status(members["a"])
    wanted = next(each for each in ("b", "c") if each != before["root"])
    told = json.loads(done("cluster", "root", members["d"].url, wanted, "--json").stdout)
    assert told["root"] == wanted
    assert told["term"] > before["term"]
    assert {status(each)["root"] for each in members.values()} == {wanted}
    refused = ran("cluster", "root", members["a"].url, "d")
    assert refused.returncode == ExitCode.ERROR
    assert "d is no primary" in refused.stderr


def test_a_change_that_leaves_no_majority_that_answers_is_refused(members: Members) -> None:
    members["c"].kill()
    within(READY_TIMEOUT_S, lambda: rows(members["a"])["c"]["state"] == "gone", "it is gone")
    refused = ran("cluster", "demote", members["a"].url, "b")
    assert refused.returncode == ExitCode.ERROR
    assert "there would be no majority that answers: c does not; use --force" in refused.stderr
    assert rows(members["a"])["b"]["role"] == "primary"


def test_what_cannot_be_changed_is_said(members: Members) -> None:
    again = ran("cluster", "promote", members["a"].url, "b")
    assert again.returncode == ExitCode.ERROR
    assert "b is a primary already" in again.stderr
    none = ran("cluster", "demote", members["a"].url, "d")
    assert none.returncode == ExitCode.ERROR
    assert "d is no primary: these are a, b, c" in none.stderr
    unknown = ran("cluster", "promote", members["a"].url, "elsewhere")
    assert unknown.returncode != ExitCode.OK
    assert "elsewhere" in unknown.stderr
    assert "Traceback" not in unknown.stderr


def test_a_voter_that_is_removed_never_votes_again(members: Members) -> None:
    a, b, c = members["a"], members["b"], members["c"]
    done("cluster", "add", a.url, "d")
    c.kill()
    told = json.loads(done("cluster", "remove", a.url, "c", "--json").stdout)
    assert (told["voters"], told["moving"]) == (["a", "b", "d"], False)
    assert "c" not in rows(a), "it is no longer counted"
    found = ran("cluster", "remove", a.url, "nobody")
    assert (found.returncode, "no member" in found.stderr) == (ExitCode.ERROR, True)
    c.start()
    within(READY_TIMEOUT_S, lambda: rows(a).get("c", {}).get("state") == "active", "it is back")
    assert rows(c)["c"]["role"] == "secondary"
    b.kill()
    members["d"].kill()
    within(READY_TIMEOUT_S, lambda: bool(warned(a)), "two of three are gone")
    stream = ran("stream", "create", a.url, "orders", "--replicas", "a")
    assert stream.returncode != 0, "the vote of what was removed makes no majority"


def warned(member: Member) -> list[str]:
    return [each for each in status(member)["warnings"] if "1 of 3 primaries answer" in each]


def root(member: Member, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done("cluster", "root", member.url, *words, "--json").stdout)
    return found


def test_a_disabled_member_is_never_the_root_until_it_is_enabled(members: Members) -> None:
    within(READY_TIMEOUT_S, members["d"].has_levels, "the level has risen")
    before = status(members["d"])["root"]
    told = root(members["d"], "--disable", before)
    assert (told["disabled"], told["root"] != before) == ([before], True)
    second = status(members["d"])["root"]
    told = root(members["d"], "--disable", second)
    last = next(each for each in "abc" if each not in (before, second))
    assert (told["disabled"], told["root"]) == (sorted((before, second)), last)
    assert {each: rows(members["d"])[each]["is_disabled"] for each in IDS} == {
        each: each in (before, second) for each in IDS
    }
    assert "primary, never root" in done("cluster", "status", members["d"].url).stdout

    refused = ran("cluster", "root", members["d"].url, "--disable", last)
    assert (refused.returncode, "use --allow-none" in refused.stderr) == (ExitCode.ERROR, True)
    refused = ran("cluster", "root", members["d"].url, second)
    assert f"{second} is disabled as root" in refused.stderr
    refused = ran("cluster", "demote", members["d"].url, last)
    assert "none that answers could be the root" in refused.stderr

    # Its loss leaves two that vote and may not be it: they are up, and what is declared waits.
    members[last].kill()
    within(READY_TIMEOUT_S, lambda: not status(members["d"])["root"], "there is no root")
    warning = status(members["d"])["warnings"][0]
    assert f"only {', '.join(sorted((before, second)))} answer, disabled as root" in warning
    refused = ran("stream", "create", members["d"].url, "orders", "--engine", "raft")
    assert (refused.returncode, "has no root" in refused.stderr) == (ExitCode.ERROR, True)
    told = root(members["d"], "--enable", second)
    assert told["disabled"] == [before]
    within(READY_TIMEOUT_S, lambda: status(members["d"])["root"] == second, "there is a root")
    done("stream", "create", members["d"].url, "orders", "--engine", "raft")

    # It holds over restarts of all, also of who was away when it changed.
    for each in members.values():
        each.kill()
    for each in members.values():
        each.start()
    for each in members.values():
        within(READY_TIMEOUT_S, each.listens, f"{each.id} listens")
    within(READY_TIMEOUT_S, lambda: is_well(members["d"]), "all are back")
    assert status(members["d"])["root"] != before
    assert [each["id"] for each in status(members[last])["members"] if each["is_disabled"]] == [
        before
    ]


def test_a_cluster_may_be_without_a_root_where_that_is_allowed(members: Members) -> None:
    within(READY_TIMEOUT_S, members["a"].has_levels, "the level has risen")
    for each in ("a", "b"):
        root(members["d"], "--disable", each)
    told = root(members["d"], "--disable", "c", "--allow-none")
    assert (told["disabled"], told["root"]) == (["a", "b", "c"], None)
    document = json.loads(done("cluster", "config", "show", members["b"].url, "--json").stdout)
    assert document["root"] == {"disabled": ["a", "b", "c"], "allow_none": True}
    refused = ran("cluster", "config", "set", members["b"].url, "limits.connections", "9")
    assert (refused.returncode, "has no root" in refused.stderr) == (ExitCode.ERROR, True)

    # A document may say who is enabled again, and all else in it is done with that.
    done("cluster", "config", "set", members["b"].url, "root.disabled", '["a"]')
    within(READY_TIMEOUT_S, lambda: status(members["a"])["root"] in ("b", "c"), "there is a root")
    done("cluster", "config", "set", members["b"].url, "limits.connections", "900")
    refused = ran("cluster", "config", "set", members["b"].url, "root.allow_none", "false")
    assert refused.returncode == ExitCode.OK, refused.stderr
    refused = ran("cluster", "config", "set", members["b"].url, "root.disabled", '["a","b","c"]')
    assert (refused.returncode, "allow_none" in refused.stderr) == (ExitCode.ERROR, True)
