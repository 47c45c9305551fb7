"""What queries elsewhere report of themselves: a Spark query is a consumer without a link."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from cogwork.nodes.management.permission import demand_right
from cogwork.nodes.management.request import Reply
from cogwork.plugin.management import BAD_REQUEST, CONSUMER, NOT_FOUND, ManagementError, Report

if TYPE_CHECKING:
    from cogwork.nodes.management.request import Request
    from cogwork.plugin.management import ContainerView, Requester

__all__ = ("Consumers",)

TEXT_MAX = 200
"""Characters of a name: it is kept, and shown."""


class Consumers:
    """The operations on them. Whoever may receive from a stream may report how far it is."""

    def __init__(self, container: ContainerView) -> None:
        """Initialize it with the container.

        Args:
            container: Who keeps the reports.
        """
        self._container = container

    def report(self, request: Request, requester: Requester) -> Reply:
        """Take a report: `address`, `kind`, `query`, `position`, `end`, and a rate and a batch."""
        address = request.text("address")
        demand_right(requester, "receive", address)
        self._demand_own(request, requester)
        rate = request.attributes().get("records_per_s", 0.0)
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < inf:
            raise ManagementError(BAD_REQUEST, f"records_per_s is a number, not {rate!r:.80}")
        report = Report(
            name=request.required_name(),
            address=address,
            kind=request.text("kind"),
            query=request.text("query"),
            position=request.number("position", 0),
            end=request.number("end", 0),
            records_per_s=float(rate),
            batch=request.number("batch", 0),
        )
        for text in (report.name, report.address, report.kind, report.query):
            if len(text) > TEXT_MAX:
                raise ManagementError(
                    BAD_REQUEST, f"{text!r:.80}... has over {TEXT_MAX} characters"
                )
        self._container.note_report(report)
        return Reply({}, 204)

    def _demand_own(self, request: Request, requester: Requester) -> None:
        """Refuse a name under which somebody reports of a stream that is not the requester's."""
        row = self._container.collections[CONSUMER].find(request.required_name())
        if row is not None:
            demand_right(requester, "receive", str(row["address"]))

    def forget(self, request: Request, requester: Requester) -> Reply:
        """Give up a report: its query has ended."""
        name = request.required_name()
        row = self._container.collections[CONSUMER].find(name)
        if row is None:
            raise ManagementError(NOT_FOUND, f"nobody has reported as {name!r:.200}")
        address = str(row["address"])
        demand_right(requester, "receive", address)
        self._container.forget_report(name)
        return Reply({}, 204)
