"""Draw the spans of one trace as an SVG: a bar for each, below its parent.

    python tools/trace_picture.py spans.jsonl docs/trace.svg

The file has a span a line, in the JSON of OpenTelemetry's SDK.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

ROW, TOP, LEFT, WIDTH, RIGHT = 34, 56, 330, 560, 70
COLOURS = ("#2563eb", "#b45309", "#15803d", "#7c3aed", "#be123c")
KINDS = {
    "SpanKind.SERVER": "server",
    "SpanKind.CLIENT": "client",
    "SpanKind.PRODUCER": "producer",
    "SpanKind.CONSUMER": "consumer",
}
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" \
height="{height}" role="img" aria-label="{title}">
<style>text {{ font: 13px system-ui, sans-serif; fill: #111827 }} .small {{ font-size: 11px; \
fill: #4b5563 }} .grid {{ stroke: #e5e7eb }} .edge {{ stroke: #9ca3af; fill: none }}</style>
<rect width="100%" height="100%" fill="#ffffff"/>
"""


class Span(NamedTuple):
    """A span, as it is drawn.

    Attributes:
        name: What it is called.
        service: Whose it is.
        kind: Which side of what.
        began_ms: When, from the beginning of the trace.
        took_ms: How long.
        depth: How many parents it has.
        parent: The row of its parent; None for the first.
    """

    name: str
    service: str
    kind: str
    began_ms: float
    took_ms: float
    depth: int
    parent: int | None


def spans_of(text: str) -> list[Span]:
    """Return the spans of a trace, each behind its parent, siblings as they began.

    Raises:
        SystemExit: They are not one trace.
    """
    found = [json.loads(line) for line in text.splitlines()]
    traces = {each["context"]["trace_id"] for each in found}
    if len(traces) != 1:
        sys.exit(f"one trace is expected, not {len(traces)}")
    children: dict[str | None, list[dict[str, Any]]] = {}
    for each in sorted(found, key=lambda each: _ms(each["start_time"])):
        children.setdefault(each["parent_id"], []).append(each)
    began_ms = min(_ms(each["start_time"]) for each in found)
    rows: list[Span] = []

    def add(each: dict[str, Any], depth: int, parent: int | None) -> None:
        start_ms = _ms(each["start_time"])
        service = each["resource"]["attributes"]["service.name"]
        took_ms = _ms(each["end_time"]) - start_ms
        kind = KINDS.get(each["kind"], "")
        rows.append(Span(each["name"], service, kind, start_ms - began_ms, took_ms, depth, parent))
        here = len(rows) - 1
        for child in children.get(each["context"]["span_id"], []):
            add(child, depth + 1, here)

    for each in children.get(None, []):
        add(each, 0, None)
    return rows


def _ms(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp() * 1000


def picture(spans: list[Span]) -> str:
    """Return the SVG of a trace."""
    whole_ms = max(each.began_ms + each.took_ms for each in spans) or 1.0
    services = list(dict.fromkeys(each.service for each in spans))
    colours = dict(zip(services, COLOURS, strict=False))
    height = TOP + ROW * len(spans) + 12
    title = "A trace: the spans of one order"
    out = [HEAD.format(width=LEFT + WIDTH + RIGHT, height=height, title=title)]
    for at, service in enumerate(services):
        x = 16 + 110 * at
        out.append(f'<rect x="{x}" y="12" width="12" height="12" fill="{colours[service]}"/>')
        out.append(f'<text x="{x + 18}" y="23">{escape(service)}</text>')
    for part in range(5):
        x = LEFT + WIDTH * part / 4
        out.append(f'<path class="grid" d="M{x} {TOP - 8}V{height - 8}"/>')
        text = f"{whole_ms * part / 4:.1f} ms"
        out.append(f'<text class="small" x="{x}" y="{TOP - 14}" text-anchor="middle">{text}</text>')
    for row, span in enumerate(spans):
        out += _drawn(row, span, whole_ms, colours.get(span.service, "#374151"))
    return "\n".join([*out, "</svg>", ""])


def _drawn(row: int, span: Span, whole_ms: float, colour: str) -> list[str]:
    """Return a row: the branch from its parent, its name, its bar and its length."""
    y = TOP + ROW * row
    x = LEFT + WIDTH * span.began_ms / whole_ms
    width = max(WIDTH * span.took_ms / whole_ms, 2)
    indent = 16 + 16 * span.depth
    out = [
        f'<text x="{indent}" y="{y + 14}">{escape(_short(span.name))}</text>',
        f'<text class="small" x="{indent}" y="{y + 27}">{span.kind}</text>',
        f'<rect x="{x:.1f}" y="{y + 4}" width="{width:.1f}" height="18" rx="3" fill="{colour}"/>',
        f'<text class="small" x="{x + width + 6:.1f}" y="{y + 17}">{span.took_ms:.1f} ms</text>',
    ]
    if span.parent is not None:
        above = TOP + ROW * span.parent + 30
        out.append(f'<path class="edge" d="M{indent - 9} {above}V{y + 10}h6"/>')
    return out


def _short(name: str) -> str:
    """Return a name without the random part of an address."""
    head, dot, tail = name.partition("done.")
    return f"{head}{dot}*" if dot and tail else name


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: trace_picture.py SPANS.jsonl PICTURE.svg")
    Path(sys.argv[2]).write_text(
        picture(spans_of(Path(sys.argv[1]).read_text(encoding="utf-8"))), encoding="utf-8"
    )
