"""Workers of a container as one."""

from __future__ import annotations

from typing import Any

from cogwork.cli.management.folding import Folding
from cogwork.cli.terminal.graph import graph_of
from cogwork.cli.terminal.pictures import as_dot, as_svg


def container(
    name: str, cost: int | None, next_hop: str | None, **neighbours: int
) -> dict[str, Any]:
    return {
        "id": name,
        "neighbours": {each.replace("_", "."): cost for each, cost in neighbours.items()},
        "cost": cost,
        "next_hop": next_hop,
        "unreachable_s": None if cost is not None else 30.0,
        "interests": {"topic": 2, "anycast": 0, "queue": 1},
        "backlog": 10,
    }


def snapshot(own: str = "n.1") -> dict[str, Any]:
    """Two workers, the first of which is linked with a container elsewhere, as the other sees it.

    n.1 - n.0 - south - a.1, and a.1 is no worker: there is no a.0.
    """
    return {
        "id": own,
        "containers": [
            container("n.0", 1, "n.0", n_1=1, south=3),
            container("n.1", 0, None, n_0=1),
            container("south", 4, "n.0", n_0=3, a_1=1),
            container("a.1", 5, "n.0", south=1),
        ],
    }


def test_what_has_a_worker_0_and_another_one_is_folded() -> None:
    names = ["n.0", "n.1", "n.10", "a.1", "a.2", "b.0", "c.0", "c.1", "c", "d.00", "d.0", "x"]
    folding = Folding(names)
    assert folding.workers == {"n": ["n.0", "n.1", "n.10"]}
    assert [folding.name_of(name) for name in names[:5]] == ["n", "n", "n", "a.1", "a.2"]
    assert folding.is_inside("n.0", "n.10")
    assert not folding.is_inside("n.0", "a.1")
    assert not folding.is_inside("x", "x")
    assert not folding.is_inside("n.0", None)


def test_a_mesh_with_workers_folded() -> None:
    graph = graph_of(snapshot())
    folded = Folding(graph.vertices).graph(graph)
    assert folded.own == "n"
    assert list(folded.vertices) == ["a.1", "n", "south"]
    north, south = folded.vertices["n"], folded.vertices["south"]
    assert (north.cost, north.next_hop, north.backlog) == (0, None, 20)
    assert north.interests == {"topic": 4, "anycast": 0, "queue": 2}
    assert north.neighbours == {"south": 3}
    assert (south.cost, south.next_hop, south.neighbours) == (4, "n", {"n": 3, "a.1": 1})
    found = {edge.ends: (edge.cost, edge.is_whole, edge.is_used) for edge in folded.edges}
    assert found == {("n", "south"): (3, True, True), ("a.1", "south"): (1, True, True)}
    assert '"n" -- "south" [label="3", penwidth=3, color=blue]' in as_dot(folded)


def test_it_is_unreachable_when_all_workers_are() -> None:
    known = snapshot("south")
    known["containers"][0] |= {"cost": None, "next_hop": None, "unreachable_s": 5.0}
    known["containers"][1] |= {"cost": 9, "next_hop": "n.1"}
    graph = graph_of(known)
    north = Folding(graph.vertices).graph(graph).vertices["n"]
    assert (north.cost, north.next_hop, north.unreachable_s) == (9, "n", None)
    known["containers"][1] |= {"cost": None, "next_hop": None, "unreachable_s": 7.0}
    graph = graph_of(known)
    north = Folding(graph.vertices).graph(graph).vertices["n"]
    assert (north.cost, north.next_hop, north.unreachable_s) == (None, None, 5.0)


def test_a_mesh_of_nothing_but_workers_is_one_box() -> None:
    known = snapshot()
    known["containers"] = known["containers"][:2]
    graph = graph_of(known)
    folded = Folding(graph.vertices).graph(graph)
    assert folded.edges == []
    assert ">n</text>" in as_svg(folded)


def test_shards_of_workers_are_added_up() -> None:
    def shard(address: str, name: str, backlog: int) -> dict[str, Any]:
        known = {"address": address, "virtual_host": "", "container": name}
        return {**known, "backlog": backlog, "consumers": 1}

    folding = Folding(["n.0", "n.1", "s"])
    rows = [shard("q", "n.0", 5), shard("q", "n.1", 6), shard("q", "s", 7), shard("r", "n.1", 8)]
    found = [
        (row["address"], row["container"], row["backlog"], row["consumers"])
        for row in folding.shards(rows)
    ]
    assert found == [("q", "n", 11, 2), ("q", "s", 7, 1), ("r", "n", 8, 1)]
    assert rows[0]["backlog"] == 5
