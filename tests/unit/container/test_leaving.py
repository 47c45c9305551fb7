"""A container's way out of the mesh, where something on it fails."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from cogwork.container import leaving
from cogwork.container.federation.moving import Mover
from cogwork.container.leaving import Leaving
from cogwork.container.vhost.node_table import NodeTable
from cogwork.nodes.queue import QueueNode
from cogwork.plugin.loopback import Loopback

ITEMS = 3
STAGES = ("drain", "items", "replicas", "late", "links")


class Surroundings:
    """All that a container that leaves deals with: its mesh, its clients, its replicas.

    Attributes:
        done: What has been done, in order.
        fails: Where something raises.
    """

    problem = None
    moved = left = 0

    def __init__(self, fails: str) -> None:
        self.done: list[str] = []
        self.fails = fails
        self.core = SimpleNamespace(flush=lambda: None)
        self.is_leaving = False

    def do(self, stage: str) -> None:
        self.done.append(stage)
        if stage == self.fails:
            raise OSError("it broke")

    def drain(self) -> None:
        self.do("drain")

    def send_away(self) -> None:
        """Let clients go."""

    async def run(self, _timeout_s: float) -> None:
        self.do("replicas")

    def leave(self) -> None:
        self.do("links")

    async def move_all(self, *_: object) -> None:
        self.do("items")

    def has_more_since(self, *_: object) -> bool:
        self.do("late")
        return False


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "FAREWELL_S", 0.01)


def leave(around: Any, node: QueueNode) -> Leaving:
    """Have a container leave, until it has itself stopped."""

    async def run() -> Leaving:
        stopped = asyncio.Event()
        vhost: Any = SimpleNamespace(name="v", nodes=NodeTable())
        vhost.nodes[node.address] = node
        made = Leaving(around, around, [vhost], around, data_dir=None, on_left=stopped.set)
        made.start()
        async with asyncio.timeout(5):
            await stopped.wait()
        return made

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("fails", "told"),
    [
        ("", None),
        ("drain", "sending clients away failed: OSError('it broke')"),
        ("items", "moving the items of virtual host 'v' failed: OSError('it broke')"),
        ("replicas", "moving replicas failed: OSError('it broke')"),
        ("late", "stopping producers failed: OSError('it broke')"),
        ("links", "closing links failed: OSError('it broke')"),
    ],
)
def test_a_stage_that_fails_is_told_and_the_next_ones_come(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fails: str,
    told: str | None,
) -> None:
    around = Surroundings(fails)
    for name in ("move_all", "has_more_since"):
        monkeypatch.setattr(Mover, name, getattr(around, name))
    with Loopback(QueueNode, "queue/a", {}) as loop:
        loop.send(ITEMS, "x")
        assert isinstance(loop.node, QueueNode)
        facts = leave(around, loop.node).facts
    assert around.done == list(STAGES)
    assert (facts["phase"], facts["left"], facts["problem"]) == ("done", ITEMS, told)
    traced = [record for record in caplog.records if record.exc_info]
    assert len(traced) == (0 if told is None else 1)
