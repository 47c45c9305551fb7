"""PLAIN: the password as it is (RFC 4616)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cogwork.amqp.errors import ProtocolError
from cogwork.amqp.sasl import PLAIN, build_plain, parse_plain
from cogwork.sasl.sides import Failure, LoginBusyError, Mechanism, Success
from cogwork.sasl.silent import Silent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cogwork.sasl.sides import ClientContext, ServerContext, Step

__all__ = ("MECHANISMS",)


class _Server:
    """Has the password checked, which takes a while."""

    def __init__(self, context: ServerContext) -> None:
        self._users = context.users
        self._source = context.source

    def respond(self, response: bytes | None) -> Step | Callable[[], Awaitable[Step]]:
        """Take name and password."""
        authorization_id, user, password = parse_plain(response or b"")
        if authorization_id not in ("", user):
            return Failure(f"it wants to act as {authorization_id!r:.80}", user)
        return partial(self._check, user, password)

    async def _check(self, user: str, password: str) -> Step:
        try:
            is_right = await self._users.check(user, password, self._source)
        except LoginBusyError as error:
            return Failure(str(error), user, is_temporary=True)
        return Success(user) if is_right else Failure("wrong name or password", user)


def _client(context: ClientContext) -> Silent | None:
    if context.user is None and context.chosen is None:
        return None
    return Silent(build_plain(context.user or "", context.password))


def _user_of(response: bytes) -> str | None:
    try:
        return parse_plain(response).user
    except ProtocolError:
        return None


MECHANISMS = (Mechanism(PLAIN, _Server, _client, _user_of, is_password_shown=True),)
