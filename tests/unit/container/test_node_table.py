"""Who follows the nodes of a virtual host looks at those that have changed, and at no other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cogwork.container.federation.backlogs import Backlogs
from cogwork.container.federation.partitions import Partitions
from cogwork.container.vhost.node_table import NodeTable

MANY = 200


class CountingTable(NodeTable):
    """Counts how often a node is asked for.

    Attributes:
        looks: How often.
    """

    looks = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.looks += 1
        return super().get(key, default)


def node() -> Any:
    """Stand for a node of no kind: nobody asks it anything here."""
    return object()


def test_a_follower_learns_of_what_there_is_and_of_each_change() -> None:
    nodes = NodeTable()
    nodes["queue/a"] = node()
    changed = nodes.follow()
    assert changed == {"queue/a"}
    changed.clear()
    nodes["queue/b"] = node()
    assert changed == {"queue/b"}
    changed.clear()
    del nodes["queue/a"]
    assert changed == {"queue/a"}


@pytest.mark.parametrize("kind", ["backlogs", "partitions"])
def test_one_node_more_has_no_other_looked_at(kind: str) -> None:
    nodes = CountingTable()
    mesh: Any = SimpleNamespace(id="a")
    vhost: Any = SimpleNamespace(nodes=nodes, name="", exchanges=SimpleNamespace(private=()))
    for number in range(MANY):
        nodes[f"queue/{number}"] = node()
    reach: Any = None
    made: Backlogs | Partitions
    made = Backlogs(mesh, vhost) if kind == "backlogs" else Partitions(mesh, vhost, reach)
    made.tick()
    assert nodes.looks == MANY
    nodes["queue/more"] = node()
    made.tick()
    made.tick()
    assert nodes.looks == MANY + 1
