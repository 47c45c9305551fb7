"""How quick the disk of a container is, and whether it stays: all its groups go by that."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ("Pace",)


@dataclass(slots=True)
class Pace:
    """What whoever runs the groups knows of its container.

    Attributes:
        is_quick: Writes are durable about as soon as a message has been to another container. What
            is told of them then may as well wait for it.
        takes_nothing: Nothing can be written: who stood for election could not vote for itself, and
            would follow nobody meanwhile.
        is_stopping: It is about to go: who hands over to it would have to be replaced at once.
    """

    is_quick: bool = False
    takes_nothing: bool = False
    is_stopping: bool = False

    @property
    def may_lead(self) -> bool:
        """Whether a group may be handed over to it."""
        return not (self.takes_nothing or self.is_stopping)
