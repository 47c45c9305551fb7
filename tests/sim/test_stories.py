"""Short stories of every shape; `make sim` tells hundreds of long ones.

`COGWORK_SEED=… pytest tests/sim` tells the last of these again.
"""

from __future__ import annotations

import os
import random
import sys

import pytest
from retold import told_by_each

from cogwork.sim.story import Story
from cogwork.sim.topologies import SHAPES


@pytest.mark.parametrize("shape", sorted(SHAPES))
@pytest.mark.parametrize("containers", [2, 6])
def test_every_shape_stands_a_story(shape: str, containers: int) -> None:
    story = Story(containers, containers, shape)
    story.run(chapters=2)
    story.end()


def test_a_larger_mesh_stands_a_story() -> None:
    story = Story(7, 20, "random")
    story.run(chapters=1, events=10)
    story.end()


def test_a_story_that_was_never_told_ends_well() -> None:
    seed = int(os.environ.get("COGWORK_SEED", str(random.SystemRandom().randrange(2**32))))
    sys.stdout.write(f"COGWORK_SEED={seed}\n")
    story = Story(seed, containers=2 + seed % 7)
    story.run(chapters=3)
    story.end()


TOLD_ELSEWHERE = """
from cogwork.sim.story import Story
story = Story(11, 6, "random")
story.run(chapters=3)
print(story.told, sorted(story.world.network.sent_bytes.items()))
"""


def test_a_seed_tells_the_same_story_again_whatever_the_order_of_sets() -> None:
    told = told_by_each(TOLD_ELSEWHERE)
    assert len(told) == 1
    assert b"subscribes" in told.pop()


def test_another_seed_tells_another_story() -> None:
    one, other = Story(11, 5, "ring"), Story(12, 5, "ring")
    for story in (one, other):
        story.run(chapters=1)
    assert one.told != other.told
