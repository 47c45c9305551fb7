#!/usr/bin/env python3
"""Draws the packages of `src/cogwork` and the imports between them.

    python3 tools/architecture.py [--check] [PICTURE]

It reads the imports from the sources and the rows from the layers in `.importlinter`, and writes
`docs/architecture.svg`. `--check` writes nothing: it compares the packages and arrows of the
picture with the sources, prints each difference, and exits with 1 if there is any.

Theory of operation. An arrow that others imply is left out (the transitive reduction), and the
rest is drawn in layers, as Sugiyama and others describe: an arrow that passes rows gets a point in
each of them; points and boxes of a row are ordered by the mean place of their neighbours, then
moved towards them as far as the gaps allow. All arrows to one package share their points, so that
they merge.
"""

from __future__ import annotations

import argparse
import ast
import configparser
import re
import sys
from html import escape
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import NamedTuple, TypeAlias

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "cogwork"
PICTURE = ROOT / "docs" / "architecture.svg"
CONTRACTS = ROOT / ".importlinter"

BOX_WIDTH, BOX_HEIGHT = 112.0, 34.0
ROW_HEIGHT = 66.0
GAP = 22.0
MARGIN = 28.0
LEGEND_HEIGHT = 40.0
PORTS_WIDTH = 72.0
"""How much of a box's lower edge arrows may leave from."""

SWEEPS = 60
"""How often the rows are ordered and moved; more changes nothing."""

CIMPORT = re.compile(r"^from cogwork\.(\w+)", re.MULTILINE)
"""In a `.pxd`, which `ast` cannot read."""

Edge: TypeAlias = tuple[str, str]
"""A package, and one that it imports."""

Place: TypeAlias = tuple[str, int]
"""A package and its own row; or the row that arrows to this package pass."""


class Architecture(NamedTuple):
    """What the picture shows.

    Attributes:
        rows: The packages of each layer; the lowest first.
        edges: The imports that no others imply.
        pure: The packages that do no I/O.
    """

    rows: list[list[str]]
    edges: set[Edge]
    pure: set[str]


class Layout(NamedTuple):
    """Where everything stands.

    Attributes:
        centres_x: The middle of each box and point.
        paths: For each edge the places from its package down to the imported one.
    """

    centres_x: dict[Place, float]
    paths: dict[Edge, list[Place]]


def contracts() -> configparser.ConfigParser:
    """Read the import contracts."""
    parser = configparser.ConfigParser()
    parser.read(CONTRACTS, encoding="utf-8")
    return parser


def packages() -> set[str]:
    """Return the folders with modules, directly below `src/cogwork`."""
    return {path.parent.name for path in SOURCES.glob("*/*.py")}


def layers(parser: configparser.ConfigParser) -> list[list[str]]:
    """Return the packages of each layer, the lowest first."""
    known = packages()
    lines = reversed(parser["importlinter:contract:layers"]["layers"].split("\n"))
    rows = ([name for name in re.findall(r"\w+", line) if name in known] for line in lines)
    return [row for row in rows if row]


