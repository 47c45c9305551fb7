"""The client's side of a login, on a connection that it dialled."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from cogwork.amqp.errors import ProtocolError
from cogwork.amqp.sasl import PLAIN, SaslInit
from cogwork.sasl.mechanisms import MECHANISMS, SCRAM
from cogwork.sasl.sides import SaslError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from cogwork.amqp.types import Symbol
    from cogwork.dataplane.connection import Connection
    from cogwork.sasl.sides import ClientContext, ClientSide
    from cogwork.sasl.verifier import Keys

__all__ = ("ClientLogin", "NoMechanismError", "off_loop")

log = logging.getLogger("cogwork")


class NoMechanismError(Exception):
    """The server offers no mechanism that this side can use.

    Attributes:
        usable: Those that it could.
    """

    def __init__(self, usable: Sequence[Symbol]) -> None:
        super().__init__(usable)
        self.usable = usable


async def off_loop(work: Callable[[], Keys]) -> Keys:
    """Derive keys in a thread: that takes up to seconds, as the server wants it.

    Args:
        work: What derives them.
    """
    return await asyncio.to_thread(work)


class ClientLogin:
    """One exchange. Owned by the host of a connection.

    Attributes:
        mechanism: The one that was chosen; None before.
    """

    def __init__(self) -> None:
        """Initialize it; it has chosen nothing yet."""
        self.mechanism: Symbol | None = None
        self._context: ClientContext | None = None
        self._side: ClientSide | None = None
        self._step: asyncio.Task[None] | None = None

    def begin(self, context: ClientContext, hostname: str) -> SaslInit:
        """Choose the strongest mechanism that both sides have.

        Args:
            context: Who logs in, and what the server offers.
            hostname: How the server is called.

        Raises:
            NoMechanismError: There is none.
        """
        usable = []
        for mechanism in MECHANISMS.values():
            is_wanted = context.chosen is None or mechanism.name in context.chosen
            side = mechanism.client(context) if is_wanted else None
            if side is None:
                continue
            usable.append(mechanism.name)
            if mechanism.name in context.offered:
                self.mechanism, self._context, self._side = mechanism.name, context, side
                response = side.first()
                return SaslInit(
                    mechanism=mechanism.name, initial_response=response, hostname=hostname
                )
        raise NoMechanismError(usable or context.chosen or ())

    @property
    def is_scram(self) -> bool:
        """Whether SCRAM was chosen."""
        return self.mechanism in SCRAM

    @property
    def is_plain_offered(self) -> bool:
        """Whether the server offers PLAIN."""
        return self._context is not None and PLAIN in self._context.offered

    @property
    def may_tell_password(self) -> bool:
        """Whether PLAIN may be tried where SCRAM was refused.

        A user whose password was hashed before there was SCRAM has no verifier. Only where nobody
        reads along, or where it was asked for by name, is the password told.
        """
        context = self._context
        if context is None or not self.is_scram or not self.is_plain_offered:
            return False
        return context.is_private if context.chosen is None else PLAIN in context.chosen

    def respond(self, connection: Connection, challenge: bytes) -> None:
        """Answer a challenge, at once or when the answer is there.

        Raises:
            ProtocolError: The challenge is wrong, or comes before the last one was answered.
        """
        assert self._side is not None
        if self._step is not None and not self._step.done():
            raise SaslError("the server asks again before its first challenge is answered")
        answer = self._side.respond(challenge)
        if isinstance(answer, bytes):
            connection.sasl_response(answer)
        else:
            task = asyncio.get_running_loop().create_task(self._answer(connection, answer))
            self._step = task

    async def _answer(self, connection: Connection, answer: Callable[[], Awaitable[bytes]]) -> None:
        try:
            connection.sasl_response(await answer())
        except ProtocolError as error:
            connection.on_violation(error.condition, error.description)
        connection.flush()

    def finish(self, data: bytes | None) -> None:
        """Take the server's success.

        Raises:
            SaslError: The server has not proved what the mechanism demands.
        """
        assert self._side is not None
        self._side.finish(data)
        self._side = self._context = None  # they hold the password

    def cancel(self) -> None:
        """Stop waiting for an answer to give."""
        if self._step is not None:
            self._step.cancel()
