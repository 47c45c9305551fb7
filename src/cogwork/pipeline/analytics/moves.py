"""Where to move consumers, so that less goes from container to container."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ("Flow", "Move", "moves_of")

SHARE_MIN = 0.01
"""A move that saves less than this part of what goes between containers is not worth it."""

MOVES_MAX = 10


class Flow(NamedTuple):
    """What went from one container to the consumers of another one.

    Attributes:
        address: Whose messages these are.
        source: Where they came in.
        target: Where their consumers are.
        messages: How many.
        size_bytes: How much.
    """

    address: str
    source: str
    target: str
    messages: int
    size_bytes: int


class Move(NamedTuple):
    """A suggestion.

    Attributes:
        address: Whose consumers should move.
        source: Where they are.
        target: Where they should be.
        messages: How many messages would not go between containers any more, less those that
            would begin to.
        size_bytes: The same in bytes.
        share: Which part that is of everything between containers.
    """

    address: str
    source: str
    target: str
    messages: int
    size_bytes: int
    share: float


def moves_of(flows: Iterable[Flow], came: Mapping[tuple[str, str], int]) -> list[Move]:
    """Find moves that are worth it, the best one first, one for each address and container.

    Args:
        flows: The traffic between containers.
        came: How many messages came to an address (first) at a container (second).
    """
    known = list(flows)
    total = sum(flow.messages for flow in known)
    best: dict[tuple[str, str], Move] = {}
    for flow in known:
        arrived = sum(
            other.messages
            for other in known
            if (other.address, other.target) == (flow.address, flow.target)
        )
        own = max(0, came.get((flow.address, flow.target), 0) - arrived)
        saved = flow.messages - own
        if not total or saved / total < SHARE_MIN:
            continue
        size_bytes = int(flow.size_bytes * saved / flow.messages)
        move = Move(flow.address, flow.target, flow.source, saved, size_bytes, saved / total)
        key = flow.address, flow.target
        if key not in best or best[key].messages < saved:
            best[key] = move
    return sorted(best.values(), key=lambda move: -move.messages)[:MOVES_MAX]
