"""Feature levels: what every member of a cluster knows, whatever its version is.

Level 1 is what clusters knew before there were levels. Level 2 brings announcements themselves,
level 3 users and permissions, level 4 virtual hosts and limits, level 5 exchanges, shared queues
and bindings, level 6 policies, level 7 several commands in one, and level 8 who is not to become
the root.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ("FIRST_LEVEL", "HIGHEST_LEVEL", "MEMBERS_MAX", "NotUnderstood", "lacking")

FIRST_LEVEL = 1

HIGHEST_LEVEL = 8
"""The highest one that this version knows."""

MEMBERS_MAX = 10_000
"""So many containers may announce what they know: the state stays bounded."""


class NotUnderstood(CogworkError):
    """What the cluster has committed needs a later version: to go on without it would diverge."""

    def __init__(self, what: str) -> None:
        """Say what it is.

        Args:
            what: That is not known here.
        """
        super().__init__(
            f"the cluster's declarations hold {what}, and this version of cogwork knows feature "
            f"levels up to {HIGHEST_LEVEL} only: install the version that the other members have"
        )


def lacking(members: Iterable[str], supports: Mapping[str, int], level: int) -> list[str]:
    """Return which members have not announced that they know a level, sorted."""
    return sorted(each for each in members if supports.get(each, FIRST_LEVEL) < level)
