"""From `[[user]]` and `[anonymous]` to what the router asks before it attaches a link."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.router.permissions import Grant, Permissions, Right

if TYPE_CHECKING:
    from cogwork.container.settings import Configuration

__all__ = ("permissions_of",)


def permissions_of(
    configuration: Configuration, identity: str | None, vhost: str | None = None
) -> Permissions | None:
    """Finds what an authenticated peer may do.

    Args:
        configuration: The one in force.
        identity: The name that the peer proved; None for an anonymous one.
        vhost: The virtual host it opened; None is the default one.

    Returns:
        Its permissions there; None where no `[[user]]` has that name.
    """
    granted = configuration.anonymous.permissions
    if identity is not None:
        users = {user.name: user.permissions for user in configuration.users}
        if identity not in users:
            return None
        granted = users[identity]
    return Permissions(
        Grant(permission.address, frozenset(map(Right, permission.rights)))
        for permission in granted
        if permission.vhost in (None, vhost)
    )
