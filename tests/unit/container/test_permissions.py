"""Permissions of the file, as the router takes them."""

from __future__ import annotations

import pytest

from cogwork.container.permissions import permissions_of
from cogwork.container.settings import Anonymous, Configuration, Permission, User
from cogwork.router.permissions import Right

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
        (None, Right.SEND, True),
        ("blue", Right.SEND, True),
        (None, Right.RECEIVE, False),
        ("blue", Right.RECEIVE, True),
        (None, Right.MANAGE, False),
    ],
)
def test_rights_and_virtual_hosts_are_kept_apart(
    vhost: str | None, right: Right, allowed: bool
) -> None:
    permissions = permissions_of(Configuration(users=[ALICE]), "alice", vhost)
    assert permissions is not None
    assert permissions.allows(right, "queue/a") is allowed


def test_anonymous_has_permissions_of_its_own() -> None:
    everything = permissions_of(Configuration(users=[ALICE]), None)
    assert everything is not None
    assert everything.allows(Right.MANAGE, "queue/a")
    nothing = permissions_of(Configuration(anonymous=Anonymous(permissions=[])), None)
    assert nothing is not None
    assert not nothing.allows(Right.SEND, "queue/a")


def test_a_stranger_has_none_at_all() -> None:
    assert permissions_of(Configuration(users=[ALICE]), "mallory") is None
