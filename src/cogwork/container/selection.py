"""Selectors against encoded messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition, ProtocolError
from cogwork.amqp.message import decode_sections
from cogwork.router.selectors import SelectorSyntaxError, compile_selector, section_lookup
from cogwork.spi.node import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("selection",)


def selection(text: str) -> Callable[[bytes], bool]:
    """Compiles a selector to a function of an encoded message.

    Raises:
        Refused: It is no selector; the error names position and expectation.
    """
    try:
        selector = compile_selector(text)
    except SelectorSyntaxError as error:
        raise Refused(f"selector: {error}", Condition.INVALID_FIELD) from error

    def matches(message: bytes) -> bool:
        try:
            sections = decode_sections(message)
            lookup = section_lookup(
                sections.header, sections.properties, sections.application_properties
            )
            return selector.matches(lookup)
        except ProtocolError:
            return False

    return matches
