"""Who may do what where: the address patterns of permissions, against what a peer asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.router.addresses import MAX_ADDRESS_LENGTH
from cogwork.router.patterns import address_words, covers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.container.settings import Configuration, Permission, Right

__all__ = ("Permissions", "permissions_of")

_EVERYTHING = address_words("#")

LENGTH_MAX = MAX_ADDRESS_LENGTH + len("/")


class Permissions:
    """All that one user may do."""

    def __init__(self, permissions: Iterable[Permission]) -> None:
        """Read the patterns once; `are_all` says that nothing is forbidden.

        Args:
            permissions: As configured.
        """
        self._granted = [
            (right, permission.vhost, _words(permission.address))
            for permission in permissions
            for right in permission.rights
        ]
        self.are_all = {"send", "receive", "manage"} == {
            right for right, where, words in self._granted if where is None and words == _EVERYTHING
        }

    def allows(self, right: Right, address: str, vhost: str | None = None) -> bool:
        """Tells whether the user has a right.

        Args:
            right: What is to be done.
            address: Where. A subscriber may ask for a pattern, which must then be covered whole.
            vhost: In which virtual host; None is the default one.
        """
        if len(address) > LENGTH_MAX:
            return False  # it names nothing, and to look at all of its words would take seconds
        words = _words(address)
        return any(
            granted == right and where in (None, vhost) and covers(pattern, words)
            for granted, where, pattern in self._granted
        )


def permissions_of(configuration: Configuration, identity: str | None) -> Permissions | None:
    """Finds what an authenticated peer may do.

    Args:
        configuration: The one in force.
        identity: The name that the peer proved; None for an anonymous one.

    Returns:
        Its permissions; None where no `[[user]]` has that name.
    """
    if identity is None:
        return Permissions(configuration.anonymous.permissions)
    for user in configuration.users:
        if user.name == identity:
            return Permissions(user.permissions)
    return None


def _words(address: str) -> list[str]:
    return address_words(address.removeprefix("/"))
