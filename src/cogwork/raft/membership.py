"""Who takes part in a group, and what a majority is.

A change of the voters goes through a joint membership, in which a majority of the old ones and a
majority of the new ones must agree (Raft §6). The voters are in order of leader priority: the first
is preferred as leader.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from cogwork.raft.errors import Malformed

if TYPE_CHECKING:
    from collections.abc import Callable, Container

__all__ = ("ID_BYTES_MAX", "LEARNERS_MAX", "VOTERS_MAX", "Membership")

VOTERS_MAX = 9
"""More voters make a group slower and hardly safer."""

LEARNERS_MAX = 1024
"""As many as a mesh has containers."""

ID_BYTES_MAX = 64
"""As in the mesh."""


@dataclass(frozen=True)
class Membership:
    """The members of a group.

    Attributes:
        voters: Those that elect and commit, in order of leader priority.
        learners: Those that only follow (dissertation §4.2.1).
        old_voters: In a joint membership, the voters before it; else none.
    """

    voters: tuple[str, ...] = ()
    learners: tuple[str, ...] = ()
    old_voters: tuple[str, ...] = ()

    @property
    def is_joint(self) -> bool:
        """Whether the voters are just being changed."""
        return bool(self.old_voters)

    @cached_property
    def everyone(self) -> frozenset[str]:
        """All members."""
        return frozenset((*self.voters, *self.learners, *self.old_voters))

    @cached_property
    def all_voters(self) -> frozenset[str]:
        """All that vote, of both halves."""
        return frozenset((*self.voters, *self.old_voters))

    def rank(self, member: str) -> int:
        """Return the place in the order of leader priority, 0 for the one of highest priority."""
        if member in self.voters:
            return self.voters.index(member)
        return len(self.voters)

    def is_quorum(self, members: Container[str]) -> bool:
        """Return whether these are a majority, in a joint membership of both halves."""
        if self.old_voters and not _is_majority(self.old_voters, members):
            return False
        return _is_majority(self.voters, members)

    def quorum_index(self, index_of: Callable[[str], int]) -> int:
        """Return the highest index that a majority has reached, in a joint one of both halves."""
        reached = _majority_index(self.voters, index_of)
        if self.old_voters:
            reached = min(reached, _majority_index(self.old_voters, index_of))
        return reached

    def check(self) -> None:
        """Refuse a membership that no group can have.

        Raises:
            ValueError: The text says what is wrong.
        """
        if not self.voters:
            raise ValueError("a group needs at least one voter")
        if len(self.voters) > VOTERS_MAX or len(self.learners) > LEARNERS_MAX:
            raise ValueError(f"a group has at most {VOTERS_MAX} voters, {LEARNERS_MAX} learners")
        for members in ((*self.voters, *self.learners), self.old_voters):
            if len(set(members)) != len(members):
                raise ValueError("a member is named twice")
        for member in self.everyone:
            if not 1 <= len(member.encode()) <= ID_BYTES_MAX:
                raise ValueError(f"a member's id has 1 to {ID_BYTES_MAX} octets")

    def to_bytes(self) -> bytes:
        """Encode it: three lists, each a count (two octets) and ids behind their length (one)."""
        parts: list[bytes] = []
        for members in (self.voters, self.learners, self.old_voters):
            parts.append(len(members).to_bytes(2, "big"))
            for member in members:
                octets = member.encode()
                parts.append(bytes((len(octets),)))
                parts.append(octets)
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> Membership:
        """Decode it; no voters at all stand for a member that does not know the group yet.

        Raises:
            Malformed: It is none.
        """
        position = 0
        lists: list[tuple[str, ...]] = []
        for _ in range(3):
            members, position = _decode_list(data, position)
            lists.append(members)
        if position != len(data):
            raise Malformed("octets after the membership")
        found = cls(*lists)
        if found != NOBODY:
            try:
                found.check()
            except ValueError as error:
                raise Malformed(f"no membership: {error}") from None
        return found


NOBODY = Membership()


def _is_majority(voters: tuple[str, ...], members: Container[str]) -> bool:
    return 2 * len([voter for voter in voters if voter in members]) > len(voters)


def _majority_index(voters: tuple[str, ...], index_of: Callable[[str], int]) -> int:
    if not voters:
        return 0
    return sorted(map(index_of, voters))[(len(voters) - 1) // 2]


def _decode_list(data: bytes, position: int) -> tuple[tuple[str, ...], int]:
    count = int.from_bytes(data[position : position + 2], "big")
    position += 2
    members: list[str] = []
    for _ in range(count):
        if position >= len(data):
            raise Malformed("the membership ends in the middle")
        end = position + 1 + data[position]
        try:
            members.append(str(data[position + 1 : end], "utf-8"))
        except UnicodeDecodeError:
            raise Malformed("a member's id is no text") from None
        position = end
    if position > len(data):
        raise Malformed("the membership ends in the middle")
    return tuple(members), position
