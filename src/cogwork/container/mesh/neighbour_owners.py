"""As whom containers have linked: nobody else takes an id while that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("NeighbourOwners",)

REMEMBERED_MAX = 4_096
"""More containers than any mesh has; of further ones the oldest that are not linked go."""


class NeighbourOwners:
    """The user of each container that has linked here, by its id."""

    def __init__(self, is_linked: Callable[[str], bool]) -> None:
        """Initialize it; it knows nobody yet.

        Args:
            is_linked: Tells whether a container is a neighbour at present.
        """
        self._is_linked = is_linked
        self._users: dict[str, str | None] = {}

    def takes(self, container: str, user: str | None) -> bool:
        """Tell whether a user may link as a container, and remember it if so."""
        if container in self._users:
            return self._users[container] == user
        if len(self._users) >= REMEMBERED_MAX and not self._forget_one():
            return False
        self._users[container] = user
        return True

    def _forget_one(self) -> bool:
        found = next((each for each in self._users if not self._is_linked(each)), None)
        if found is not None:
            del self._users[found]
        return found is not None

    def forget(self, is_container: Callable[[str | None], bool]) -> None:
        """Free the ids of users that are no containers any more."""
        self._users = {
            container: user for container, user in self._users.items() if is_container(user)
        }
