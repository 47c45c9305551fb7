"""Draws `cogwork top`: the container in some lines, then a table as high as the terminal allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from cogwork.cli.terminal.tables import in_bytes, in_words, table
from cogwork.cli.terminal.visible import visible
from cogwork.cli.top.pages import PAGES
from cogwork.cli.top.view import HELP, chosen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

    from cogwork.cli.top.samples import Sample
    from cogwork.cli.top.view import View

__all__ = ("BARS_MAX", "bars", "drawn")

BARS = "▁▂▃▄▅▆▇█"

BARS_MAX = 40
"""Looks whose rate of frames is drawn."""

BESIDE_ROWS = 6
"""Lines of a table beside its rows: title, heading, rules, what is not shown."""

Facts = dict[str, Any]


def drawn(
    sample: Sample,
    view: View,
    history: Sequence[float],
    size: tuple[int, int],
    trouble: str | None = None,
    *,
    has_keys: bool = True,
) -> Group:
    """Draw what a look found.

    Args:
        sample: What it found.
        view: What is chosen.
        history: The frames that came in a second, look by look.
        size: Columns and lines of the terminal.
        trouble: Why there is nothing newer; None where there is.
        has_keys: Whether there is a keyboard: pages and keys are named then.
    """
    width, height = size
    lines = [*_head(sample, history), *_warnings(sample)]
    if has_keys:
        lines.append(_tabs(view))
    if trouble is not None:
        lines.insert(0, Text(visible(trouble), style="bold red"))
    room = max(1, height - len(lines) - BESIDE_ROWS)
    help_ = [Text(HELP, style="dim", no_wrap=True)] if has_keys else []
    return Group(*lines, *_body(sample, view, room, width), *help_)


def bars(values: Sequence[float]) -> str:
    """Draw values as bars, the greatest as high as a character."""
    most = max(values, default=0.0)
    steps = len(BARS) - 1
    return "".join(BARS[round(each / most * steps)] if most else BARS[0] for each in values)


def _head(sample: Sample, history: Sequence[float]) -> list[Text]:
    first = sample.containers[0]
    workers = f" ({len(sample.containers)} workers)" if len(sample.containers) > 1 else ""
    title = Text(visible(first["name"]), style="bold")
    title.append(
        visible(
            f"{workers}  cogwork {first['version']}, up {in_words(first['uptime_s'])}, "
            f"{sample.cpu_share:.0%} CPU, {_memory(sample.containers)}{_disk(first)}"
        ),
        style="not bold",
    )
    clients = Text(
        f"{_total(sample, 'connections'):,} connections, {_total(sample, 'links'):,} links, "
        f"{_total(sample, 'unsettled'):,} unsettled, "
        f"{in_bytes(_total(sample, 'unsent_bytes'))} unsent"
    )
    frames = Text(f"{sample.frames_per_s:,.0f} frames in/s ")
    frames.append(bars(history[-BARS_MAX:]), style="cyan")
    return [title, clients, frames]


def _memory(containers: Sequence[Facts]) -> str:
    resident = sum(each["resident_bytes"] for each in containers)
    limit = containers[0]["memory"]["limit_bytes"]
    return f"{in_bytes(resident)} resident" + (f" of {in_bytes(limit)}" if limit else "")


def _disk(container: Facts) -> str:
    disk = container["disk"]
    return "" if disk is None else f", {in_bytes(disk['free_bytes'])} free on disk"


def _total(sample: Sample, key: str) -> int:
    return sum(each["totals"][key] for each in sample.containers)


def _warnings(sample: Sample) -> list[Text]:
    return [
        Text(visible(text), style="yellow")
        for container in sample.containers
        for text in _warnings_of(container)
    ]


def _warnings_of(container: Facts) -> Iterable[str]:
    cluster = container["cluster"]
    if container["is_draining"]:
        yield f"{container['name']} is stopping"
    if container["memory"]["are_publishers_blocked"]:
        yield f"{container['name']} is above its memory watermark: publishers wait"
    if container["durable_in_memory"]:
        yield f"{container['durable_in_memory']:,} durable messages were kept in memory only"
    if container["descriptors"]["refused"]:
        yield f"{container['descriptors']['refused']:,} connections refused: out of descriptors"
    if cluster is not None and cluster["problem"]:
        yield f"cluster: {cluster['problem']}"


def _tabs(view: View) -> Text:
    found = Text()
    for number, name in enumerate(PAGES, 1):
        found.append(f" {number} {name} ", style="reverse" if name == view.page else "")
    if view.is_paused:
        found.append("  paused", style="yellow")
    return found


def _body(sample: Sample, view: View, room: int, width: int) -> Iterable[RenderableType]:
    if sample.page != view.page:
        yield Text(f"asking for {view.page} …", style="dim")
        return
    if sample.problem is not None:
        yield Text(visible(sample.problem), style="yellow")
        return
    mark = "▲" if view.is_rising else "▼"
    columns = {
        key: f"{heading} {mark}" if key == view.order else heading
        for key, heading in PAGES[view.page].columns.items()
    }
    if len(sample.containers) > 1 and not PAGES[view.page].is_shared:
        columns = {"worker": "worker", **columns}
    rows = chosen(view, sample.rows, room)
    yield from table(view.page, columns, rows, len(rows), width=width)
    left = sample.total - len(rows)
    if left > 0:
        yield Text(f"  {left:,} more", style="dim")
