"""Consumers that are no links: what queries elsewhere report of how far they are.

Theory of operation. A query that reads ranges has no receiver that stays, so a container cannot see
it. It reports its position instead, again and again, and is forgotten once it has been silent for
a while. What is reported is for people: nothing depends on it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cogwork.container.management.inventory import Entities

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.plugin.management import Report, Row

__all__ = ("ATTRIBUTES", "Reported")

EXPIRY_S = 120.0
"""A query reports with each trigger, or says that it idles every ten seconds."""

REPORTS_MAX = 1_000
"""Who reported longest ago gives way."""

ATTRIBUTES = (
    *("name", "address", "vhost", "kind", "query", "position", "end", "behind"),
    *("records_per_s", "batch", "reported_s"),
)


@dataclass(frozen=True, slots=True)
class _Kept:
    report: Report
    at_s: float


class Reported:
    """The reports of one virtual host."""

    def __init__(self, vhost: str, now_s: Callable[[], float]) -> None:
        """Initialize it; it knows of nobody.

        Args:
            vhost: Its name.
            now_s: A clock that only goes on.
        """
        self._vhost = vhost
        self._now_s = now_s
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self.rows = Entities(ATTRIBUTES, self._members, self._name_of, self._row, self._get)

    def note(self, report: Report) -> None:
        """Take a report in the place of an earlier one of the same name."""
        self._kept.pop(report.name, None)
        self._kept[report.name] = _Kept(report, self._now_s())
        if len(self._kept) > REPORTS_MAX:
            self._kept.popitem(last=False)

    def forget(self, name: str) -> bool:
        """Give up what was reported; return whether something was."""
        return self._kept.pop(name, None) is not None

    def _members(self) -> list[_Kept]:
        expired_s = self._now_s() - EXPIRY_S
        while self._kept and next(iter(self._kept.values())).at_s < expired_s:
            self._kept.popitem(last=False)
        return sorted(self._kept.values(), key=self._name_of)

    def _get(self, name: str) -> _Kept | None:
        self._members()
        return self._kept.get(name)

    @staticmethod
    def _name_of(kept: _Kept) -> str:
        return kept.report.name

    def _row(self, kept: _Kept) -> Row:
        report = kept.report
        return {
            "name": report.name,
            "address": report.address,
            "vhost": self._vhost,
            "kind": report.kind,
            "query": report.query,
            "position": report.position,
            "end": report.end,
            "behind": max(0, report.end - report.position),
            "records_per_s": report.records_per_s,
            "batch": report.batch,
            "reported_s": round(self._now_s() - kept.at_s, 3),
        }
