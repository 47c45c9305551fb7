"""Selectors against encoded messages.

Theory of operation. A message is kept as it came, and what a selector asks for is decoded: header,
properties and the application's own. The body never is, and neither is anything of which there is
so much that everybody else would wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition, ProtocolError
from cogwork.dataplane.message.messages import Message
from cogwork.router.selectors import SelectorSyntaxError, compile_selector, section_lookup
from cogwork.spi.node import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("selection",)

PROPERTIES_BYTES_MAX = 256 * 1024
"""Of the application's own: some ten milliseconds for each receiver that has a selector."""


class _Header:
    """A message's header, with its fields named as AMQP names them."""

    def __init__(self, message: Message) -> None:
        self.durable = message.durable
        self.priority = message.priority
        self.first_acquirer = message.first_acquirer
        self.delivery_count = message.delivery_count
        self.ttl = None if message.ttl_s is None else round(message.ttl_s * 1000)


def selection(text: str) -> Callable[[bytes], bool]:
    """Compiles a selector to a function of an encoded message.

    Raises:
        Refused: It is no selector; the error names position and expectation.
    """
    try:
        selector = compile_selector(text)
    except SelectorSyntaxError as error:
        raise Refused(str(error), Condition.INVALID_FIELD) from error

    def matches(encoded: bytes) -> bool:
        try:
            message = Message.decode(encoded)
            if message.properties_size > PROPERTIES_BYTES_MAX:
                return False
            lookup = section_lookup(_Header(message), message, message.properties)
            return selector.matches(lookup)
        except ProtocolError:
            return False

    return matches
