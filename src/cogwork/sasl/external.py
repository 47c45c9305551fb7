"""EXTERNAL: whom the certificate names (RFC 4422, appendix A)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.sasl import EXTERNAL
from cogwork.sasl.sides import Failure, Mechanism, Success
from cogwork.sasl.silent import Silent

if TYPE_CHECKING:
    from cogwork.sasl.sides import ClientContext, ServerContext, Step

__all__ = ("MECHANISMS",)


class _Server:
    """Lets in who is a user by certificate."""

    def __init__(self, context: ServerContext) -> None:
        self._users = context.users
        self._name = context.certificate_name

    def respond(self, response: bytes | None) -> Step:
        """Take the name to act as, which has to be the own one or none."""
        name = self._name
        if name is None:
            return Failure("its certificate names nobody")
        if (response or b"") not in (b"", name.encode()):
            return Failure(f"it wants to act as {(response or b'')[:80]!r}", name)
        return Success(name) if self._users.has(name) else Failure("unknown user", name)


def _client(context: ClientContext) -> Silent | None:
    is_able = context.user is None and context.token is None and context.has_certificate
    return Silent(b"") if is_able or context.chosen is not None else None


MECHANISMS = (
    Mechanism(EXTERNAL, _Server, _client, lambda _: None, has_user=False, has_password=False),
)
