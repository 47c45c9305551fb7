"""Who may do what where: the address patterns of permissions, against what a peer asks for.

Theory of operation. A wildcard of a pattern reaches the addresses of applications, never the
broker's own (`router.own_addresses`): a permission at those spells them out as far as they are
the broker's. Whoever may manage `$management` may do everything at them. A permission holds in
the virtual host that it names, in the default one if it names none, or in all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.container.settings import everything
from cogwork.router.addresses import MAX_ADDRESS_LENGTH
from cogwork.router.own_addresses import MANAGEMENT, own_words, right_needed
from cogwork.router.patterns import address_words, covers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.container.settings import Configuration, Permission, Right

__all__ = ("Permissions", "permissions_of")

_EVERYTHING = address_words("#")
_OPERATOR = address_words(MANAGEMENT)
EVERY_VHOST = "*"
_RIGHTS = {"send", "receive", "manage"}

LENGTH_MAX = MAX_ADDRESS_LENGTH + len("/")


class Permissions:
    """All that one user may do."""

    def __init__(self, permissions: Iterable[Permission], *, is_mesh: bool = False) -> None:
        """Read the patterns once.

        Args:
            permissions: As configured.
            is_mesh: Whether they are those of a container: its wildcards reach everything, in all
                virtual hosts.
        """
        self._is_mesh = is_mesh
        unsaid = EVERY_VHOST if is_mesh else None
        self._granted = [
            (right, permission.vhost or unsaid, _words(permission.address))
            for permission in permissions
            for right in permission.rights
        ]

    def are_all(self, vhost: str | None = None) -> bool:
        """Tells whether nothing is forbidden in a virtual host; None is the default one."""
        here = [(right, words) for right, where, words in self._granted if _is_in(where, vhost)]
        everywhere = {right for right, words in here if words == _EVERYTHING}
        return everywhere == _RIGHTS and (self._is_mesh or ("manage", _OPERATOR) in here)

    @property
    def are_none(self) -> bool:
        """Whether everything is forbidden."""
        return not self._granted

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
        if self._is_mesh or not (count := own_words(words)):
            return self._grants(right, words, vhost, 0)
        if self._grants(right_needed(right, count), words, vhost, count):
            return True
        return self._grants("manage", _OPERATOR, vhost, 1)

    def _grants(self, right: str, words: list[str], vhost: str | None, spelt: int) -> bool:
        """Tells whether one permission covers all words, and spells so many of them out."""
        return any(
            granted == right
            and _is_in(where, vhost)
            and pattern[:spelt] == words[:spelt]
            and covers(pattern, words)
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
        return Permissions(_of_anonymous(configuration))
    for user in configuration.users:
        if user.name == identity:
            return Permissions(user.permissions, is_mesh=user.mesh)
    return None


def _of_anonymous(configuration: Configuration) -> list[Permission]:
    granted = configuration.anonymous.permissions
    if granted is not None:
        return granted
    return [] if configuration.users else everything()


def _is_in(where: str | None, vhost: str | None) -> bool:
    return where in (vhost, EVERY_VHOST)


def _words(address: str) -> list[str]:
    return address_words(address.removeprefix("/"))
