"""The first page: what the container does now, and what somebody should look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlencode

from cogwork.cli.terminal.tables import in_bytes
from cogwork.client import PermissionDenied
from cogwork.console.charts import Line, line_chart
from cogwork.console.rendering import is_fragment, page
from cogwork.console.text import rate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from markupsafe import Markup
    from starlette.requests import Request
    from starlette.responses import Response

    from cogwork.console.session import Session

__all__ = ("Alarm", "alarms_of", "overview")

T = TypeVar("T")
Row = dict[str, Any]

DISK_LEAST = 0.1
CERTIFICATE_DAYS_LEAST = 14
SHOWN_MAX = 5

QUEUE_ATTRIBUTES = ("name", "address", "depth", "in-doubt", "bytes", "consumers", "problem")
STREAM_ATTRIBUTES = ("name", "address", "state", "problem", "next", "size_bytes", "behind")
ADDRESS_ATTRIBUTES = ("address", "in", "out")
PEER_ATTRIBUTES = ("name", "url", "direction", "state", "error")
READ = {
    "queue": QUEUE_ATTRIBUTES,
    "stream": STREAM_ATTRIBUTES,
    "address": ADDRESS_ATTRIBUTES,
    "org.cogwork.link": PEER_ATTRIBUTES,
}
FIRST_CONTENT_S = 0.6
"""A page that would take longer comes without what is long, and fetches it by itself."""


class Alarm(NamedTuple):
    """What somebody should look at.

    Attributes:
        text: What it is.
        link: Where to look.
    """

    text: str
    link: str = ""


async def overview(request: Request, session: Session) -> Response:
    """Show rates, memory, disk and alarms."""
    container: Row = await _allowed(session.get("READ", "container"), {})
    wait_s = None if is_fragment(request) else FIRST_CONTENT_S / len(READ)
    read = [
        await _allowed(session.rows_soon(kind, attributes, wait_s), [])
        for kind, attributes in READ.items()
    ]
    queues, streams, addresses, peers = (rows or [] for rows in read)
    is_whole = None not in read
    if is_whole:
        session.history.note("container", _figures(container, addresses, queues))
    return page(
        request,
        "overview.html",
        session,
        container=container,
        is_whole=is_whole,
        queues=queues,
        depth=sum(row["depth"] for row in queues),
        in_doubt=sum(row["in-doubt"] for row in queues),
        deepest=sorted(queues, key=lambda row: -row["depth"])[:SHOWN_MAX],
        streams=streams,
        alarms=alarms_of(container, queues, streams, peers),
        charts=_charts(session),
    )


async def _allowed(asked: Awaitable[T], otherwise: T) -> T:
    """Return what is answered, or something else where the user may not see it."""
    try:
        return await asked
    except PermissionDenied:
        return otherwise


def _figures(
    container: Mapping[str, Any], addresses: Sequence[Row], queues: Sequence[Row]
) -> dict[str, float]:
    """Return what the charts are drawn from; the console's own requests do not count."""
    others = [row for row in addresses if not row["address"].startswith(("_", "$"))]
    return {
        "in": sum(row["in"] for row in others),
        "out": sum(row["out"] for row in others),
        "depth": sum(row["depth"] for row in queues),
        "memory": container.get("resident_bytes", 0),
        "cpu": container.get("cpu_s", 0.0),
    }


def _charts(session: Session) -> list[tuple[str, Markup, list[str]]]:
    history = session.history
    drawn = [
        (
            "Messages",
            [
                Line("in", history.rates("container", "in")),
                Line("out", history.rates("container", "out")),
            ],
            rate,
        ),
        ("Items", [Line("in queues", history.levels("container", "depth"))], "{:,.0f}".format),
        ("Memory", [Line("resident", history.levels("container", "memory"))], in_bytes),
        ("Processor", [Line("cores", history.rates("container", "cpu"))], "{:.2f}".format),
    ]
    return [
        (
            title,
            line_chart(title, lines, written, is_binary=written is in_bytes),
            [each.title for each in lines],
        )
        for title, lines, written in drawn
    ]


def alarms_of(
    container: Mapping[str, Any],
    queues: Sequence[Row],
    streams: Sequence[Row],
    peers: Sequence[Row],
) -> list[Alarm]:
    """List what somebody should look at.

    Args:
        container: Its attributes; empty where the user may not see them.
        queues: All that the user may see.
        streams: The same.
        peers: Links to other containers.
    """
    alarms = list(_of_container(container)) if container else []
    alarms += _cut(
        [
            Alarm(
                f"{row['address']}: {row['problem']}",
                f"/queue?{urlencode({'name': row['name']})}",
            )
            for row in queues
            if row["problem"]
        ],
        "queues",
    )
    alarms += _cut(
        [
            Alarm(f"{row['address']}: {row['problem'] or row['state']}")
            for row in streams
            if row["state"] != "open"
        ],
        "streams",
    )
    return alarms + _cut(
        [
            Alarm(f"{row['url']}: {row['error'] or row['state']}", "/peers")
            for row in peers
            if row["state"] != "up"
        ],
        "links between containers",
    )


def _cut(alarms: list[Alarm], what: str) -> list[Alarm]:
    more = len(alarms) - SHOWN_MAX
    return alarms[:SHOWN_MAX] + ([Alarm(f"and {more:,} other {what}")] if more > 0 else [])


def _of_container(container: Mapping[str, Any]) -> list[Alarm]:
    """List what is wrong with the container as a whole."""
    disk, cluster = container["disk"], container["cluster"]
    days = container["certificate_days_left"]
    found: list[tuple[object, str, str]] = [
        (container["is_draining"], "The container is stopping.", ""),
        (
            container["memory"]["are_publishers_blocked"],
            "Publishers wait: memory is above its watermark.",
            "/limits",
        ),
        (
            disk and disk["free_bytes"] < DISK_LEAST * disk["total_bytes"],
            f"The disk is nearly full: {in_bytes(disk['free_bytes'])} left." if disk else "",
            "",
        ),
        (
            days is not None and days < CERTIFICATE_DAYS_LEAST,
            f"A certificate expires in {days} days.",
            "",
        ),
        (
            cluster and not cluster["is_current"],
            "The container does not know all declarations of its cluster yet.",
            "/cluster",
        ),
        (
            container["durable_in_memory"],
            f"{container['durable_in_memory']:,} durable messages were kept in memory only.",
            "/queues",
        ),
    ]
    return [Alarm(text, link) for is_wrong, text, link in found if is_wrong]
