"""Kinds of scenarios: one draws from everything, the others press on one weak spot each."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ("KINDS", "SCENES", "Scene", "scene_of")

SIZES = ((1, 3), (2, 5), (3, 70), (4, 7), (5, 15))
"""How many replicas at first, and how many scenarios of a hundred have so many."""

KINDS = {
    "crash": 4,
    "restart": 4,
    "power": 1,
    "partition": 3,
    "isolate": 3,
    "one_way": 2,
    "heal": 3,
    "weather": 3,
    "lag": 1,
    "slow_disk": 2,
    "full_disk": 1,
    "failed_sync": 1,
    "rot": 1,
    "pause": 2,
    "transfer": 2,
    "change": 3,
    "retire": 2,
    "read": 3,
}
"""Kinds of disturbance and their weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What sort of scenario it is.

    Attributes:
        name: Its name.
        share: How many scenarios of a hundred are like this.
        kinds: Disturbances and their weights.
        is_swarm: Whether each scenario draws some of the kinds, and leaves the others out.
        moves: How many disturbances there are, least and most.
        pace: How many come in a second.
        sizes: As `SIZES`.
        has_clients: Whether anybody appends.
        is_busy: Whether they append all the while.
        settings: What is not drawn.
        snapshot_every: Likewise; 0: drawn.
        is_rough: Whether the network is bad from the beginning.
        is_hosted: Whether each of them runs on hosts.
        is_calm_after: Whether it is looked at what leaders do when all is well again.
        syncs_s: Each synchronisation of all disks takes one of these longer, in the end, too; none:
            disks are quick where nothing disturbs.
    """

    name: str
    share: int
    kinds: dict[str, int]
    is_swarm: bool = False
    moves: tuple[int, int] = (3, 10)
    pace: float = 4.0
    sizes: tuple[tuple[int, int], ...] = SIZES
    has_clients: bool = True
    is_busy: bool = False
    settings: dict[str, float] = field(default_factory=dict)
    snapshot_every: int = 0
    is_rough: bool = False
    is_hosted: bool = False
    is_calm_after: bool = False
    syncs_s: tuple[float, ...] = ()


ANYTHING = Scene(name="anything", share=51, kinds=KINDS, is_swarm=True)

SCENES = (
    ANYTHING,
    Scene(
        name="elections",
        share=6,
        kinds={"blink": 12, "weather": 1, "isolate": 1, "heal": 1},
        moves=(20, 50),
        pace=25.0,
        sizes=((3, 70), (4, 20), (5, 10)),
        has_clients=False,
        settings={"rank_share": 0.0, "priority_hold_s": 10.0},
        is_rough=True,
    ),
    Scene(
        name="disks",
        share=6,
        kinds={"slow_disk": 6, "isolate": 4, "heal": 4, "transfer": 3, "power": 1, "full_disk": 1},
        moves=(8, 16),
        pace=6.0,
        sizes=((3, 80), (5, 20)),
        settings={"uncommitted_entries": 1000, "uncommitted_bytes": 1_000_000},
    ),
    Scene(
        name="slow",
        share=1,
        kinds={"crash": 3, "restart": 3, "blink": 2, "isolate": 3, "heal": 3, "power": 1}
        | {"transfer": 2, "weather": 1},
        moves=(2, 6),
        pace=1.0,
        settings={
            "election_max_s": 3.0,
            "append_entries": 64,
            "append_bytes": 100_000,
            "window_messages": 64,
            "window_bytes": 1_000_000,
        },
        syncs_s=(0.1, 0.15, 0.2, 0.3, 0.5),
    ),
    Scene(
        name="torn",
        share=2,
        kinds={"torn": 8, "isolate": 5, "heal": 5, "transfer": 1},
        moves=(10, 25),
        pace=8.0,
        sizes=((3, 80), (5, 20)),
        is_busy=True,
        settings={
            "uncommitted_entries": 1000,
            "uncommitted_bytes": 1_000_000,
            "hint_entries": 1,
        },
    ),
    Scene(
        name="members",
        share=6,
        kinds={"change": 8, "isolate": 3, "heal": 4, "partition": 2, "restart": 2, "transfer": 2}
        | {"promote": 1, "leave": 1},
        moves=(8, 20),
        pace=8.0,
        sizes=((1, 30), (2, 20), (3, 50)),
        settings={"catch_up_s": 3.0},
    ),
    Scene(
        name="returns",
        share=4,
        kinds={"return": 6, "change": 3, "retire": 3, "heal": 1, "restart": 1},
        moves=(3, 8),
        pace=1.5,
        sizes=((3, 90), (5, 10)),
        settings={"catch_up_s": 3.0},
    ),
    Scene(
        name="wiped",
        share=3,
        kinds={"wipe": 6, "isolate": 3, "heal": 4, "crash": 2, "restart": 4, "transfer": 2}
        | {"pause": 1, "lag": 1, "power": 1, "slow_disk": 1},
        moves=(4, 14),
        pace=3.0,
        sizes=((3, 70), (4, 10), (5, 20)),
        settings={"catch_up_s": 3.0},
    ),
    Scene(
        name="outlast",
        share=1,
        kinds={"outlast": 8, "restart": 1},
        moves=(1, 4),
        pace=1.2,
        sizes=((3, 90), (5, 10)),
        is_busy=True,
        settings={"catch_up_s": 3.0},
    ),
    Scene(
        name="sleep",
        share=2,
        kinds={"oversleep": 5, "change": 1, "restart": 1, "pause": 1, "isolate": 1, "heal": 1},
        moves=(2, 6),
        pace=1.0,
        sizes=((3, 60), (4, 25), (5, 15)),
        settings={"quiesce_s": 0.2, "catch_up_s": 3.0},
        is_hosted=True,
    ),
    Scene(
        name="reads",
        share=4,
        kinds={"read": 14, "isolate": 2, "heal": 3, "pause": 5, "slow_disk": 3, "transfer": 3}
        | {"fresh_read": 3},
        moves=(10, 25),
        pace=12.0,
        sizes=((3, 50), (5, 50)),
        settings={"reads": 100},
    ),
    Scene(
        name="snapshots",
        share=4,
        kinds={"lag": 2, "crash": 2, "restart": 3, "weather": 3, "isolate": 2, "heal": 2},
        snapshot_every=2,
    ),
    Scene(
        name="storm",
        share=4,
        kinds={"weather": 8, "transfer": 3, "isolate": 2, "heal": 2, "slow_disk": 1},
        moves=(8, 16),
        pace=6.0,
        sizes=((3, 80), (5, 20)),
        settings={"window_messages": 64, "append_entries": 2, "uncommitted_entries": 1000},
        is_rough=True,
    ),
    Scene(
        name="calm",
        share=2,
        kinds={"crash": 3, "restart": 3, "pause": 2, "transfer": 3, "isolate": 2, "change": 2},
        is_swarm=True,
        moves=(1, 4),
        sizes=((2, 10), (3, 70), (4, 10), (5, 10)),
        settings={"priority_hold_s": 0.3, "catch_up_s": 3.0},
        is_calm_after=True,
    ),
    Scene(
        name="figure_8",
        share=2,
        kinds={"figure_8": 8, "restart": 1},
        moves=(2, 4),
        pace=0.8,
        sizes=((3, 100),),
        settings={"append_entries": 1, "priority_hold_s": 10.0},
    ),
    Scene(
        name="late",
        share=2,
        kinds={"amnesia": 10, "lag": 1, "heal": 1},
        moves=(1, 5),
        pace=0.8,
        sizes=((3, 90), (5, 10)),
        is_busy=True,
        settings={"priority_hold_s": 10.0, "rank_share": 1.0, "uncommitted_entries": 1000},
    ),
)
"""With their shares."""


def scene_of(name: str) -> Scene | None:
    """Return a scene by its name; none for no name."""
    return next(each for each in SCENES if each.name == name) if name else None
