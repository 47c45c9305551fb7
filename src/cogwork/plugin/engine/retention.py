"""How long a stream keeps its records: the options that every engine has."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("RETENTION_OPTIONS", "Retention")

RETENTION_OPTIONS = ("retention_s", "retention_bytes", "retention_records")


@dataclass(frozen=True, slots=True)
class Retention:
    """The oldest records are given up as soon as one of the limits is passed; None is no limit.

    Attributes:
        age_s: Their age in seconds.
        size_bytes: What all of them take.
        records: Their number.
    """

    age_s: float | None = None
    size_bytes: int | None = None
    records: int | None = None

    @classmethod
    def of(cls, options: Mapping[str, object], size_bytes: int | None = None) -> Retention:
        """Read the options `retention_s`, `retention_bytes` and `retention_records`.

        Args:
            options: A stream's; others among them are not looked at.
            size_bytes: The limit by bytes where the options say nothing of it.

        Raises:
            ValueError: One is no positive number; the text says which.
        """
        age_s = _positive(options, "retention_s")
        found_bytes = _positive(options, "retention_bytes")
        records = _positive(options, "retention_records")
        return cls(
            age_s,
            size_bytes if found_bytes is None else int(found_bytes),
            None if records is None else int(records),
        )


def _positive(options: Mapping[str, object], name: str) -> float | None:
    value = options.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < inf:
        raise ValueError(f"{name} is a positive number, not {value!r}")
    return value
