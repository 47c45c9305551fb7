"""Users and permissions of a cluster: what may be declared, and what holds in a container."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cogwork.cluster.declarations import (
    LIMIT,
    PERMISSION,
    USER,
    VHOST,
    VHOSTS_MAX,
    Declarations,
    Declare,
    Delete,
    Move,
    Outcome,
    Primaries,
    Raise,
    Set,
    Value,
    decode,
    encode,
)
from cogwork.config.limits import UserLimits
from cogwork.config.password_hash import hash_password
from cogwork.config.settings import Configuration, Limits, Queue, User, Vhost
from cogwork.container.cluster.declared_limits import problem_of_limit
from cogwork.container.cluster.kept_declarations import KeptDeclarations
from cogwork.container.cluster.settings import check, merged, permission_name
from cogwork.container.security.permissions import permissions_of

if TYPE_CHECKING:
    from pathlib import Path

HASH = hash_password("a secret of this test")


def raised(level: int = 3) -> Declarations:
    state = Declarations(check)
    for each in range(2, level + 1):
        assert state.apply(Raise(each, {"a": level}, ["a"])).has_changed
    return state


def add(state: Declarations, kind: str, name: str, options: dict[str, Value]) -> Outcome:
    return state.apply(Set(kind, "", name, options, None))


def grant(state: Declarations, **options: Value) -> Outcome:
    return add(state, PERMISSION, permission_name(options), options)


def test_users_need_their_feature_level() -> None:
    outcome = add(raised(2), USER, "bob", {})
    assert "feature level 3 is needed for a user, and the cluster's is 2" in outcome.problem


def test_a_user_is_added_once_changed_as_it_is_known_and_removed() -> None:
    state = raised()
    assert add(state, USER, "bob", {"password_hash": HASH}).has_changed
    assert add(state, USER, "bob", {}).problem == "user 'bob' is there already"
    stale = state.apply(Set(USER, "", "bob", {"mesh": True}, {"mesh": False}))
    assert "has been changed meanwhile" in stale.problem
    number = state.find(USER, "", "bob")
    assert state.apply(Set(USER, "", "bob", {"mesh": True}, {"password_hash": HASH})).has_changed
    found = state.find(USER, "", "bob")
    assert found is not None
    assert number is not None
    assert (found.number, found.options) == (number.number, {"mesh": True})
    assert state.apply(Delete(USER, "", "bob")).has_changed
    assert "no user 'bob'" in state.apply(Set(USER, "", "bob", {}, {"mesh": True})).problem


def test_equal_commands_make_equal_states_with_users() -> None:
    states = raised(), raised()
    for command in (
        Set(USER, "", "bob", {"password_hash": HASH, "groups": ["ops"]}, None),
        Declare("queue", "", "jobs", {}),
    ):
        for state in states:
            assert state.apply(decode(encode(command))).has_changed
    late = Declarations.from_bytes(states[0].to_bytes(), check)
    assert late.digest == states[0].digest == states[1].digest


def test_users_have_no_replicas() -> None:
    state = raised()
    add(state, USER, "bob", {})
    state.apply(Primaries(["a", "b", "c"], ["a"]))
    bob = state.find(USER, "", "bob")
    assert bob is not None
    assert state.placement(bob) is None
    moved = state.apply(Move(USER, "", "bob", bob.number, ["a"], [], ["a"]))
    assert "is not there" in moved.problem


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"password": "plain"}, "unknown option 'password'"),
        ({"permissions": []}, "unknown option 'permissions'"),
        ({"password_hash": "plain"}, "password_hash is password hash is not of the form"),
        ({"mesh": "yes"}, "Expected `bool`"),
        ({"groups": ["a", "a"]}, "each name once"),
        ({"password_hash": "x" * 20_000}, "at most 16384 octets"),
    ],
)
def test_a_wrong_user_is_refused_and_no_secret_is_told(
    options: dict[str, Value], told: str
) -> None:
    outcome = add(raised(), USER, "bob", options)
    assert told in outcome.problem
    assert "plain" not in outcome.problem.replace("'password'", "")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"address": "x", "rights": ["send"]}, "of one user, or of one group"),
        ({"user": "b", "group": "g", "address": "x", "rights": ["send"]}, "of one user, or of one"),
        ({"user": "b", "address": "x", "rights": ["fly"]}, "Invalid enum value"),
        ({"user": "b", "address": "x", "rights": []}, "Expected `array` of length >= 1"),
        ({"user": "b", "rights": ["send"]}, "missing required field `address`"),
        ({"user": "b", "address": "x#", "rights": ["send"]}, "address"),
        ({"user": "b", "address": "x", "rights": ["send"], "deny": "no"}, "deny is true or false"),
    ],
)
def test_a_wrong_permission_is_refused(options: dict[str, Value], told: str) -> None:
    assert told in grant(raised(), **options).problem


def test_a_permission_is_known_by_what_it_says() -> None:
    told: dict[str, Value] = {"user": "bob", "address": "x", "rights": ["send"]}
    assert "is known by" in add(raised(), PERMISSION, "another", told).problem


def test_what_the_cluster_and_the_file_say_holds_together() -> None:
    state = raised()
    add(state, USER, "bob", {"password_hash": HASH, "groups": ["ops"]})
    add(state, USER, "own", {"mesh": True})
    grant(state, user="bob", address="queue/#", rights=["send"])
    grant(state, user="bob", address="queue/secret", rights=["send"], deny=True)
    grant(state, group="ops", address="topic/#", rights=["receive"])
    found = merged(Configuration(users=[User(name="own")]), state)
    assert found.clashes == ["own"]
    assert [(each.name, each.mesh) for each in found.configuration.users] == [
        ("own", False),
        ("bob", False),
    ]
    bob = permissions_of(found.configuration, "bob")
    assert bob is not None
    assert bob.allows("send", "queue/jobs")
    assert not bob.allows("send", "queue/secret")
    assert bob.allows("receive", "topic/x")
    assert not bob.allows("receive", "queue/jobs")


def test_the_first_user_of_a_cluster_does_not_cut_links_without_a_name() -> None:
    state = raised()
    add(state, USER, "bob", {})
    found = merged(Configuration(), state).configuration
    nobody = permissions_of(found, None)
    assert nobody is not None
    assert nobody.are_all()


def test_virtual_hosts_need_their_feature_level() -> None:
    refused = add(raised(3), VHOST, "blue", {}).problem
    assert "feature level 4 is needed for a vhost, and the cluster's is 3" in refused
    assert add(raised(4), VHOST, "blue", {}).has_changed


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("", {}, "1 to 1024 octets"),
        ("x" * 300, {}, "300 bytes"),
        ("a\nb", {}, "characters that can be seen"),
        ("blue", {"queue": "x"}, "unknown option 'queue' of a vhost (expected none)"),
    ],
)
def test_a_wrong_virtual_host_is_refused(name: str, options: dict[str, Value], told: str) -> None:
    assert told in add(raised(4), VHOST, name, options).problem


def test_a_mesh_has_no_more_virtual_hosts_than_it_knows() -> None:
    state = raised(4)
    for number in range(VHOSTS_MAX):
        assert add(state, VHOST, f"v{number}", {}).has_changed
    assert "virtual hosts are declared already" in add(state, VHOST, "one more", {}).problem


def test_a_virtual_host_with_something_in_it_is_not_removed() -> None:
    state = raised(4)
    add(state, VHOST, "blue", {})
    state.apply(Declare("queue", "blue", "jobs", {}))
    refused = state.apply(Delete(VHOST, "", "blue"))
    assert (refused.has_changed, "has the queue 'jobs'" in refused.problem) == (False, True)
    assert state.apply(Delete("queue", "blue", "jobs")).has_changed
    assert state.apply(Delete(VHOST, "", "blue")).has_changed
    assert state.find(VHOST, "", "blue") is None


def test_virtual_hosts_of_the_file_stay_as_the_file_says() -> None:
    state = raised(4)
    for name in ("blue", "red"):
        add(state, VHOST, name, {})
    own = Configuration(vhosts=[Vhost(name="blue", queues=[Queue(address="queue/x")])])
    found = merged(own, state).configuration
    assert [each.name for each in found.vhosts] == ["blue", "red"]
    assert found.vhosts[0] == own.vhosts[0]


def test_the_names_of_virtual_hosts_outlive_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = KeptDeclarations(str(tmp_path), "vhosts.json", str)
    assert kept.values == []
    kept.keep(["blue"])
    assert KeptDeclarations(str(tmp_path), "vhosts.json", str).values == ["blue"]
    (tmp_path / "vhosts.json").write_text("[1")
    assert KeptDeclarations(str(tmp_path), "vhosts.json", str).values == []
    assert "vhosts.json" in caplog.text
    nowhere = KeptDeclarations(None, "vhosts.json", str)
    nowhere.keep(["blue"])
    assert nowhere.values == ["blue"]


@pytest.mark.parametrize(
    "options",
    [{}, {"value": True}, {"value": "7"}, {"value": -1}, {"value": 2**63}, {"value": float("nan")}],
)
def test_a_wrong_limit_is_refused_by_all_versions_alike(options: dict[str, Value]) -> None:
    assert "expected a number" in add(raised(4), LIMIT, "connections", options).problem


def test_a_limit_that_this_version_does_not_know_has_no_effect() -> None:
    state = raised(4)
    for name, value in (("connections", 7), ("links", 0), ("of_later", 3)):
        assert add(state, LIMIT, name, {"value": value}).has_changed
    own = Configuration(limits=Limits(connections=5, links=6))
    assert merged(own, state).configuration.limits == Limits(connections=7, links=6)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("conections", 1, "unknown limit 'conections'"),
        ("connections", 0.5, "connections cannot be 0.5: Expected `int`, got `float`"),
        ("idle_timeout_s", 0, "idle_timeout_s cannot be 0"),
        ("idle_timeout_s", 5, ""),
    ],
)
def test_a_limit_is_held_to_what_the_configuration_takes(
    name: str, value: Value, told: str
) -> None:
    assert told in problem_of_limit(name, value)
    assert bool(told) == bool(problem_of_limit(name, value))


def test_a_users_limits_hold_for_those_of_the_file_and_what_is_not_known_is_left_aside() -> None:
    state = raised(4)
    add(state, LIMIT, "user/a/b/connections", {"value": 7})
    add(state, LIMIT, "user/a/b/of-a-later-version", {"value": 7})
    add(state, LIMIT, "user/nobody/connections", {"value": 7})
    own = UserLimits(connections=3, queues=5)
    configuration = Configuration(users=[User(name="a/b", limits=own), User(name="c")])
    (first, second) = merged(configuration, state).configuration.users
    assert first.limits == UserLimits(connections=7, queues=5)
    assert second.limits is None
    assert problem_of_limit("user/a/b/connections", 7) == ""
    assert "connections cannot be 0" in problem_of_limit("user/a/b/connections", 0)
    assert "unknown limit 'conections'" in problem_of_limit("user/a/conections", 7)
    assert "unknown limit 'user/a'" in problem_of_limit("user/a", 7)
