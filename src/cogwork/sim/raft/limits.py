"""How small a world is: tiny limits meet their edges in a few hundred steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

from cogwork.raft.settings import Settings

if TYPE_CHECKING:
    from random import Random

__all__ = ("Limits", "draw_limits")


#: How much of what all members have, and of what some lack, stays in memory.
MEMORIES: tuple[dict[str, int], ...] = (
    {"tail_bytes": 200, "spare_bytes": 0},
    {"tail_bytes": 1000, "spare_bytes": 1_000_000},
    {"tail_bytes": 1_000_000, "spare_bytes": 200},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of all replicas of one world.

    Attributes:
        settings: The core's.
        snapshot_every: Entries between two snapshots.
        kept: Entries that stay on disk before a snapshot.
        quick_s: A disk whose last write took no longer is taken for quick.
    """

    settings: Settings
    snapshot_every: int
    kept: int
    quick_s: float


def draw_limits(
    random: Random, fixed: dict[str, Any] | None = None, snapshot_every: int = 0
) -> Limits:
    """Draw limits.

    Args:
        random: From here.
        fixed: Settings that are not drawn.
        snapshot_every: Likewise; 0: drawn.
    """
    choice = random.choice
    settings = Settings(
        election_s=0.3,
        election_max_s=1.0,
        heartbeats=3,
        quiesce_s=choice((0.2, 1.0, inf)),
        priority_hold_s=choice((0.3, 2.0, 10.0)),
        catch_up_s=choice((0.3, 3.0)),
        append_entries=choice((1, 2, 4, 64)),
        append_bytes=choice((200, 1000, 100_000)),
        window_messages=choice((1, 2, 8, 64)),
        window_bytes=choice((300, 2000, 1_000_000)),
        chunk_bytes=choice((16, 60, 1000)),
        window_chunks=choice((1, 2, 4)),
        uncommitted_bytes=choice((500, 1_000_000)),
        uncommitted_entries=choice((2, 8, 1000)),
        unpersisted_bytes=choice((500, 1_000_000)),
        **choice(MEMORIES),
        ready_bytes=choice((200, 100_000)),
        reads=choice((8, 100)),
        held_messages=choice((8, 100)),
        hint_entries=choice((1, 5, 64)),
    )
    if fixed:
        settings = replace(settings, **fixed)
    return Limits(
        settings=settings,
        snapshot_every=snapshot_every or choice((2, 5, 10, 1000)),
        kept=choice((0, 0, 3, 1000)),
        quick_s=choice((0.0, 0.001, 0.002, inf)),
    )
