"""The page of one entity: its attributes, a chart, what belongs to it, and what can be done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cogwork.console.actions.registry import ACTIONS
from cogwork.console.charts import Line, line_chart
from cogwork.console.kinds import KINDS
from cogwork.console.listing import Asked, listing_of
from cogwork.console.rendering import is_fragment, page
from cogwork.console.text import rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup
    from starlette.requests import Request
    from starlette.responses import Response

    from cogwork.console.listing import Listing
    from cogwork.console.session import Session

__all__ = ("DETAILS", "Detail", "detailed")

Row = dict[str, Any]

RELATED_S = 0.3


@dataclass(frozen=True, slots=True)
class Detail:
    """How the page of an entity is made up.

    Attributes:
        kind: The path of the list that it belongs to.
        actions: What can be done to it, in this order.
        facts: Attributes that stand first and large.
        rates: Counts whose growth the chart shows.
        levels: Attributes that the chart shows as they are.
        related: Lists below, each with the attribute by which its rows belong here.
        tabs: Further pages of it, with what they are called.
        title: The attribute that names it for people.
        key: The attribute by which rows of `related` name it.
    """

    kind: str
    actions: Sequence[str] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    rates: Sequence[str] = ()
    levels: Sequence[str] = ()
    related: Mapping[str, str] = field(default_factory=dict)
    tabs: Mapping[str, str] = field(default_factory=dict)
    title: str = "name"
    key: str = "address"


DETAILS = {
    "queue": Detail(
        "queues",
        (
            "queue.publish",
            "queue.get",
            "queue.move",
            "queue.redrive",
            "queue.relocate",
            "queue.purge",
            "queue.delete",
        ),
        {
            "depth": "depth",
            "ready": "ready",
            "unsettled": "unsettled",
            "in-doubt": "in doubt",
            "consumers": "consumers",
            "disorder-p99": "disorder p99",
        },
        rates=("in", "out", "accepted"),
        levels=("depth", "unsettled"),
        related={"links": "address", "bindings": "destination"},
        tabs={"/queue/items": "Peek"},
        title="address",
    ),
    "stream": Detail(
        "streams",
        ("stream.append", "stream.move", "stream.trim", "stream.delete"),
        {
            "first": "first offset",
            "next": "next offset",
            "records": "records",
            "consumers": "readers",
            "behind": "furthest behind",
            "records_per_s": "records/s",
        },
        rates=("next",),
        levels=("behind",),
        related={"links": "address"},
        tabs={"/stream/records": "Browse"},
        title="address",
    ),
    "exchange": Detail(
        "exchanges",
        ("exchange.publish", "exchange.bind-to", "exchange.unbind-from", "exchange.delete"),
        {"bindings": "bindings", "delivered": "delivered", "unroutable": "unroutable"},
        rates=("delivered", "unroutable"),
        related={"bindings": "source"},
        title="exchange",
    ),
    "address": Detail(
        "addresses",
        facts={
            "depth": "waiting",
            "senders": "senders",
            "receivers": "receivers",
            "in": "in",
            "out": "out",
        },
        rates=("in", "out"),
        levels=("depth",),
        related={"links": "address"},
        title="address",
    ),
    "connection": Detail(
        "connections",
        ("connection.close",),
        {"links": "links", "messages_in": "messages in", "messages_out": "messages out"},
        rates=("messages_in", "messages_out"),
        levels=("unsent_bytes",),
        related={"links": "connection"},
        title="container",
        key="name",
    ),
    "link": Detail(
        "links",
        ("link.detach",),
        {"credit": "credit", "unsettled": "unsettled", "backlog": "backlog"},
        rates=("deliveries",),
        levels=("backlog", "unsettled"),
        title="link",
    ),
    "peer": Detail("peers", ("link.remove",), rates=("messages_in", "messages_out"), title="url"),
    "user": Detail("users", ("user.set", "user.disconnect", "user.remove")),
    "permission": Detail("permissions", ("permission.remove",)),
    "vhost": Detail("vhosts", ("vhost.remove",)),
    "limit": Detail("limits", ("limit.change", "limit.remove")),
    "policy": Detail("policies", ("policy.remove",)),
}
"""How each page is made up, by its path."""


async def detailed(request: Request, session: Session) -> Response:
    """Show one entity."""
    path = request.url.path.removeprefix("/")
    detail = DETAILS[path]
    kind = KINDS[detail.kind]
    name = request.query_params.get("name", "")
    row: Row = await session.get("READ", kind.type, name)
    own = str(row.get(detail.key, name))
    _note(session, f"{path} {name}", detail, row)
    return page(
        request,
        "detail.html",
        session,
        kind=kind,
        detail=detail,
        row=row,
        name_=name,
        charts=_charts(session, f"{path} {name}", detail),
        related=[
            found
            for to, key in detail.related.items()
            if (found := await _related(request, session, to, (key, own)))
        ],
        actions=[ACTIONS[each] for each in detail.actions],
    )


def _note(session: Session, subject: str, detail: Detail, row: Row) -> None:
    figures = {key: row[key] for key in (*detail.rates, *detail.levels) if row.get(key) is not None}
    if len(figures) == len({*detail.rates, *detail.levels}):
        session.history.note(subject, figures)


def _charts(session: Session, subject: str, detail: Detail) -> list[tuple[str, Markup, list[str]]]:
    history = session.history
    charts = []
    if detail.rates:
        lines = [Line(_words(key), history.rates(subject, key)) for key in detail.rates]
        charts.append(("Per second", line_chart("Per second", lines, rate), _titles(lines)))
    if detail.levels:
        lines = [Line(_words(key), history.levels(subject, key)) for key in detail.levels]
        charts.append(("Now", line_chart("Now", lines, "{:,.0f}".format), _titles(lines)))
    return charts


def _titles(lines: Sequence[Line]) -> list[str]:
    return [each.title for each in lines]


def _words(key: str) -> str:
    return key.replace("_", " ")


async def _related(
    request: Request, session: Session, path: str, only: tuple[str, str]
) -> Listing | None:
    """Return the first rows of another list that belong to this entity.

    A page does not wait for a long list: its live part has it.
    """
    kind = KINDS[path]
    wait_s = None if is_fragment(request) else RELATED_S
    rows = await session.rows_soon(kind.type, kind.attributes, wait_s)
    return None if rows is None else listing_of(kind, rows, Asked(only=(only,)))
