"""How the scripts of raft groups are told: what members say to each other, are and do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.raft.entries import Entry, Kind
from cogwork.raft.membership import Membership
from cogwork.raft.messages import Commit
from cogwork.raft.ready import (
    LeaderChanged,
    MembershipChanged,
    ReadFailed,
    Reported,
    RoleChanged,
    TransferEnded,
)

if TYPE_CHECKING:
    from cogwork.raft.group import Group
    from cogwork.raft.messages import Message
    from cogwork.raft.ready import Event

__all__ = ("event_text", "message_text", "state_text")

UNTOLD = {"rejected", "hint_index", "hint_term", "round", "durable"}
"""Fields of messages that are not shown where they say nothing."""


def message_text(message: Message) -> str:
    parts = [type(message).__name__]
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if name == "entries":
            parts.extend(entry_text(entry) for entry in value)
        elif name == "snapshot":
            parts.append(f"snapshot={value.index}/{value.term}")
        elif name == "data":
            parts.append(f"({len(value)} octets)")
        elif isinstance(value, bool):
            parts.extend([name.removeprefix("is_")] if value else [])
        elif value or name not in UNTOLD or isinstance(message, Commit):
            parts.append(f"{name}={value}")
    return " ".join(parts)


def entry_text(entry: Entry) -> str:
    if entry.kind == Kind.NOOP:
        return f"[{entry.index}/{entry.term}]"
    if entry.kind == Kind.MEMBERS:
        return f"[{entry.index}/{entry.term} {members_text(Membership.from_bytes(entry.payload))}]"
    return f"[{entry.index}/{entry.term} {entry.payload.decode()}]"


def members_text(membership: Membership) -> str:
    text = " ".join(membership.voters)
    if membership.learners:
        text += f" / {' '.join(membership.learners)}"
    if membership.is_joint:
        text += f" (before: {' '.join(membership.old_voters)})"
    return text


def state_text(group: Group | None) -> str:
    if group is None:
        return "down"
    parts = [f"{group.role.value} in term {group.term}"]
    parts.append(f"vote={group.vote} leader={group.leader}")
    parts.append(f"last={group.last_index} durable={group.durable_index} commit={group.commit}")
    parts.append(f"members={members_text(group.membership)}")
    return ", ".join(parts) + (", asleep" if group.is_quiescent else "")


def event_text(event: Event) -> str:
    match event:
        case RoleChanged(role, term):
            return f"is {role.value} in term {term}"
        case LeaderChanged(leader, term):
            return f"knows {leader or 'nobody'} to lead in term {term}"
        case MembershipChanged(index, membership):
            return f"has members {members_text(membership)} since {index}"
        case TransferEnded(to, is_done):
            return f"has {'handed' if is_done else 'not handed'} over to {to}"
        case ReadFailed(token):
            return f"fails to read {token}"
        case Reported(text):
            return f"reports: {text}"
