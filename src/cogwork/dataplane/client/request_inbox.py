"""Where a server's requests arrive, each settled by whoever works on it.

Theory of operation. A request stays unsettled until its work is done: a server that is lost in the
middle of it makes its container answer with `modified`, at once, and what a server has not begun it
gives back as `released`. Credit is not a window's, but what the server offers: it knows how much it
can begin, by all of its links together.
"""

from __future__ import annotations

from cython.cimports.cogwork.dataplane.client.inbox import Inbox
from cython.cimports.cogwork.dataplane.message.messages import Message, message_from
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.cogwork.dataplane.transport.shipment import ACCEPTED, RELEASED

__all__ = ("SOURCE_HASH", "RequestInbox")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class RequestInbox(Inbox):
    """Hands over pairs: a request, and its delivery-id, which is None where it came settled."""

    def admit(self, s):
        message: Message = message_from(self.payload(s))
        return (message, None if s.settled else s.token)

    def top_up(self):
        return 0

    @property
    def credit(self) -> int:
        """How many requests may come at once."""
        return 0 if self.link is None else self.link.credit

    def offer(self, credit: cython.uint) -> None:
        """Set the credit, also to less than there is.

        Args:
            credit: How many requests may come from now on.
        """
        if self.link is None or self.is_over or self.is_stopped or self.draining is not None:
            return
        if self.link.credit != credit:
            self.link.grant(credit)
            self.flusher.later()

    def settle_request(self, link: object, delivery_id: cython.uint, is_taken: bool) -> None:
        """Settle a request.

        Args:
            link: By which it came; once that is gone, its container has settled it.
            delivery_id: Its own.
            is_taken: Whether it is accepted; else it is released, for others.
        """
        if link is not None and self.link is link:
            self.reply(delivery_id, ACCEPTED if is_taken else RELEASED, None)
            self.flusher.later()
