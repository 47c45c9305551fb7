"""What an archiver tells whoever looks on: progress bars, logs, and those who stop it halfway."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Listener", "Notice", "Step", "unheard")

Step = Literal[
    "opened",
    "planned",
    "written",
    "committing",
    "committed",
    "dropped",
    "lost",
    "trimmed",
    "compacting",
    "compacted",
    "expired",
    "sweeping",
    "swept",
]


class Notice(NamedTuple):
    """One step of an archiver.

    Attributes:
        step: What it does, or has done.
        stream: For which stream.
        start: From which offset.
        end: To before which one.
        items: How many of what it is about: records, or files.
    """

    step: Step
    stream: str
    start: int = 0
    end: int = 0
    items: int = 0


if TYPE_CHECKING:
    Listener = Callable[[Notice], None]


def unheard(notice: Notice) -> None:
    """Is told, and does nothing."""
    del notice
