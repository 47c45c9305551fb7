"""Who owns the partitions of a queue: rendezvous hashing, but what is held stays with its holder.

Theory of operation. Each container has a weight for each partition, from a hash of the address, the
container's id and the partition; the highest one owns it. So everybody who knows the same members
comes to the same owners, and a container that comes or goes changes only what it gets or had. A
partition that a member holds, as messages there still matter to later ones, stays where it is; of
several holders the one with the highest weight has it. One that is away for a while keeps what it
holds and nobody else does.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import shake_128
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("owners_of",)

NOBODY: Mapping[str, int] = MappingProxyType({})

WEIGHT_BYTES = 4
WEIGHTS_KEPT_MAX = 16_384


def owners_of(
    address: str, count: int, members: Mapping[str, int], away: Mapping[str, int] = NOBODY
) -> list[str | None]:
    """Return the owner of each partition; None where there is nobody.

    Args:
        address: The queue.
        count: How many partitions it has.
        members: The containers that share it, with the partitions that each holds, as bits.
        away: Those that are waited for, with what they hold.
    """
    return [_owner_of(address, count, partition, members, away) for partition in range(count)]


def _owner_of(
    address: str, count: int, partition: int, members: Mapping[str, int], away: Mapping[str, int]
) -> str | None:
    holders = _holders(partition, members) or _holders(partition, away)
    return max(
        holders or members,
        key=lambda each: (_weights(address, each, count)[partition], each),
        default=None,
    )


def _holders(partition: int, members: Mapping[str, int]) -> list[str]:
    return [each for each, held in members.items() if held >> partition & 1]


@lru_cache(WEIGHTS_KEPT_MAX)
def _weights(address: str, container: str, count: int) -> tuple[bytes, ...]:
    """Compute a container's weight for each partition of a queue."""
    octets = shake_128(f"{container}\0{address}".encode()).digest(WEIGHT_BYTES * count)
    return tuple(octets[at : at + WEIGHT_BYTES] for at in range(0, len(octets), WEIGHT_BYTES))
