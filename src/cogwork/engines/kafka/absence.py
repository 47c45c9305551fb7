"""Tells a topic that is gone from one of which a broker has not heard yet."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cogwork.engines.shared.server import Gone, ServerDown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ("ABSENT_S", "Absence", "Absent")

ABSENT_S = 10.0
"""A broker that has just begun knows no topics until the controller has told it of them."""


class Absent(ServerDown):
    """The topic is not known now; it was before."""

    def __init__(self) -> None:
        super().__init__("Kafka: the broker knows nothing of the topic yet")


def _now_s() -> float:
    return asyncio.get_running_loop().time()


class Absence:
    """How long the brokers have known nothing of a topic.

    What they have never known is gone at once; what was there is gone when they have said so for a
    while, and nothing was heard of it.

    Args:
        now_s: What time it is.
    """

    def __init__(self, now_s: Callable[[], float] = _now_s) -> None:
        self._now_s = now_s
        self._was_there = False
        self._since_s: float | None = None

    def end(self) -> None:
        """The topic is there."""
        self._was_there = True
        self._since_s = None

    @contextmanager
    def judged(self) -> Iterator[None]:
        """Judge what one call says.

        Raises:
            Absent: The topic may come back.
        """
        try:
            yield
        except Gone as gone:
            if self._since_s is None:
                self._since_s = self._now_s()
            if self._was_there and self._now_s() < self._since_s + ABSENT_S:
                raise Absent from gone
            raise
