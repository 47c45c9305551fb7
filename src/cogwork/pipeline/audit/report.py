"""What an audit found: checks with verdicts, figures and the rows that offend.

Theory of operation. A check is about one thing: a stream, a queue, a subscriber. It holds, or is
violated, or is unproven: where events were sampled, or some could not be written down, what was
seen may be in order, and that is no proof. Rows that offend are listed up to a limit and counted
whole.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ("LISTED_MAX", "Check", "Report", "Verdict")

LISTED_MAX = 100
"""Offending rows of one check that a report lists: what a person can look through."""


class Verdict(StrEnum):
    """What a check says."""

    HOLDS = "holds"
    UNPROVEN = "unproven"
    VIOLATED = "violated"


@dataclass(slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        about: What it is about: `stream/flights`, `work/orders`.
        claim: What it says, in a person's words.
        verdict: Whether it is so.
        figures: What was counted.
        violations: How many there are, whole.
        rows: Some of the rows that offend, each with its `kind`.
        remark: Why it is unproven, or what else one should know.
    """

    about: str
    claim: str
    verdict: Verdict = Verdict.HOLDS
    figures: dict[str, Any] = field(default_factory=dict)
    violations: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)
    remark: str = ""

    def violate(self, rows: list[dict[str, Any]], count: int | None = None) -> None:
        """Take rows that offend.

        Args:
            rows: Some or all of them.
            count: How many there are; None is those.
        """
        count = len(rows) if count is None else count
        if count == 0:
            return
        self.verdict = Verdict.VIOLATED
        self.violations += count
        self.rows.extend(rows[: LISTED_MAX - len(self.rows)])

    def doubt(self, remark: str) -> None:
        """Say that this is no proof, and why; a violation stays one."""
        if self.verdict is Verdict.HOLDS:
            self.verdict = Verdict.UNPROVEN
        self.remark = f"{self.remark}; {remark}" if self.remark else remark


@dataclass(slots=True)
class Report:
    """All checks of an audit.

    Attributes:
        archive: Where the tables are.
        made_at: When the audit began, in ISO 8601.
        duration_s: How long it took.
        checks: What was looked at, in order.
    """

    archive: str
    made_at: str
    duration_s: float = 0.0
    checks: list[Check] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether nothing is violated."""
        return all(check.verdict is not Verdict.VIOLATED for check in self.checks)

    @property
    def violations(self) -> int:
        """How many there are in all checks."""
        return sum(check.violations for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """Return all of it in types that JSON has."""
        return {
            "archive": self.archive,
            "made_at": self.made_at,
            "duration_s": round(self.duration_s, 3),
            "clean": self.is_clean,
            "violations": self.violations,
            "checks": [asdict(check) for check in self.checks],
        }