def imports_of(path: Path) -> set[str]:
    """Return what is imported from `cogwork`, by the name that follows."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".pxd":
        return set(CIMPORT.findall(text))
    modules: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            modules += [f"{node.module}.{each.name}" for each in node.names]
    parts = [each.removeprefix("cython.cimports.").split(".") for each in modules]
    return {each[1] for each in parts if each[0] == "cogwork" and len(each) > 1}


def imports(names: set[str]) -> set[Edge]:
    """Return the imports between packages; modules that stand alone may be among them."""
    edges: set[Edge] = set()
    for path in SOURCES.rglob("*.p*"):
        if path.suffix in {".py", ".pxd"}:
            own = path.relative_to(SOURCES).parts[0].removesuffix(".py")
            edges |= {(own, other) for other in imports_of(path) & names - {own} if own in names}
    return edges


def reduced(edges: set[Edge], order: list[str]) -> set[Edge]:
    """Leave out each edge that a longer way implies.

    Args:
        edges: All of them.
        order: The packages, so that each one imports only those before it.
    """
    below: dict[str, set[str]] = {}
    for name in order:
        own = {target for source, target in edges if source == name}
        below[name] = own.union(*(below[each] for each in own))
    return {
        (source, target)
        for source, target in edges
        if not any((source, each) in edges and target in below[each] for each in order)
    }


def read() -> Architecture:
    """Read the sources and the contracts.

    Raises:
        SystemExit: A package imports one that is not in a lower layer.
    """
    parser = contracts()
    rows = layers(parser)
    listed = {name for row in rows for name in row}
    unlisted = packages() - listed
    edges = imports(listed | unlisted)
    for name in sorted(unlisted):  # in the lowest row above all that it imports
        rank = {each: row for row, names in enumerate(rows) for each in names}
        row = 1 + max((rank[to] for of, to in edges if of == name and to in rank), default=-1)
        if row == len(rows):
            rows.append([])
        rows[row].append(name)
    rank = {each: row for row, names in enumerate(rows) for each in names}
    wrong = sorted(edge for edge in edges if rank[edge[0]] <= rank[edge[1]])
    if wrong:
        raise SystemExit("\n".join(f"{of} imports {to}, in no lower layer" for of, to in wrong))
    pure = parser["importlinter:contract:pure"]["source_modules"].split()
    return Architecture(
        rows=rows,
        edges=reduced(edges, [name for row in rows for name in row]),
        pure={name.removeprefix("cogwork.") for name in pure} & set(rank),
    )


def laid_out(drawn: Architecture) -> Layout:
    """Find places for all boxes and arrows."""
    rank = {name: row for row, names in enumerate(drawn.rows) for name in names}
    paths = {
        (of, to): [(of, rank[of]), *((to, row) for row in range(rank[of] - 1, rank[to] - 1, -1))]
        for of, to in sorted(drawn.edges)
    }
    steps = sorted({step for path in paths.values() for step in pairwise(path)})
    places = {step for pair in steps for step in pair} | set(rank.items())
    rows = [sorted(each for each in places if each[1] == row) for row in range(len(drawn.rows))]
    near: dict[Place, list[Place]] = {each: [] for each in places}
    for upper, lower in steps:
        near[upper].append(lower)
        near[lower].append(upper)
    ordered = fewest_crossings(rows, near, steps)
    return Layout(centres_x(ordered, near, rank), paths)


def fewest_crossings(
    rows: list[list[Place]], near: dict[Place, list[Place]], steps: list[tuple[Place, Place]]
) -> list[list[Place]]:
    """Order each row by where its neighbours stand; of all orders met, the best is taken."""
    best = rows = [list(row) for row in rows]
    least = crossings(rows, steps)
    for sweep in range(SWEEPS):
        is_up = sweep % 2 == 0
        rows = [list(row) for row in rows]
        for index in range(len(rows)) if is_up else reversed(range(len(rows))):
            other = index - 1 if is_up else index + 1
            if 0 <= other < len(rows):
                rows[index] = by_neighbours(rows[index], rows[other], near)
        for row in rows:
            exchange(rows, row, steps)
        found = crossings(rows, steps)
        if found < least:
            best, least = rows, found
    return best


def by_neighbours(
    row: list[Place], other: list[Place], near: dict[Place, list[Place]]
) -> list[Place]:
    """Order a row by the mean place of each one's neighbours in another row."""
    at = {each: index / max(1, len(other) - 1) for index, each in enumerate(other)}
    own = {each: index / max(1, len(row) - 1) for index, each in enumerate(row)}
    means = {
        each: fmean([at[one] for one in near[each] if one in at] or [own[each]]) for each in row
    }
    return sorted(row, key=lambda each: (means[each], own[each]))


def exchange(rows: list[list[Place]], row: list[Place], steps: list[tuple[Place, Place]]) -> None:
    """Exchange neighbours in a row where that saves crossings."""
    for left in range(len(row) - 1):
        before = crossings(rows, steps)
        row[left : left + 2] = reversed(row[left : left + 2])
        if crossings(rows, steps) >= before:
            row[left : left + 2] = reversed(row[left : left + 2])


def crossings(rows: list[list[Place]], steps: list[tuple[Place, Place]]) -> int:
    """Count the pairs of steps that cross."""
    at = {each: index for row in rows for index, each in enumerate(row)}
    lines: dict[int, list[tuple[int, int]]] = {}
    for upper, lower in steps:
        lines.setdefault(lower[1], []).append((at[upper], at[lower]))
    return sum(
        (one[0] - other[0]) * (one[1] - other[1]) < 0
        for level in lines.values()
        for index, one in enumerate(level)
        for other in level[:index]
    )


