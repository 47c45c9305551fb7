"""Figures of a stream for people."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cogwork.nodes.stream.reader import Reader
    from cogwork.plugin.engine.contract import Members
    from cogwork.plugin.engine.placement import Placement

__all__ = ("READERS_MAX", "Meter", "reader_rows", "wanted")

READERS_MAX = 100
"""Of a stream's readers, how many are shown one by one: those that are furthest behind."""

SMOOTHING = 0.3
"""How much the last second counts."""


class Meter:
    """How quickly a stream grows.

    Attributes:
        records_per_s: Lately.
        bytes_per_s: Lately.
    """

    def __init__(self) -> None:
        """Initialize it; it has seen nothing."""
        self.records_per_s = 0
        self.bytes_per_s = 0
        self._last: tuple[float, int, int] | None = None
        self._rates = (0.0, 0.0)

    def turn(self, now_s: float, records: int, size_bytes: int) -> bool:
        """Take in what has come so far; say whether nothing has lately.

        Not where the stream stands: it is found there when it is opened, and has not grown.
        """
        last, self._last = self._last, (now_s, records, size_bytes)
        if last is None or now_s <= last[0]:
            return False
        passed_s = now_s - last[0]
        fresh = ((records - last[1]) / passed_s, (size_bytes - last[2]) / passed_s)
        self._rates = (
            self._rates[0] + SMOOTHING * (fresh[0] - self._rates[0]),
            self._rates[1] + SMOOTHING * (fresh[1] - self._rates[1]),
        )
        self.records_per_s, self.bytes_per_s = round(self._rates[0]), round(self._rates[1])
        return last[1:] == (records, size_bytes) and not self.records_per_s


def reader_rows(readers: Iterable[Reader]) -> list[dict[str, object]]:
    """List readers, those that are furthest behind first."""
    ordered = sorted(readers, key=lambda reader: reader.behind, reverse=True)
    return [
        {
            "link": reader.subscription.link_id,
            "next": reader.next,
            "behind": reader.behind,
            "credit": reader.link.credit,
            "unsettled": reader.link.unsettled,
        }
        for reader in islice(ordered, READERS_MAX)
    ]


def wanted(placement: Placement | None, members: Members | None) -> Mapping[str, object]:
    """Return who is to hold a stream, and whether that is still to come.

    Args:
        placement: What is declared; None where the engine's streams stay where they are.
        members: Who holds it now, as far as that is known.
    """
    found = placement if placement is not None else members
    return {
        "wanted": list(found.voters) if found is not None else [],
        "wanted_learners": list(found.learners) if found is not None else [],
        "moving": placement is not None and not placement.is_settled,
    }
