"""A mesh as a picture: for Graphviz, or as SVG.

The containers stand round a circle, in the order of a walk over the links, so that no link passes
behind a container that it does not belong to; one that is linked with all others stands in the
middle.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from cogwork.cli.terminal.tables import in_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.cli.terminal.graph import Edge, Graph, Vertex

__all__ = ("as_dot", "as_drawing", "as_svg")

BOX_WIDTH, BOX_HEIGHT = 180, 62
GAP = 44
"""Between neighbours on the circle, and round the picture."""

RADIUS_LEAST = 150
TITLE_CHARACTERS_MAX = 18
LEGEND_WIDTH, LEGEND_HEIGHT = 640, 26

_NOUNS = {"topic": "pattern", "anycast": "address", "queue": "queue"}

_STYLE = """
  text { font-family: system-ui, sans-serif; font-size: 12px; text-anchor: middle; fill: #334155 }
  .name { font-size: 15px; font-weight: 600; fill: #0f172a }
  .box { fill: #f8fafc; stroke: #64748b; stroke-width: 1.5 }
  .own { fill: #dbeafe; stroke: #2563eb; stroke-width: 2.5 }
  .away { fill: #fef2f2; stroke: #dc2626; stroke-dasharray: 5 4 }
  .link { stroke: #94a3b8; stroke-width: 1.5 }
  .used { stroke: #2563eb; stroke-width: 3.5 }
  .half { stroke: #dc2626; stroke-dasharray: 5 4 }
  .cost { paint-order: stroke; stroke: #fff; stroke-width: 5px; font-weight: 600 }
"""


class _Point(NamedTuple):
    x: float
    y: float


def as_dot(graph: Graph) -> str:
    """Write a mesh in the language of Graphviz."""
    vertices = [_dot_vertex(each, graph.own) for each in graph.vertices.values()]
    edges = [_dot_edge(each) for each in graph.edges]
    lines = ("graph mesh {", "  node [shape=box, style=rounded];", *vertices, *edges, "}")
    return "\n".join(lines) + "\n"


def _dot_vertex(vertex: Vertex, own: str) -> str:
    text = "\\n".join(map(_dot_text, (vertex.id, *_facts(vertex, own))))
    marks = ", penwidth=2.5, color=blue" if vertex.id == own else ""
    marks = marks or ("" if vertex.is_reachable else ', style="rounded,dashed", color=red')
    return f'  "{_dot_text(vertex.id)}" [label="{text}"{marks}];'


def _dot_edge(edge: Edge) -> str:
    one, other = map(_dot_text, edge.ends)
    marks = ", penwidth=3, color=blue" if edge.is_used else ""
    marks = marks or ("" if edge.is_whole else ", style=dashed, color=red")
    return f'  "{one}" -- "{other}" [label="{edge.cost}"{marks}];'


def _dot_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def as_svg(graph: Graph) -> str:
    """Draw a mesh as an SVG document."""
    return _drawn(graph, is_document=True)


def as_drawing(graph: Graph) -> str:
    """Draw a mesh as an element of a page, whose style sheet has the colours."""
    return _drawn(graph, is_document=False)


def _drawn(graph: Graph, *, is_document: bool) -> str:
    places = _places(graph)
    width = 2 * max(abs(place.x) for place in places.values()) + BOX_WIDTH + GAP
    width = max(width, LEGEND_WIDTH)
    height = 2 * max(abs(place.y) for place in places.values()) + BOX_HEIGHT + GAP
    frame = f"{-width / 2:.0f} {-height / 2:.0f} {width:.0f} {height + LEGEND_HEIGHT:.0f}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{frame}" width="{width:.0f}" '
        f'height="{height + LEGEND_HEIGHT:.0f}">',
        *(_ground(width, height) if is_document else ()),
        *(part for edge in graph.edges for part in _line(edge, places)),
        *(part for edge in graph.edges for part in _cost(edge, places)),
        *(part for each in graph.vertices.values() for part in _box(each, graph.own, places)),
        f'<text y="{height / 2 + LEGEND_HEIGHT / 2:.0f}">{escape(_legend(graph))}</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _ground(width: float, height: float) -> Iterator[str]:
    """Write what a document has and a page brings itself: style and background."""
    yield f"<style>{_STYLE}</style>"
    yield (
        f'<rect x="{-width / 2:.0f}" y="{-height / 2:.0f}" width="100%" height="100%" fill="#fff"/>'
    )


def _places(graph: Graph) -> dict[str, _Point]:
    """Find a place for each container; the middle is at 0, 0."""
    hub = graph.hub
    round_it = [name for name in graph.walk() if name != hub]
    places = {} if hub is None else {hub: _Point(0, 0)}
    if len(round_it) == 1:
        return {round_it[0]: _Point(0, 0)}
    step = 2 * math.pi / len(round_it)
    least = RADIUS_LEAST if hub is None else BOX_WIDTH + GAP
    radius = max(least, (BOX_WIDTH + GAP) / 2 / math.sin(step / 2))
    for at, name in enumerate(round_it):
        places[name] = _Point(radius * math.sin(at * step), -radius * math.cos(at * step))
    return places


def _line(edge: Edge, places: dict[str, _Point]) -> Iterator[str]:
    one, other = (places[name] for name in edge.ends)
    kind = "used" if edge.is_used else "link" if edge.is_whole else "half"
    yield (
        f'<line class="link {kind}" x1="{one.x:.1f}" y1="{one.y:.1f}" '
        f'x2="{other.x:.1f}" y2="{other.y:.1f}"/>'
    )


def _cost(edge: Edge, places: dict[str, _Point]) -> Iterator[str]:
    """Write what a link costs at a third of its length: in the middle, many may cross."""
    if edge.cost == 1:
        return
    one, other = (places[name] for name in edge.ends)
    x, y = (2 * one.x + other.x) / 3, (2 * one.y + other.y) / 3
    yield f'<text class="cost" x="{x:.1f}" y="{y + 4:.1f}">{edge.cost}</text>'


def _box(vertex: Vertex, own: str, places: dict[str, _Point]) -> Iterator[str]:
    x, y = places[vertex.id]
    kind = "own" if vertex.id == own else "box" if vertex.is_reachable else "away"
    left, top = x - BOX_WIDTH / 2, y - BOX_HEIGHT / 2
    name = vertex.id
    if len(name) > TITLE_CHARACTERS_MAX:
        name = f"{name[: TITLE_CHARACTERS_MAX - 1]}…"
    yield f"<g><title>{escape(vertex.id)}</title>"
    yield (
        f'<rect class="box {kind}" x="{left:.1f}" y="{top:.1f}" width="{BOX_WIDTH}" '
        f'height="{BOX_HEIGHT}" rx="8"/>'
    )
    yield f'<text class="name" x="{x:.1f}" y="{top + 22:.1f}">{escape(name)}</text>'
    for at, fact in enumerate(_facts(vertex, own)):
        yield f'<text x="{x:.1f}" y="{top + 39 + 15 * at:.1f}">{escape(fact)}</text>'
    yield "</g>"


def _facts(vertex: Vertex, own: str) -> list[str]:
    """Say in two short lines what a container is to the one that looks."""
    facts = [_way(vertex, own)]
    wants = [
        _counted(count, _NOUNS.get(kind, kind)) for kind, count in vertex.interests.items() if count
    ]
    if vertex.backlog:
        wants = [f"{vertex.backlog:,} waiting", *wants]
    return facts + ([", ".join(wants[:2])] if wants else [])


def _way(vertex: Vertex, own: str) -> str:
    if vertex.id == own:
        return "seen from here"
    if not vertex.is_reachable:
        return f"unreachable, {in_words(vertex.unreachable_s or 0)}"
    if vertex.next_hop in (None, vertex.id):
        return f"cost {vertex.cost}"
    return f"cost {vertex.cost} by {vertex.next_hop}"


def _counted(count: int, noun: str) -> str:
    plural = noun if count == 1 else f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{count:,} {plural}"


def _legend(graph: Graph) -> str:
    away = sum(not each.is_reachable for each in graph.vertices.values())
    gone = f", {away} unreachable" if away else ""
    return (
        f"{_counted(len(graph.vertices), 'container')}{gone}, "
        f"{_counted(len(graph.edges), 'link')}; blue: the ways from {graph.own}; "
        "a link without a number costs 1"
    )
