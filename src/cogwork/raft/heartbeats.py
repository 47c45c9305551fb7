"""Heartbeats between containers: one for each neighbour, whatever groups they share.

They tell that a container is there, for all its sleeping groups at once, and they measure the round
trip: each carries a time of its sender, and brings the last one of the other end back, with how
long it lay there.
"""

from __future__ import annotations

import msgspec

__all__ = ("Beat",)


class Beat(msgspec.Struct, gc=False):
    """A heartbeat of a container.

    Attributes:
        term: Its incarnation, which is higher after each start.
        stamp_us: The sender's time; 0 in the answer of one that knows of no group that they share:
            it is not answered.
        echo_us: The last `stamp_us` that came from the receiver; 0 for none.
        held_us: How long ago that came.
        election_ms: What the sender's round trips demand of election times.
    """

    term: int
    stamp_us: int
    echo_us: int = 0
    held_us: int = 0
    election_ms: int = 0
