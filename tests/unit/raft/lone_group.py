"""One member of a group, without the others: a test says what they send."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from cogwork.raft.core import Recovered
from cogwork.raft.entries import Entry, Kind
from cogwork.raft.group import Group
from cogwork.raft.membership import Membership
from cogwork.raft.messages import AppendReply, VoteReply
from cogwork.raft.ready import HardState
from cogwork.raft.roles import Role
from cogwork.raft.settings import Settings
from cogwork.raft.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.raft.messages import Message
    from cogwork.raft.ready import Ready

__all__ = ("THREE", "entry", "group_of", "leader_of", "sent", "settle")

THREE = Membership(("a", "b", "c"))


def group_of(
    membership: Membership = THREE, entries: Sequence[Entry] = (), term: int = 0, **limits: Any
) -> Group:
    recovered = Recovered(
        hard_state=HardState(term), snapshot=Snapshot(membership=membership), entries=entries
    )
    return Group(
        "a", recovered, Random(1), 0.0, settings=Settings(**limits)
    )  # whatever a test needs


def settle(group: Group) -> list[Ready]:
    """Have a quick disk, and return all that was to be done."""
    done = []
    while ready := group.ready():
        if ready.write is not None:
            group.persisted(ready.write.number, 0.0)
        done.append(ready)
    return done


def sent(group: Group) -> list[tuple[str, Message]]:
    return [each for ready in settle(group) for each in ready.messages]


def leader_of(**limits: Any) -> Group:
    group = group_of(**limits)
    group.tick(group.wake_s)
    settle(group)
    group.step("b", VoteReply(1, is_granted=True, is_pre=True), group.wake_s)
    settle(group)
    group.step("b", VoteReply(1, is_granted=True), group.wake_s)
    settle(group)
    assert group.role is Role.LEADER
    group.step("b", AppendReply(1, 1), 0)
    group.step("c", AppendReply(1, 1), 0)
    settle(group)
    assert group.commit == 1
    return group


def entry(index: int, term: int, payload: bytes = b"x") -> Entry:
    return Entry(index, term, Kind.COMMAND, payload)
