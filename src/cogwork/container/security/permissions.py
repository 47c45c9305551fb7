"""Who may do what where: the address patterns of permissions, against what a peer asks for.

Theory of operation. A wildcard of a pattern reaches the addresses of applications, never the
broker's own (`router.own_addresses`): a permission at those spells them out as far as they are
the broker's. Whoever may manage `$management` may do everything at them. A permission holds in
the virtual host that it names, in the default one if it names none, or in all of them.

What is denied is denied whatever is granted; its wildcards reach the broker's own addresses, too.
A pattern that a subscriber asks for is denied as soon as it takes one address that is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from cogwork.config.settings import User, everything
from cogwork.config.user_word import USER
from cogwork.router.addresses import MAX_ADDRESS_LENGTH
from cogwork.router.own_addresses import MANAGEMENT, own_words, right_needed
from cogwork.router.patterns import ANY_WORD, ANY_WORDS, address_words, covers, overlap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogwork.config.settings import Configuration, Group, Permission, Right
    from cogwork.sasl.sides import Grant

__all__ = (
    "Permissions",
    "permissions_of",
    "permissions_of_anonymous",
    "permissions_of_grant",
)

_EVERYTHING = address_words("#")
_OPERATOR = address_words(MANAGEMENT)
EVERY_VHOST = "*"
_RIGHTS = {"send", "receive", "manage"}

LENGTH_MAX = MAX_ADDRESS_LENGTH + len("/")


class Permissions:
    """All that one user may do."""

    def __init__(
        self,
        permissions: Iterable[Permission],
        *,
        denied: Iterable[Permission] = (),
        user: str | None = None,
        is_mesh: bool = False,
    ) -> None:
        """Read the patterns once.

        Args:
            permissions: As configured.
            denied: What is not allowed, whatever `permissions` says.
            user: Whose they are; None is nobody who has a name.
            is_mesh: Whether they are those of a container: its wildcards reach everything, in all
                virtual hosts.
        """
        self._is_mesh = is_mesh
        unsaid = EVERY_VHOST if is_mesh else None
        self._granted = [
            (right, permission.vhost or unsaid, words)
            for permission in permissions
            if (words := _granted_words(permission.address, user)) is not None
            for right in permission.rights
        ]
        self._denied = [
            (right, permission.vhost or unsaid, _denied_words(permission.address, user))
            for permission in denied
            for right in permission.rights
        ]

    def are_all(self, vhost: str | None = None) -> bool:
        """Return whether nothing is forbidden in a virtual host; None is the default one."""
        here = [(right, words) for right, where, words in self._granted if _is_in(where, vhost)]
        everywhere = {right for right, words in here if words == _EVERYTHING}
        reaches_own = self._is_mesh or ("manage", _OPERATOR) in here
        return everywhere == _RIGHTS and reaches_own and not self._denied

    @property
    def are_none(self) -> bool:
        """Whether everything is forbidden."""
        return not self._granted

    def allows(self, right: Right, address: str, vhost: str | None = None) -> bool:
        """Return whether the user has a right.

        Args:
            right: What is to be done.
            address: Where. A subscriber may ask for a pattern, which must then be covered whole.
            vhost: In which virtual host; None is the default one.
        """
        if len(address) > LENGTH_MAX:
            return False  # it names nothing, and to look at all of its words would take seconds
        if self._denied and self.denies(right, address, vhost):
            return False
        words = _words(address)
        if self._is_mesh or not (count := own_words(words)):
            return self._grants(right, words, vhost, 0)
        if self._grants(right_needed(right, count), words, vhost, count):
            return True
        return self._grants("manage", _OPERATOR, vhost, 1)

    def denies(self, right: Right, address: str, vhost: str | None = None) -> bool:
        """Return whether a right is denied, whatever is granted; see `allows`."""
        if len(address) > LENGTH_MAX:
            return True
        # A `*` of a topic's subscriber takes a word with `/` in it, which is several words here.
        asked = [
            part
            for word in _words(address)
            for part in ((ANY_WORD, ANY_WORDS) if word == ANY_WORD else (word,))
        ]
        return any(
            denied == right and _is_in(where, vhost) and overlap(pattern, asked)
            for denied, where, pattern in self._denied
        )

    def _grants(self, right: str, words: list[str], vhost: str | None, spelt: int) -> bool:
        """Return whether one permission covers all words, and spell so many of them out."""
        return any(
            granted == right
            and _is_in(where, vhost)
            and pattern[:spelt] == words[:spelt]
            and covers(pattern, words)
            for granted, where, pattern in self._granted
        )


def permissions_of(configuration: Configuration, identity: str | None) -> Permissions | None:
    """Find what an authenticated peer may do.

    Args:
        configuration: The one in force.
        identity: The name that the peer proved; None for an anonymous one.

    Returns:
        Its permissions; None where no `[[user]]` has that name.
    """
    if identity is None:
        return Permissions(permissions_of_anonymous(configuration))
    for user in configuration.users:
        if user.name == identity:
            return _of_user(configuration, user)
    return None


def permissions_of_grant(configuration: Configuration, grant: Grant) -> Permissions:
    """Return what a peer with a token may do: what its groups may, and its user if there is one.

    Args:
        configuration: The one in force.
        grant: What the token stands for.
    """
    known = (each for each in configuration.users if each.name == grant.user)
    user = next(known, None) or User(name=grant.user)
    return _of_user(configuration, structs.replace(user, groups=[*user.groups, *grant.groups]))


def _of_user(configuration: Configuration, user: User) -> Permissions:
    roles: list[User | Group] = [user]
    roles += [each for each in configuration.groups if each.name in user.groups]
    return Permissions(
        [each for role in roles for each in role.permissions],
        denied=[each for role in roles for each in role.deny],
        user=user.name,
        is_mesh=user.mesh,
    )


def _granted_words(address: str, user: str | None) -> list[str] | None:
    """Return a pattern's words; None where the name in it would grant more than is meant."""
    words = _words(address)
    if USER not in words:
        return words
    name = _words_of_name(user)
    if name is None or (words[0] == USER and name[0].startswith("_")):
        return None
    return [part for word in words for part in (name if word == USER else (word,))]


def _denied_words(address: str, user: str | None) -> list[str]:
    """Return a pattern's words; a name that cannot stand there is any name."""
    name = _words_of_name(user) or [ANY_WORDS]
    return [part for word in _words(address) for part in (name if word == USER else (word,))]


def _words_of_name(user: str | None) -> list[str] | None:
    """Split a name; None where one of its words would be more than a word of an address."""
    words = address_words(user or "")
    is_plain = all(word and not word.startswith("$") and ANY_WORD not in word for word in words)
    return words if words and is_plain and not any(ANY_WORDS in word for word in words) else None


def permissions_of_anonymous(configuration: Configuration) -> list[Permission]:
    """Return what may be done without a name."""
    granted = configuration.anonymous.permissions
    if granted is not None:
        return granted
    return [] if configuration.has_logins else everything()


def _is_in(where: str | None, vhost: str | None) -> bool:
    return where in (vhost, EVERY_VHOST)


def _words(address: str) -> list[str]:
    return address_words(address.removeprefix("/"))
