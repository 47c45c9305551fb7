"""What the mesh takes at most, and how long it waits.

Bounds are the same in every container: one that passed on what its neighbour refuses would be cut
off for another one's fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = (
    "ADDRESS_BYTES_MAX",
    "CLUSTER_BYTES_MAX",
    "CONTAINERS_MAX",
    "COST_MAX",
    "HISTORY_DELTAS_MAX",
    "HOSTS_MAX",
    "ID_BYTES_MAX",
    "INCARNATION_LEAP_MAX",
    "INCARNATION_MAX",
    "INTERESTS_MAX",
    "INTEREST_BYTES_MAX",
    "MESH_INTERESTS_MAX",
    "MESH_INTEREST_BYTES_MAX",
    "MESSAGE_BYTES_MAX",
    "NEIGHBOURS_MAX",
    "OFFENCES_BURST",
    "OFFENCES_PER_S",
    "PACE_BURST",
    "PACE_PER_S",
    "PART_INTERESTS_MAX",
    "PROTOCOL_VERSION",
    "ROOM_S",
    "SEQUENCE_LEAP_MAX",
    "SNAPSHOTS_MAX",
    "TOKENS_BURST",
    "TOKENS_PER_S",
    "VIRTUAL_HOSTS_MAX",
    "VIRTUAL_HOST_BYTES_MAX",
    "Timers",
)

PROTOCOL_VERSION: Final = 1

ID_BYTES_MAX: Final = 64
"""A container's id stands in every advertisement, and in delivery-tags by its number."""

ADDRESS_BYTES_MAX: Final = 2048

CLUSTER_BYTES_MAX: Final = 64
"""What a cluster is known by: a UUID has 36."""

VIRTUAL_HOST_BYTES_MAX: Final = 256
VIRTUAL_HOSTS_MAX: Final = 256

HOSTS_MAX: Final = 64
"""URLs of one container, to which others redirect clients."""

CONTAINERS_MAX: Final = 1024
"""Containers in one mesh; the cost curves end long before."""

ROOM_S: Final = 10.0
"""So long a container that cannot be reached keeps its place where there is no room for others."""

NEIGHBOURS_MAX: Final = 256
"""Neighbours of one container."""

COST_MAX: Final = 65535
"""The cost of one link; the sum over a path stays far inside 64 bits."""

INTERESTS_MAX: Final = 16_384
"""Distinct patterns and addresses that one container may announce."""

INTEREST_BYTES_MAX: Final = 1024 * 1024
"""All of one container's patterns and addresses, with the names of their virtual hosts."""

MESH_INTERESTS_MAX: Final = 32 * INTERESTS_MAX
MESH_INTEREST_BYTES_MAX: Final = 64 * INTEREST_BYTES_MAX
"""Of all containers together. What does not fit is not taken, and offered again by its sender."""

MESSAGE_BYTES_MAX: Final = 256 * 1024
"""One message; a summary of `CONTAINERS_MAX` containers fits."""

PART_INTERESTS_MAX: Final = 100
"""Entries in one delta or one part of a snapshot: with the longest addresses it still fits."""

HISTORY_DELTAS_MAX: Final = 32
"""Deltas of one container kept for those who missed some; who missed more gets a snapshot."""

SNAPSHOTS_MAX: Final = 4
"""Snapshots that one neighbour may have begun and not completed."""

INCARNATION_MAX: Final = 2**63 - 1

INCARNATION_LEAP_MAX: Final = 2**41
"""How much newer than the known incarnation one may be: 69 years in milliseconds.

So an invented incarnation can always be outbid.
"""

SEQUENCE_LEAP_MAX: Final = 2**16
"""A false sequence further ahead than this is outbid by a new incarnation."""

TOKENS_PER_S: Final = 4000.0
"""What a neighbour may send in the long run: a message is one token and one more for each KiB."""

TOKENS_BURST: Final = 32_768.0
"""What a neighbour may send at once: the whole of a large mesh, after a partition."""

PACE_PER_S: Final = TOKENS_PER_S / 2
PACE_BURST: Final = TOKENS_BURST / 2
"""What is sent to a neighbour, of advertisements and interests: the rest waits, and what is said of
one container meanwhile is said once. So nobody is cut off for what others had it pass on."""

OFFENCES_PER_S: Final = 1.0
OFFENCES_BURST: Final = 64.0
"""Things that a neighbour may offer beyond the bounds before it is cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timers:
    """How long the mesh waits, in seconds.

    Attributes:
        hello_s: Between two hellos.
        dead_hellos: Missed hellos after which a neighbour is gone.
        ack_delay_s: How long acknowledgements are collected.
        retransmit_s: Until something unacknowledged is sent again, the first time; then twice it.
        retransmit_max_s: The longest pause between two attempts.
        advertise_hold_s: Between two own advertisements; doubles while changes go on.
        advertise_hold_max_s: The longest it becomes.
        refresh_s: After which an unchanged advertisement is repeated.
        max_age_s: After which an advertisement that was not repeated is forgotten.
        paths_hold_s: Between two computations of the paths.
        interest_hold_s: Between two own deltas; doubles while changes go on.
        interest_hold_max_s: The longest it becomes.
    """

    hello_s: float = 1.0
    dead_hellos: int = 3
    ack_delay_s: float = 0.02
    retransmit_s: float = 0.5
    retransmit_max_s: float = 4.0
    advertise_hold_s: float = 0.05
    advertise_hold_max_s: float = 1.0
    refresh_s: float = 60.0
    max_age_s: float = 180.0
    paths_hold_s: float = 0.03
    interest_hold_s: float = 0.005
    interest_hold_max_s: float = 0.1
