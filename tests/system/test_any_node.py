"""Three containers of a cluster do together what one does: random histories, compared step by step.

Each step is taken at one of the three, whichever comes, and at a container that is alone. Private
queues are left out: they belong to a connection.
"""

from __future__ import annotations

import os
import random
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING

import pytest

from cogwork.cluster.levels import HIGHEST_LEVEL

from .histories import OWN, QUEUES, Broker, QueueAuthor
from .meshes import linked, meshed
from .served import within
from .test_feature_levels import facts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .histories import Step
    from .meshes import Member

HISTORIES = int(os.environ.get("COGWORK_HISTORIES", "8"))
STEPS = 150
LEVEL_TIMEOUT_S = 30.0
"""So long the members take to agree that all of them share exchanges."""


class Somewhere:
    """Takes each step at any of several containers."""

    def __init__(self, nodes: list[Broker]) -> None:
        self.nodes = nodes
        self.begin(0)

    def begin(self, seed: int) -> None:
        self._random = random.Random(seed)

    def clear(self) -> None:
        for name in OWN:
            self.nodes[0].channel.exchange_delete(name)
        for name in QUEUES:
            self.nodes[0].channel.queue_delete(name)

    def play(self, step: Step) -> object:
        return self._random.choice(self.nodes).play(step)


def has_risen(member: Member) -> bool:
    return bool(facts(member).get("level") == HIGHEST_LEVEL)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Somewhere, Somewhere]]:
    folder: Path = tmp_path_factory.mktemp("any-node")

    def head(name: str) -> str:
        voters = "" if name == "alone" else '[cluster]\nprimaries = ["a", "b", "c"]\n'
        return f'data_dir = "{folder / name}"\n{voters}'

    with (
        meshed(folder, ["a", "b", "c", "alone"], ["ab", "bc", "ca"], head=head) as members,
        ExitStack() as stack,
    ):
        three = [members[name] for name in "abc"]
        linked(three)
        for member in three:
            within(LEVEL_TIMEOUT_S, partial(has_risen, member), f"{member.id} shares exchanges")
        opened = {
            name: stack.enter_context(closing(Broker(member.port)))
            for name, member in members.items()
        }
        yield Somewhere([opened[name] for name in "abc"]), Somewhere([opened["alone"]])


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_any_node_does_what_one_does(brokers: tuple[Somewhere, Somewhere], seed: int) -> None:
    anywhere, alone = brokers
    author = QueueAuthor(seed)
    anywhere.begin(seed)
    for each in brokers:
        each.clear()
    for number in range(STEPS):
        step = author.step()
        assert anywhere.play(step) == alone.play(step), f"seed {seed}, step {number}: {step}"
