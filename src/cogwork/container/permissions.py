"""From `[[user]]` and `[anonymous]` to what is asked before a link attaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.router import permissions as router

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.container.settings import Configuration, Permission, Right

__all__ = ("Permissions", "permissions_of")


class Permissions:
    """All that one user may do, in every virtual host."""

    def __init__(self, permissions: Iterable[Permission]) -> None:
        """Take the permissions of one user.

        Args:
            permissions: As configured.
        """
        self._permissions = tuple(permissions)
        self._of_vhost: dict[str | None, router.Permissions] = {}

    def allows(self, right: Right, address: str, vhost: str | None = None) -> bool:
        """Tells whether the user has a right.

        Args:
            right: What is to be done.
            address: Where. A subscriber may ask for a pattern, which must then be covered whole.
            vhost: In which virtual host, of those that are served; None is the default one.
        """
        granted = self._of_vhost.get(vhost)
        if granted is None:
            granted = self._of_vhost[vhost] = router.Permissions(
                router.Grant(each.address, frozenset(map(router.Right, each.rights)))
                for each in self._permissions
                if each.vhost in (None, vhost)
            )
        return granted.allows(router.Right(right), address)


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
