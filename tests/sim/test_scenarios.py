"""Short scenarios of every shape; `make sim` runs hundreds of long ones.

`COGWORK_SEED=… pytest tests/sim` replays the last of these.
"""

from __future__ import annotations

import os
import random
import sys

import pytest
from replay import told_by_each

from cogwork.sim.scenario import Scenario
from cogwork.sim.topologies import SHAPES


@pytest.mark.parametrize("shape", sorted(SHAPES))
@pytest.mark.parametrize("containers", [2, 6])
def test_every_shape_stands_a_scenario(shape: str, containers: int) -> None:
    scenario = Scenario(containers, containers, shape)
    scenario.run(chapters=2)
    scenario.end()


def test_a_larger_mesh_stands_a_scenario() -> None:
    scenario = Scenario(7, 20, "random")
    scenario.run(chapters=1, events=10)
    scenario.end()


def test_a_new_scenario_ends_well() -> None:
    seed = int(os.environ.get("COGWORK_SEED", str(random.SystemRandom().randrange(2**32))))
    sys.stdout.write(f"COGWORK_SEED={seed}\n")
    scenario = Scenario(seed, containers=2 + seed % 7)
    scenario.run(chapters=3)
    scenario.end()


TOLD_ELSEWHERE = """
from cogwork.sim.scenario import Scenario
scenario = Scenario(11, 6, "random")
scenario.run(chapters=3)
print(scenario.told, sorted(scenario.world.network.sent_bytes.items()))
"""


def test_a_seed_gives_the_same_scenario_whatever_the_order_of_sets() -> None:
    told = told_by_each(TOLD_ELSEWHERE)
    assert len(told) == 1
    assert b"subscribes" in told.pop()


def test_another_seed_gives_another_scenario() -> None:
    one, other = Scenario(11, 5, "ring"), Scenario(12, 5, "ring")
    for scenario in (one, other):
        scenario.run(chapters=1)
    assert one.told != other.told
