"""What a configuration that is read again takes back: logins that hold no longer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec import structs

from cogwork.amqp.errors import AmqpError, Condition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.config.settings import User
    from cogwork.sasl.sides import Grant

__all__ = ("login_ended", "revoked_logins", "why_expired", "why_misnamed")


def revoked_logins(old: Sequence[User], new: Sequence[User]) -> dict[str, str]:
    """Return why the logins of users hold no longer, by their names.

    Args:
        old: The users by whom peers have logged in.
        new: Those from now on.
    """
    known = {user.name: _login_of(user) for user in new}
    return {
        user.name: _why(user.name, is_gone=user.name not in known)
        for user in old
        if known.get(user.name) != _login_of(user)
    }


def why_expired(grant: Grant) -> str | None:
    """Return why a login by token holds no longer; None while its time has not come."""
    if time.time() < grant.expires_at_s:
        return None
    return f"the token of user {grant.user!r:.80} has expired: log in again with a new one"


def why_misnamed(user: str, named: str | None) -> str | None:
    """Return why a login by certificate holds no longer; None where it does.

    Args:
        user: Whom the certificate named.
        named: Whom it names by the mapping that holds now.
    """
    if named == user:
        return None
    now = "nobody" if named is None else f"user {named!r:.80}"
    return f"the certificate of user {user!r:.80} now names {now}: log in again"


def login_ended(why: str) -> AmqpError:
    """Return what the close of a connection says whose peer is not welcome any more."""
    return AmqpError(condition=Condition.UNAUTHORIZED_ACCESS, description=why)


def _login_of(user: User) -> User:
    """Return what of a user is about who it is, and not about what it may do."""
    return structs.replace(
        user, permissions=[], deny=[], groups=[], mesh=False, containers=None, limits=None
    )


def _why(name: str, *, is_gone: bool) -> str:
    if is_gone:
        return f"user {name!r:.80} is not configured any more"
    return f"the login of user {name!r:.80} has changed: log in again"
