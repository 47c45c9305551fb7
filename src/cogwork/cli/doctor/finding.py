"""What a check finds, and what is to be done about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("Finding", "Status", "failed", "ok", "warned", "worst")


class Status(StrEnum):
    """How bad it is."""

    OK = "OK"
    WARNING = "WARNING"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        check: What was looked at: `clock`, `disk`.
        subject: Whose it is: a container's id, a URL or a file.
        status: How bad it is.
        found: What there is.
        meaning: What that leads to; empty if all is well.
        advice: What to do; empty if all is well.
    """

    check: str
    subject: str
    status: Status
    found: str
    meaning: str = ""
    advice: str = ""

    def as_dict(self) -> dict[str, str]:
        """Return it in plain values."""
        return {key: str(value) for key, value in asdict(self).items()}


def ok(check: str, subject: str, found: str) -> Finding:
    """Say that all is well."""
    return Finding(check, subject, Status.OK, found)


def warned(check: str, subject: str, found: str, meaning: str, advice: str) -> Finding:
    """Say that something may go wrong."""
    return Finding(check, subject, Status.WARNING, found, meaning, advice)


def failed(check: str, subject: str, found: str, meaning: str, advice: str) -> Finding:
    """Say that something is wrong."""
    return Finding(check, subject, Status.FAIL, found, meaning, advice)


def worst(findings: Iterable[Finding]) -> Status:
    """Return how bad the worst of several is."""
    order = list(Status)
    return max((each.status for each in findings), key=order.index, default=Status.OK)
