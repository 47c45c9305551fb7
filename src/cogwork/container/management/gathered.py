"""What many nodes have to tell at the same time becomes one line of the log.

A server below a thousand streams that goes away is one thing that went wrong. What is told of one
kind is gathered for a second, and then for ten where more of it comes; a few are told one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.plugin.effects import Report

__all__ = ("FEW", "FIRST_S", "NEXT_S", "Gathered")

FEW = 3
"""So many are told one by one: people want to know which they are."""

FIRST_S, NEXT_S = 1.0, 10.0
"""So long more of a kind is waited for, and as long before there is another line of it."""


@dataclass(slots=True)
class _Kind:
    """Reports of one kind."""

    due_s: float
    reports: list[Report] = field(default_factory=list)


class Gathered:
    """Reports that wait for others of their kind. Owned by who runs effects."""

    def __init__(self, tell: Callable[[Report, str], None]) -> None:
        """Start with none.

        Args:
            tell: Writes a line: with a report, as whose it counts, and the text.
        """
        self._tell = tell
        self._kinds: dict[tuple[str, bool, bool], _Kind] = {}

    def add(self, report: Report, now_s: float) -> None:
        """Take a report; one that is of no kind is told at once."""
        if not report.kind:
            self._tell(report, report.text)
            return
        key = (report.kind, report.is_error, report.is_warning)
        kind = self._kinds.setdefault(key, _Kind(now_s + FIRST_S))
        kind.reports.append(report)

    def tick(self, now_s: float) -> None:
        """Tell what has waited for long enough."""
        for key, kind in list(self._kinds.items()):
            if now_s < kind.due_s:
                continue
            if not kind.reports:
                del self._kinds[key]
                continue
            self._tell_all(kind)
            kind.due_s = now_s + NEXT_S

    def close(self) -> None:
        """Tell what is left."""
        kinds, self._kinds = self._kinds, {}
        for kind in kinds.values():
            self._tell_all(kind)

    def _tell_all(self, kind: _Kind) -> None:
        reports, kind.reports = kind.reports, []
        if len(reports) <= FEW:
            for report in reports:
                self._tell(report, report.text)
            return
        first = reports[0]
        self._tell(first, f"{len(reports):,} {first.kind}; the first of them: {first.text}")
