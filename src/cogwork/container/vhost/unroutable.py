"""Answers for messages that name an address to which nothing leads: by the anonymous relay.

Theory of operation. A link to the null target takes messages to any address, so what an attach to
that address would have been told comes too late for the link: the message gets it instead, as a
rejection with the same condition and description. What is released is only what could be sent
again as it is, for the address is fine, and just nobody there now.

A stream that the cluster has just declared may be unknown here yet. An attach waits until it is
known; a message cannot, for what comes behind it would overtake it. Its answer waits: it is
rejected if the stream is unknown still, and released if it is not.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cogwork.amqp import codec
from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.outcomes import Rejected
from cogwork.container.connections.node_shares import FROM_AFAR
from cogwork.container.vhost.terminus_kinds import address_named
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.container.connections.clients import ClientContext
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.transport.fragments import FragmentingEnd

    WhenDeclared = Callable[[Callable[[], None]], None]

__all__ = ("Refuser", "answer_from_elsewhere", "rejection_of")

DESCRIPTION_CHARACTERS_MAX = 256
"""With it, a disposition fits into the smallest frame that a peer may ask for."""


class Refuser:
    """Answers on the links of one client."""

    def __init__(self, client: ClientContext, when_declared: WhenDeclared | None) -> None:
        """Make it for one link.

        Args:
            client: Whose messages they are.
            when_declared: As `Attachments.when_declared`.
        """
        self._client = client
        self._when_declared = when_declared

    def __call__(self, link: FragmentingEnd, token: int, address: bytes | None) -> None:
        """Answer for a message.

        Args:
            link: Where it came.
            token: Its delivery-id.
            address: Where it was to go; None where it does not say, empty where nobody can tell.
        """
        if self._when_declared is not None and self._lacks_stream(address):
            self._when_declared(partial(self._answer_later, link, token, address))
        else:
            link.answer(token, self._rejection(address))

    def _lacks_stream(self, address: bytes | None) -> bool:
        name = (address or b"").decode(errors="replace")
        return self._client.may("send", name) and self._client.vhost.lacks_stream(name)

    def _answer_later(self, link: FragmentingEnd, token: int, address: bytes | None) -> None:
        link.answer(token, self._rejection(address))
        self._client.vhost.core.flush()

    def _rejection(self, address: bytes | None) -> bytes | None:
        try:
            name = _name_in(self._client.vhost, address)
            self._client.demand("send", name)
            self._client.vhost.demand_reachable(name, self._client.makers)
        except Refused as refused:
            return rejection_of(refused)
        return None


def answer_from_elsewhere(
    vhost: VirtualHost, link: FragmentingEnd, token: int, address: bytes | None
) -> None:
    """Answer for a message that another container has sent here; it has checked who may send."""
    try:
        vhost.demand_reachable(_name_in(vhost, address), FROM_AFAR)
    except Refused as refused:
        link.answer(token, rejection_of(refused))
    else:
        link.answer(token, None)


def rejection_of(refused: Refused) -> bytes:
    """Return the outcome that says the same as the refusal of a link."""
    description = refused.description
    if len(description) > DESCRIPTION_CHARACTERS_MAX:
        description = f"{description[:DESCRIPTION_CHARACTERS_MAX]}..."
    error = AmqpError(condition=refused.condition, description=description)
    return codec.encode(Rejected(error=error).to_described())


def _name_in(vhost: VirtualHost, address: bytes | None) -> str:
    """Return the address of a message.

    Raises:
        Refused: It has none, or one that cannot be decoded.
    """
    if address is None:
        text = "the message names no address: a sender without one needs `to` in each message"
        raise Refused(text, Condition.INVALID_FIELD)
    if not address:
        text = "the message's `to` cannot be read: it is empty, or the sections are malformed"
        raise Refused(text, Condition.INVALID_FIELD)
    try:
        return address_named(address.decode(), vhost)
    except UnicodeDecodeError as error:
        text = f"the message's `to` is not UTF-8: {address[:64]!r}"
        raise Refused(text, Condition.DECODE_ERROR) from error
