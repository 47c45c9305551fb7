"""How a link to a neighbour looks from the outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ("LinkRow",)


@dataclass(frozen=True, slots=True)
class LinkRow:
    """One link of this container to a neighbour.

    Attributes:
        url: Where it leads, without the password; of one that came in, where it came from.
        direction: Who dialled: this container (`out`), or the neighbour (`in`).
        state: How far it has come.
        neighbour: The other container's id; None until it is known.
        cost: What the way over it costs.
        since_s: When it came into this state, by the wall clock.
        error: Why it is not up; None where nothing is wrong.
        bytes_in: What came over it.
        bytes_out: What went over it.
        messages_in: Messages that came over it.
        messages_out: Messages that went over it.
    """

    url: str
    direction: Literal["out", "in"]
    state: Literal["up", "connecting", "refused"]
    neighbour: str | None
    cost: int
    since_s: float
    error: str | None = None
    bytes_in: int = 0
    bytes_out: int = 0
    messages_in: int = 0
    messages_out: int = 0