def centres_x(
    rows: list[list[Place]], near: dict[Place, list[Place]], rank: dict[str, int]
) -> dict[Place, float]:
    """Move boxes and points towards their neighbours, as far as their order and the gaps allow."""
    widths = {each: BOX_WIDTH if rank[each[0]] == each[1] else 0.0 for row in rows for each in row}
    x: dict[Place, float] = {}
    for row in rows:
        x.update(spread(row, [0.0] * len(row), [1.0] * len(row), widths))
    for _ in range(SWEEPS):
        for row in (*rows, *reversed(rows)):
            pulls = [[(x[to], pull(each, to, widths)) for to in near[each]] for each in row]
            wanted_x = [mean(each) if each else 0.0 for each in pulls]
            weights = [sum(weight for _, weight in each) or 1.0 for each in pulls]
            x.update(spread(row, wanted_x, weights, widths))
    return x


def pull(one: Place, other: Place, widths: dict[Place, float]) -> float:
    """Return how strongly neighbours pull: points most, so that arrows run straight."""
    return {0: 8.0, 1: 2.0, 2: 1.0}[(widths[one] > 0) + (widths[other] > 0)]


def mean(weighted: list[tuple[float, float]]) -> float:
    """Return the mean of values with weights."""
    return sum(value * weight for value, weight in weighted) / sum(weight for _, weight in weighted)


def spread(
    row: list[Place], wanted_x: list[float], weights: list[float], widths: dict[Place, float]
) -> dict[Place, float]:
    """Place a row as near to where it wants to be as its order and gaps allow (least squares).

    The gaps are taken out first; what is left has to rise, which merging neighbours that fall
    achieves (isotonic regression).
    """
    offsets_x = [0.0]
    for left, right in pairwise(row):
        offsets_x.append(offsets_x[-1] + (widths[left] + widths[right]) / 2 + GAP)
    blocks: list[list[tuple[float, float]]] = []
    for wanted, weight, offset in zip(wanted_x, weights, offsets_x, strict=True):
        blocks.append([(wanted - offset, weight)])
        while len(blocks) > 1 and mean(blocks[-2]) > mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    risen = [mean(block) for block in blocks for _ in block]
    return {each: x + offset for each, x, offset in zip(row, risen, offsets_x, strict=True)}


STYLE = """\
  text { font: 600 14px system-ui, 'DejaVu Sans', sans-serif; text-anchor: middle; fill: #0f172a }
  .note { font-weight: 400; font-size: 13px; text-anchor: start; fill: #334155 }
  .package { fill: #f8fafc; stroke: #64748b; stroke-width: 1.5 }
  .pure { fill: #dcfce7; stroke: #16a34a }
  .import { fill: none; stroke: #64748b; stroke-width: 1.5 }
  .layer { stroke: #e2e8f0 }
"""


def svg_of(drawn: Architecture) -> str:
    """Draw the packages in rows, and an arrow for each import."""
    layout = laid_out(drawn)
    left = min(layout.centres_x.values()) - BOX_WIDTH / 2 - MARGIN
    right = max(layout.centres_x.values()) + BOX_WIDTH / 2 + MARGIN
    bottom = MARGIN + len(drawn.rows) * ROW_HEIGHT
    size = f'{right - left:.0f}" height="{bottom + LEGEND_HEIGHT:.0f}'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:.0f} 0 '
        f'{right - left:.0f} {bottom + LEGEND_HEIGHT:.0f}" width="{size}">',
        "<title>The packages of Cogwork, by layer; an arrow leads to what is imported</title>",
        f"<style>\n{STYLE}</style>",
        '<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 1 L10 5 L0 9 z" fill="#64748b"/></marker>',
        f'<rect x="{left:.0f}" y="0" width="100%" height="100%" fill="#fff"/>',
    ]
    lines += [arrow(edge, layout, len(drawn.rows)) for edge in layout.paths]
    for row, names in enumerate(drawn.rows):
        for name in names:
            kind = "package pure" if name in drawn.pure else "package"
            lines.append(
                box(name, kind, layout.centres_x[name, row], y_of(row, len(drawn.rows)), row)
            )
    lines += legend(left + MARGIN, bottom)
    return "\n".join([*lines, "</svg>", ""])


