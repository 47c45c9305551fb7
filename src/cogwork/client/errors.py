"""What a client raises: one type for each thing a program may want to tell apart.

Conditions of AMQP become types here, once (`refusal`, `connection_error`); above this module nobody
looks at a condition to find out what happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError, CogworkError, Condition
from cogwork.amqp.extensions import CLAIM_IN_DOUBT, RECORDS_LOST, STALE_ATTEMPT, STREAM_TRUNCATED
from cogwork.amqp.types import Symbol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.dataplane.client.items import Item

__all__ = (
    "AuthenticationError",
    "CallFailed",
    "CallTimeout",
    "ClientError",
    "CogworkError",
    "ConnectError",
    "Disconnected",
    "InDoubt",
    "InvalidUrlError",
    "LinkDetached",
    "LinkRefused",
    "NotFound",
    "NotOpened",
    "PermissionDenied",
    "RecordsLost",
    "Rejected",
    "Released",
    "StaleAttempt",
    "StreamTruncated",
    "connection_error",
    "detachment",
    "refusal",
    "unconfirmed",
)


class InvalidUrlError(CogworkError, ValueError):
    """A URL that names no container."""


class ConnectError(ConnectionError, CogworkError):
    """None of the hosts could be reached, or none of them took the connection.

    Attributes:
        condition: The error condition of AMQP, where a host named one.
    """

    condition: Symbol | None = None


class AuthenticationError(ConnectError):
    """The container does not know the user, or no mechanism suits both sides."""

    condition = Condition.UNAUTHORIZED_ACCESS


class NotOpened(CogworkError, RuntimeError):
    """It is used before `async with` has opened it: nothing would ever come, or be sent."""


class Disconnected(ConnectionError, CogworkError):  # it tells a state
    """The connection is gone, and is not coming back: it was closed, or retrying was given up."""


class ClientError(CogworkError):
    """Something that went wrong at an address.

    Attributes:
        address: Where.
        condition: The error condition of AMQP; None where there is none.
        description: What the other side says of it.
    """

    def __init__(self, address: str, condition: Symbol | None, description: str) -> None:
        super().__init__(address, condition, description)
        self.address = address
        self.condition = condition
        self.description = description

    def __str__(self) -> str:
        """Name the address, what happened, and the condition."""
        where = f"{self.address}: " if self.address else ""
        condition = f" ({self.condition})" if self.condition else ""
        return f"{where}{self.description}{condition}"


class LinkRefused(ClientError):
    """The container does not let this client send to, or receive from, the address."""


class NotFound(LinkRefused):
    """There is nothing at the address."""


class PermissionDenied(LinkRefused):
    """The user may not do this at the address."""


class LinkDetached(ClientError):
    """The container ended a link that stood: the address was removed, or we were too slow."""


class StreamTruncated(LinkDetached):
    """A stream has given up what the reader would get next.

    Attributes:
        first: The first offset that is left.
    """

    def __init__(self, address: str, description: str, first: int) -> None:
        super().__init__(address, STREAM_TRUNCATED, description)
        self.args = (address, description, first)
        self.first = first


class RecordsLost(LinkDetached):
    """What keeps a stream has lost its newest records, and the reader had some of them.

    Attributes:
        end: The offset up to which the stream surely has what was read: go on from there, with
            other records, or with those that come.
    """

    def __init__(self, address: str, description: str, end: int) -> None:
        super().__init__(address, RECORDS_LOST, description)
        self.args = (address, description, end)
        self.end = end


class Rejected(ClientError):
    """The message is invalid where it was sent, and nobody will process it."""


class Released(ClientError):
    """Nobody took the message, or it is not in the stream: it can safely be sent again."""


class InDoubt(ClientError):
    """Whether the message was processed cannot be known: sending it again may process it twice.

    Of a stream: whether it has the message. Of an accept: whether it was counted; its queue cannot
    be asked, or does not know it any more.

    Attributes:
        items: Those of an accept whose claims are in doubt.
        stale: Those of the same accept that somebody else has.
    """

    def __init__(
        self,
        address: str,
        condition: Symbol | None,
        description: str,
        items: Sequence[object] = (),
        stale: Sequence[object] = (),
    ) -> None:
        super().__init__(address, condition, description)
        self.items = list(items)
        self.stale = list(stale)


class StaleAttempt(ClientError):
    """An accept came too late: the item certainly belongs, or belonged, to somebody else.

    Attributes:
        items: Those that were not confirmed.
    """

    def __init__(self, address: str, items: Sequence[object] = ()) -> None:
        count = f"{len(items)} items were" if len(items) > 1 else "the item was"
        super().__init__(address, STALE_ATTEMPT, f"{count} given to another consumer meanwhile")
        self.items = list(items)


class CallTimeout(TimeoutError, CogworkError):
    """No reply came in time.

    Attributes:
        address: Whom was asked.
        timeout_s: How long it had, in seconds.
    """

    def __init__(self, address: str, timeout_s: float) -> None:
        super().__init__(f"{address}: no reply within {timeout_s:g} s")
        self.address = address
        self.timeout_s = timeout_s


class CallFailed(ClientError):
    """The service answered with an error."""


_REFUSALS: dict[Symbol, type[LinkRefused]] = {
    Condition.NOT_FOUND: NotFound,
    Condition.UNAUTHORIZED_ACCESS: PermissionDenied,
}


def refusal(address: str, error: AmqpError | None) -> LinkRefused:
    """Return the exception for a link that was refused with `error`."""
    if error is None:
        return LinkRefused(address, None, "the link was refused without a reason")
    kind = _REFUSALS.get(error.condition, LinkRefused)
    return kind(address, error.condition, error.description or "the link was refused")


_DETACHMENTS: dict[Symbol, tuple[type[StreamTruncated | RecordsLost], Symbol]] = {
    RECORDS_LOST: (RecordsLost, Symbol("end")),
    STREAM_TRUNCATED: (StreamTruncated, Symbol("first")),
}
"""Ends of a link that name an offset, and what in their info does."""


def detachment(address: str, error: AmqpError | None) -> LinkDetached:
    """Return the exception for a link that stood and was ended with `error`."""
    if error is None:
        return LinkDetached(address, None, "the link was ended by the container")
    description = error.description or "the link was ended"
    made = _DETACHMENTS.get(error.condition)
    if made is not None:
        kind, name = made
        offset = (error.info or {}).get(name)
        if isinstance(offset, int):
            return kind(address, description, int(offset))
    return LinkDetached(address, error.condition, description)


def connection_error(where: str, error: AmqpError | None, hint: str = "") -> ConnectError:
    """Return the exception for a connection to `where` that did not come to be."""
    description = error.description if error is not None else None
    condition = error.condition if error is not None else None
    kind = AuthenticationError if condition == Condition.UNAUTHORIZED_ACCESS else ConnectError
    made = kind(f"{where}: {description or 'the connection was closed'}{hint}")
    made.condition = condition
    return made


def unconfirmed(address: str, items: Sequence[Item]) -> StaleAttempt | InDoubt:
    """Return the exception for accepts that were not confirmed."""
    stale = [item for item in items if item.stage == "stale"]
    doubtful = [item for item in items if item.stage != "stale"]
    if not doubtful:
        return StaleAttempt(address, stale)
    count = f"{len(doubtful)} accepts" if len(doubtful) > 1 else "an accept"
    text = f"whether {count} counted is not known: the queue cannot be asked, or has forgotten"
    return InDoubt(address, CLAIM_IN_DOUBT, text, doubtful, stale)
