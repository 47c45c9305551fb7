"""Links by which a virtual host sends to other containers."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.errors import AmqpError
    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.transport.outgoing import OutgoingLink

__all__ = ("Away", "Opener")

log = logging.getLogger("cogwork")


class Opener(Protocol):
    """Who has links to other containers."""

    def stopping(self, way: Away) -> None:
        """Take a link that is about to end out of use."""

    def refused(self, way: Away, error: AmqpError) -> None:
        """Hear why the other container does not take the link, or has ended it."""


@dataclass(slots=True, eq=False)
class Away:
    """A link to another container.

    Attributes:
        opener: Who asked for it, and hears of its end.
        container: Where it leads.
        address: What its target names; None for the null target.
        end: The compiled half.
        entry: Whose outlet it is; None for a topic's.
        on_attached: Called when the other container has answered.
    """

    opener: Opener
    container: str
    address: str | None
    end: OutgoingLink
    entry: AddressEntry | None = None
    on_attached: Callable[[], None] | None = None
    link: Link = field(init=False)

    def attached(self, _link: Link) -> None:
        """The other container answered."""
        if self.on_attached is not None:
            self.on_attached()

    def stopping(self, _link: Link) -> None:
        """It is about to end."""
        self.opener.stopping(self)

    def detached(self, _link: Link, error: AmqpError | None) -> None:
        """It is over."""
        if error is not None:
            log.debug("container %s: %s", self.container, error.description)
            self.opener.refused(self, error)

    def detach(self) -> None:
        """End it from this side."""
        self.link.detach()
