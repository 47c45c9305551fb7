"""How quick the disk of a container is: all its groups go by that."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ("Pace",)


@dataclass(slots=True)
class Pace:
    """What whoever runs the groups has seen of its disk lately.

    Attributes:
        is_quick: Writes are durable about as soon as a message has been to another container. What
            is told of them then may as well wait for it.
        takes_nothing: Nothing can be written: who stood for election could not vote for itself, and
            would follow nobody meanwhile.
    """

    is_quick: bool = False
    takes_nothing: bool = False