def y_of(row: int, count: int) -> float:
    """Return the middle of a row."""
    return MARGIN + (count - row - 0.5) * ROW_HEIGHT


def box(name: str, kind: str, x: float, y: float, row: int) -> str:
    """Draw a package."""
    return (
        f'<g data-package="{escape(name)}" data-row="{row}"><rect class="{kind}" '
        f'x="{x - BOX_WIDTH / 2:.1f}" y="{y - BOX_HEIGHT / 2:.1f}" width="{BOX_WIDTH:.0f}" '
        f'height="{BOX_HEIGHT:.0f}" rx="7"/><text x="{x:.1f}" y="{y + 5:.1f}">{escape(name)}</text>'
        "</g>"
    )


def arrow(edge: Edge, layout: Layout, count: int) -> str:
    """Draw an import: from a port of its own at the lower edge, to the middle of the upper edge."""
    path, x = layout.paths[edge], layout.centres_x
    leaving = sorted(
        (x[other[1]], target) for (of, target), other in layout.paths.items() if of == edge[0]
    )
    port = [target for _, target in leaving].index(edge[1])
    shift = PORTS_WIDTH * ((port + 0.5) / len(leaving) - 0.5)
    at_x, at_y = x[path[0]] + shift, y_of(path[0][1], count) + BOX_HEIGHT / 2
    drawn = f"M{at_x:.1f} {at_y:.1f}"
    for place in path[1:]:
        is_last = place == path[-1]
        y = y_of(place[1], count) - BOX_HEIGHT / 2
        bend = (y - at_y) / 2
        drawn += (
            f" C{at_x:.1f} {at_y + bend:.1f} {x[place]:.1f} {y - bend:.1f} {x[place]:.1f} {y:.1f}"
        )
        at_x, at_y = x[place], y
        if not is_last:
            at_y = y + BOX_HEIGHT
            drawn += f" V{at_y:.1f}"
    return (
        f'<path class="import" data-from="{edge[0]}" data-to="{edge[1]}" d="{drawn}" '
        'marker-end="url(#head)"/>'
    )


def legend(x: float, y: float) -> list[str]:
    """Say what the colours and arrows mean."""
    return [
        f'<rect class="package pure" x="{x:.0f}" y="{y:.0f}" width="24" height="16" rx="4"/>',
        f'<text class="note" x="{x + 32:.0f}" y="{y + 13:.0f}">'
        "pure: no I/O, clock or thread</text>",
        f'<text class="note" x="{x + 240:.0f}" y="{y + 13:.0f}">'
        "arrow: imports; those that others imply are left out</text>",
    ]


def shown_in(svg: str) -> tuple[set[tuple[str, int]], set[Edge]]:
    """Return the packages, with their rows, and the arrows of a picture."""
    found = re.findall(r'data-package="(\w+)" data-row="(\d+)"', svg)
    return {(name, int(row)) for name, row in found}, set(
        re.findall(r'data-from="(\w+)" data-to="(\w+)"', svg)
    )


def differences(drawn: Architecture, svg: str) -> list[str]:
    """Return what a picture shows and the sources have not, and the reverse, a line each."""
    shown_packages, shown_edges = shown_in(svg)
    known = {(name, row) for row, names in enumerate(drawn.rows) for name in names}
    return [
        *(f"missing: {name} in row {row}" for name, row in sorted(known - shown_packages)),
        *(f"no longer: {name} in row {row}" for name, row in sorted(shown_packages - known)),
        *(f"missing: {of} imports {to}" for of, to in sorted(drawn.edges - shown_edges)),
        *(f"no longer: {of} imports {to}" for of, to in sorted(shown_edges - drawn.edges)),
    ]


def main() -> int:
    """Draw the picture, or check it."""
    parser = argparse.ArgumentParser(description="Draw the packages and the imports between them.")
    parser.add_argument("--check", action="store_true", help="compare the picture, write nothing")
    parser.add_argument("picture", nargs="?", type=Path, default=PICTURE)
    given = parser.parse_args()
    drawn = read()
    if not given.check:
        given.picture.write_text(svg_of(drawn), encoding="utf-8")
        return 0
    found = differences(drawn, given.picture.read_text(encoding="utf-8"))
    if found:
        sys.stderr.write("\n".join([f"{given.picture}: run `make architecture`", *found, ""]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
