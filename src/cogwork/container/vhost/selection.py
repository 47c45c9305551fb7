"""Selectors against encoded messages.

Theory of operation. A message is kept as it came, and what a selector asks for is decoded: header,
properties and the application's own. The body never is, and neither is anything of which there is
so much that everybody else would wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition, ProtocolError
from cogwork.dataplane.message.messages import Message
from cogwork.plugin.node import Refused
from cogwork.router.selectors import (
    SelectorCostError,
    SelectorSyntaxError,
    compile_selector,
    section_lookup,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.router.selectors import Lookup

__all__ = ("DearSelectorError", "selection")

PARTS_MAX = 512
"""Words, literals and signs of a selector: each takes 2 to 4 µs to compile, all in one go."""

PROPERTIES_BYTES_MAX = 256 * 1024
"""Of the application's own: some milliseconds to decode, once for all receivers with selectors."""

SHOWN_CHARACTERS = 60
"""Of a selector, in an error: its beginning tells which one it is."""


KEPT_BYTES_MAX = 2 * PROPERTIES_BYTES_MAX
"""A message that is larger is not kept for the next receiver."""


class DearSelectorError(Exception):
    """A selector takes too long for a message; its link is to be detached.

    It is raised once: from then on the selector takes no message.
    """

    def __init__(self, text: str, steps_max: int) -> None:
        shown = text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"
        super().__init__(
            f"the selector {shown!r} takes more than {steps_max} steps for one message "
            "(expected shorter LIKE patterns, or fewer of them)"
        )


class _Header:
    """A message's header, with its fields named as AMQP names them."""

    def __init__(self, message: Message) -> None:
        self.durable = message.durable
        self.priority = message.priority
        self.first_acquirer = message.first_acquirer
        self.delivery_count = message.delivery_count
        self.ttl = None if message.ttl_s is None else round(message.ttl_s * 1000)


def selection(text: str) -> Callable[[bytes], bool]:
    """Compile a selector to a function of an encoded message.

    Raises:
        Refused: It is no selector; the error names position and expectation.
    """
    try:
        selector = compile_selector(text, PARTS_MAX)
    except SelectorSyntaxError as error:
        raise Refused(str(error), Condition.INVALID_FIELD) from error

    is_too_dear = False

    def matches(encoded: bytes) -> bool:
        nonlocal is_too_dear
        if is_too_dear:
            return False
        lookup = _LATEST.lookup_in(encoded)
        try:
            return lookup is not None and selector.matches(lookup)
        except SelectorCostError as error:
            is_too_dear = True
            raise DearSelectorError(text, error.steps_max) from error
        except ProtocolError:
            return False

    return matches


class _Latest:
    """The message that was looked at last: one for many receivers is decoded once."""

    def __init__(self) -> None:
        self._encoded = b""
        self._lookup: Lookup | None = None

    def lookup_in(self, encoded: bytes) -> Lookup | None:
        """Return what looks up identifiers in a message; None where it cannot be read."""
        if encoded == self._encoded:
            return self._lookup
        lookup = _lookup_in(encoded)
        if len(encoded) <= KEPT_BYTES_MAX:
            self._encoded, self._lookup = encoded, lookup
        return lookup


_LATEST = _Latest()


def _lookup_in(encoded: bytes) -> Lookup | None:
    try:
        message = Message.decode(encoded)
        if message.properties_size > PROPERTIES_BYTES_MAX:
            return None
        return section_lookup(_Header(message), message, message.properties)
    except ProtocolError:
        return None
