"""Permissions of the file: who may do what, in which virtual host."""

from __future__ import annotations

import pytest

from cogwork.container.permissions import permissions_of
from cogwork.container.settings import Anonymous, Configuration, Permission, Right, User

ALICE = User(
    name="alice",
    permissions=[
        Permission(address="queue/#", rights=["send"]),
        Permission(address="#", rights=["receive"], vhost="blue"),
    ],
)


@pytest.mark.parametrize(
    ("vhost", "right", "allowed"),
    [
        (None, "send", True),
        ("blue", "send", True),
        (None, "receive", False),
        ("blue", "receive", True),
        (None, "manage", False),
    ],
)
def test_rights_and_virtual_hosts_are_kept_apart(
    vhost: str | None, right: Right, allowed: bool
) -> None:
    permissions = permissions_of(Configuration(users=[ALICE]), "alice")
    assert permissions is not None
    for _ in range(2):
        assert permissions.allows(right, "queue/a", vhost) is allowed


def test_a_pattern_asked_for_must_be_covered_whole() -> None:
    permissions = permissions_of(Configuration(users=[ALICE]), "alice")
    assert permissions is not None
    assert permissions.allows("send", "queue/*")
    assert not permissions.allows("send", "#")


def test_anonymous_has_permissions_of_its_own() -> None:
    everything = permissions_of(Configuration(users=[ALICE]), None)
    assert everything is not None
    assert everything.allows("manage", "queue/a")
    nothing = permissions_of(Configuration(anonymous=Anonymous(permissions=[])), None)
    assert nothing is not None
    assert not nothing.allows("send", "queue/a")


def test_a_stranger_has_none_at_all() -> None:
    assert permissions_of(Configuration(users=[ALICE]), "mallory") is None
