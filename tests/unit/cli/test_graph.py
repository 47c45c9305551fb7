"""The mesh as a graph, and the pictures of it."""

from __future__ import annotations

import heapq
import math
import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from cogwork.cli.process.topologies import Topology, topology_of
from cogwork.cli.terminal.graph import Graph, graph_of, natural
from cogwork.cli.terminal.pictures import BOX_HEIGHT, BOX_WIDTH, as_dot, as_svg

SVG = "{http://www.w3.org/2000/svg}"


def ways(
    topology: Topology, own: str, costs: dict[str, int], gone: tuple[str, ...]
) -> dict[str, tuple[int, str | None]]:
    """Find cost and next hop of each container that can be reached."""
    found: dict[str, tuple[int, str | None]] = {}
    queue: list[tuple[int, str, str | None]] = [(0, own, None)]
    while queue:
        cost, name, hop = heapq.heappop(queue)
        if name in found or name in gone:
            continue
        found[name] = (cost, hop)
        for other in topology.neighbours_of(name):
            step = costs.get("-".join(sorted((name, other))), 1)
            heapq.heappush(queue, (cost + step, other, hop or other))
    return found


def snapshot(
    topology: Topology,
    own: str = "c1",
    costs: dict[str, int] | None = None,
    gone: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Make what a container answers."""
    costs = costs or {}
    found = ways(topology, own, costs, gone)
    return {
        "id": own,
        "containers": [
            {
                "id": name,
                "neighbours": {
                    other: costs.get("-".join(sorted((name, other))), 1)
                    for other in topology.neighbours_of(name)
                    if other not in gone
                },
                "cost": found.get(name, (None, None))[0],
                "next_hop": found.get(name, (None, None))[1],
                "unreachable_s": None if name in found else 75.0,
                "interests": {"topic": 3, "anycast": 0, "queue": 1},
                "backlog": 1200,
            }
            for name in topology.ids
        ],
    }


def graph(
    count: int,
    name: str,
    own: str = "c1",
    costs: dict[str, int] | None = None,
    gone: tuple[str, ...] = (),
) -> Graph:
    return graph_of(snapshot(topology_of(count, name), own, costs, gone))


def used(found: Graph) -> set[tuple[str, str]]:
    return {edge.ends for edge in found.edges if edge.is_used}


def test_names_are_sorted_as_people_count() -> None:
    assert sorted(["c10", "c9", "b", "c", "c9a"], key=natural) == ["b", "c", "c9", "c9a", "c10"]
    assert list(graph(11, "line").vertices)[-2:] == ["c10", "c11"]


def test_each_link_is_one_edge_with_the_higher_cost() -> None:
    asked = snapshot(topology_of(3, "line"))
    asked["containers"][0]["neighbours"]["c2"] = 7
    first, second = graph_of(asked).edges
    assert (first.ends, first.cost, first.is_whole) == (("c1", "c2"), 7, True)
    assert (second.ends, second.cost) == (("c2", "c3"), 1)


def test_a_link_that_one_end_denies_is_half() -> None:
    found = graph(3, "ring", gone=("c3",))
    assert {edge.ends for edge in found.edges if not edge.is_whole} == {("c1", "c3"), ("c2", "c3")}
    assert used(found) == {("c1", "c2")}


def test_the_ways_avoid_what_is_dear() -> None:
    assert used(graph(3, "ring")) == {("c1", "c2"), ("c1", "c3")}
    assert used(graph(3, "ring", costs={"c1-c3": 5})) == {("c1", "c2"), ("c2", "c3")}
    assert used(graph(3, "ring", own="c3")) == {("c1", "c3"), ("c2", "c3")}


def test_every_container_that_can_be_reached_hangs_on_one_used_link() -> None:
    for name in ("line", "ring", "star", "mesh"):
        found = graph(7, name)
        assert len(used(found)) == 6
        assert {end for edge in used(found) for end in edge} == set(found.vertices)


def test_a_walk_goes_from_neighbour_to_neighbour() -> None:
    assert graph(5, "ring", own="c3").walk() == ["c3", "c2", "c1", "c5", "c4"]
    assert graph(12, "mesh").walk() == [f"c{number}" for number in range(1, 13)]
    lonely = graph_of(snapshot(Topology(["c1", "c2", "c3"], [("c1", "c3")])))
    assert lonely.walk() == ["c1", "c3", "c2"]


@pytest.mark.parametrize(
    ("count", "name", "hub"),
    [(4, "star", "c1"), (3, "star", None), (4, "mesh", None), (5, "line", None), (1, "line", None)],
)
def test_only_a_star_has_a_hub(count: int, name: str, hub: str | None) -> None:
    assert graph(count, name).hub == hub


def test_the_language_of_graphviz() -> None:
    text = as_dot(graph(3, "ring", gone=("c3",)))
    assert text.startswith("graph mesh {\n")
    assert text.endswith("}\n")
    assert '"c1" [label="c1\\nseen from here\\n1,200 waiting, 3 patterns", penwidth' in text
    assert '"c1" -- "c2" [label="1", penwidth=3, color=blue];' in text
    assert '"c2" -- "c3" [label="1", style=dashed, color=red];' in text
    assert "unreachable, 1 min 15 s" in text


def test_names_cannot_leave_their_quotes() -> None:
    name = 'a"\\<b>&'
    found = graph_of(snapshot(Topology([name], []), own=name))
    assert '"a\\"\\\\<b>&" [label=' in as_dot(found)
    title = ET.fromstring(as_svg(found)).find(f".//{SVG}title")
    assert title is not None
    assert title.text == name


def boxes(svg: str) -> list[tuple[float, float]]:
    """Read where the boxes stand."""
    found = re.findall(r'<rect class="box \w+" x="([-\d.]+)" y="([-\d.]+)"', svg)
    return [(float(x), float(y)) for x, y in found]


@pytest.mark.parametrize("name", ["line", "ring", "star", "mesh"])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 12, 60])
def test_no_box_lies_on_another_or_outside(count: int, name: str) -> None:
    svg = as_svg(graph(count, name))
    left, top, width, height = map(float, ET.fromstring(svg).attrib["viewBox"].split())
    places = boxes(svg)
    assert len(places) == count
    for at, (x, y) in enumerate(places):
        assert left <= x <= x + BOX_WIDTH <= left + width
        assert top <= y <= y + BOX_HEIGHT <= top + height
        for other_x, other_y in places[:at]:
            assert abs(x - other_x) >= BOX_WIDTH or abs(y - other_y) >= BOX_HEIGHT


def test_the_links_of_a_ring_lie_on_the_circle() -> None:
    root = ET.fromstring(as_svg(graph(10, "ring")))
    lengths = [
        math.dist((float(a["x1"]), float(a["y1"])), (float(a["x2"]), float(a["y2"])))
        for a in (line.attrib for line in root.iter(f"{SVG}line"))
    ]
    assert len(lengths) == 10
    assert max(lengths) - min(lengths) < 1


def test_only_a_cost_above_1_is_written() -> None:
    svg = as_svg(graph(3, "ring", costs={"c2-c3": 42}))
    assert re.findall(r'class="cost"[^>]*>(\d+)<', svg) == ["42"]


def test_who_is_away_is_told_apart() -> None:
    svg = as_svg(graph(4, "ring", gone=("c3",)))
    assert svg.count('class="box away"') == 1
    assert svg.count('class="box own"') == 1
    assert svg.count('class="link half"') == 2
    assert "4 containers, 1 unreachable, 4 links" in svg
