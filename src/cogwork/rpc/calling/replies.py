"""The one link on which a client's replies come, matched without a task or a queue."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from cogwork.amqp.terminus import Source
from cogwork.client.requests.reply_source import ReplySource

if TYPE_CHECKING:
    from cogwork.client.context import LinkContext
    from cogwork.dataplane.message.messages import Message

__all__ = ("Pending", "Replies")

CREDIT = 1000

log = logging.getLogger("cogwork.client.rpc")


class Pending(Protocol):
    """A call that waits for what comes."""

    def on_reply(self, reply: Message) -> object:
        """Return a reply came, or a part of one, or a sign of life."""

    def on_lost(self, error: Exception | None) -> object:
        """Return the address of its reply is gone; for good, where there is an error."""


class Replies(ReplySource):
    """A dynamic source, and the calls that wait for what comes there.

    Attributes:
        calls: Those that wait, by their id.
    """

    def __init__(self, client: LinkContext) -> None:
        """Is not attached yet.

        Args:
            client: Keeps it attached.
        """
        super().__init__(client, Source(dynamic=True), CREDIT)
        self._inbox.listener = self._on_arrivals
        self.calls: dict[object, Pending] = {}

    def _on_arrivals(self) -> None:
        replies = self._inbox.take_now()
        calls = self.calls
        for reply in replies:
            try:
                call = calls.get(reply.correlation_id)
                if call is not None:
                    call.on_reply(reply)
            except Exception as error:  # one that cannot be read must not keep back the others
                log.info("cannot read a reply: %s", error)
        self._inbox.let_go(len(replies))

    def lost(self, error: Exception | None) -> None:
        """Tell the calls that wait."""
        for call in list(self.calls.values()):
            call.on_lost(error)
