"""The roles of a member, and how it comes from one to another.

Two rules: what is not listed cannot happen; and a role is left only by `next_role`. A pre-candidate
asks whether an election would succeed before it disturbs anybody by a new term (dissertation §9.6).
"""

from __future__ import annotations

from enum import Enum, auto

__all__ = ("Cause", "Role", "next_role")


class Role(Enum):
    """What a member does in its term (Raft §5.1)."""

    FOLLOWER = "follower"
    PRE_CANDIDATE = "pre-candidate"
    CANDIDATE = "candidate"
    LEADER = "leader"


class Cause(Enum):
    """Why a member changes its role."""

    TIMEOUT = auto()
    """Nothing has been heard of a leader, or the election has taken too long."""

    TIMEOUT_NOW = auto()
    """The leader has asked for an election (dissertation §3.10)."""

    WON = auto()
    """A majority has voted for it, or would."""

    LOST = auto()
    """A majority has voted against it, or would."""

    LEADER_HEARD = auto()
    """A leader of this term is there."""

    HIGHER_TERM = auto()
    """Somebody has a higher term (Raft §5.1)."""

    NO_QUORUM = auto()
    """The leader does not hear a majority any more (dissertation §6.2)."""

    REMOVED = auto()
    """It does not vote any more (Raft §6)."""


_F, _P, _C, _L = Role.FOLLOWER, Role.PRE_CANDIDATE, Role.CANDIDATE, Role.LEADER

_NEXT: dict[tuple[Role, Cause], Role] = {
    (_F, Cause.TIMEOUT): _P,
    (_F, Cause.TIMEOUT_NOW): _C,
    (_F, Cause.LEADER_HEARD): _F,
    (_F, Cause.HIGHER_TERM): _F,
    (_P, Cause.TIMEOUT): _P,
    (_P, Cause.TIMEOUT_NOW): _C,
    (_P, Cause.WON): _C,
    (_P, Cause.LOST): _F,
    (_P, Cause.LEADER_HEARD): _F,
    (_P, Cause.HIGHER_TERM): _F,
    (_P, Cause.REMOVED): _F,
    (_C, Cause.TIMEOUT): _P,
    (_C, Cause.WON): _L,
    (_C, Cause.LOST): _F,
    (_C, Cause.LEADER_HEARD): _F,
    (_C, Cause.HIGHER_TERM): _F,
    (_C, Cause.REMOVED): _F,
    (_L, Cause.HIGHER_TERM): _F,
    (_L, Cause.NO_QUORUM): _F,
    (_L, Cause.REMOVED): _F,
}


def next_role(role: Role, cause: Cause) -> Role:
    """Return the role after this."""
    assert (role, cause) in _NEXT, f"a {role.value} knows no {cause.name}"
    return _NEXT[role, cause]
