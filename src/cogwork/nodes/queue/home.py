"""A queue that one container keeps for all: this container's part in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ("HomedPart",)

HOME_EPOCH = 1
"""A home owns its queue from its first to its last day."""


class HomedPart:
    """The part that a container has in a queue with a home, as a `ReplicaHandle`.

    Attributes:
        home: The container that keeps the queue.
        epoch: Set at the home; None elsewhere.
        problem: None: what is wrong with its disk is told by its journal.
    """

    def __init__(self, own: str, home: str, address: str) -> None:
        """Take part in a queue.

        Args:
            own: This container's id.
            home: The id of the container that keeps the queue.
            address: The queue's.
        """
        self.home: str | None = home
        self.epoch: int | None = HOME_EPOCH if own == home else None
        self.problem: str | None = None
        self._address = address

    @property
    def owner(self) -> str | None:
        """The container that has the items: always the home."""
        return self.home

    def held(self) -> Mapping[str, object]:
        """Return who holds it: no replicas do."""
        return {
            "voters": [],
            "learners": [],
            "wanted": [],
            "wanted_learners": [],
            "moving": False,
        }

    async def relocate(self, voters: Sequence[str], learners: Sequence[str]) -> None:
        """Refuse: a queue stays at its home.

        Raises:
            ValueError: Always.
        """
        others = ", ".join((*voters, *learners))
        raise ValueError(
            f"{self._address!r:.200} is not replicated, and cannot be held by {others:.200}: "
            f"container {self.home} is its home"
        )

    def when_durable(self, call: Callable[[bool], object]) -> None:
        """Have a call made at once: the journal of the home's part knows what is durable."""
        call(True)  # the contract's

    def delete(self) -> None:
        """Give up nothing: the items are in the store, and its journal's to give up."""

    def wake(self) -> None:
        """Look at nothing: its owner is never another one."""

    def close(self) -> None:
        """Let the queue go."""
