"""The links of one direct connection, at the server's end."""

from __future__ import annotations

import logging
import secrets
from functools import partial
from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition
from cogwork.amqp.performatives import Role
from cogwork.amqp.terminus import Source, Target
from cogwork.client.errors import Disconnected
from cogwork.client.publishing.outcome import Outcome, outcome_of
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.client.outbox import Outbox
from cogwork.dataplane.client.posting_errors import BacklogFull
from cogwork.dataplane.client.request_inbox import RequestInbox
from cogwork.dataplane.transport.incoming import IncomingLink
from cogwork.dataplane.transport.outgoing import OutgoingLink

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.performatives import Attach
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.message.messages import Message
    from cogwork.rpc.client_context import RpcContext
    from cogwork.rpc.serving.reply_sender import ReplySender
    from cogwork.rpc.serving.window import Window

__all__ = ("DirectLinks",)

LINKS_MAX = 64
"""Links of one connection: a caller needs one for each address, and one for replies."""

MESSAGE_BYTES_MAX = 64 * 1024 * 1024
"""The largest request that is put together; a container would take no more either."""

log = logging.getLogger("cogwork.client.rpc")


class _Inflow:
    """A link on which requests come."""

    def __init__(self, inbox: RequestInbox, entry: AddressEntry, window: Window) -> None:
        self._inbox = inbox
        self._entry = entry
        self._window = window

    def close(self) -> None:
        self._window.remove(self._inbox)
        self._inbox.detach()
        self._inbox.close()
        self._entry.remove_outlet(self._inbox)
        self._entry.close()


class _Outflow:
    """A link on which replies leave, and the address that it was given."""

    def __init__(self, address: str, outbox: Outbox[Outcome]) -> None:
        self.address = address
        self.outbox = outbox

    def close(self) -> None:
        self.outbox.detach()
        self.outbox.close(Disconnected("the caller has gone"))


class DirectLinks:
    """What one caller has attached; it sends its replies, too."""

    def __init__(
        self,
        client: RpcContext,
        number: int,
        addresses: frozenset[str],
        window: Window,
        take: Callable[[RequestInbox, ReplySender], object],
    ) -> None:
        """Start with no link yet.

        Args:
            client: Whose loop and core carry the connection.
            number: Of the connection.
            addresses: Where requests may be sent.
            window: Gives the links credit.
            take: Called when requests are there.
        """
        self._client = client
        self._number = number
        self._addresses = addresses
        self._window = window
        self._take = take
        self._outflows: dict[str, _Outflow] = {}
        self._open = 0

    def send(self, reply: Message) -> None:
        """Send a reply to where it says, if the caller is there still."""
        outflow = self._outflows.get(reply.to or "")
        if outflow is not None:
            try:
                outflow.outbox.post(reply, True)
            except (ConnectionError, BacklogFull) as error:
                log.info("%s: cannot send a reply: %s", reply.to, error)

    def size_bytes_max(self, address: str) -> int:
        """Return how large a reply to an address may be; 0 for any size."""
        outflow = self._outflows.get(address)
        return 0 if outflow is None else outflow.outbox.size_bytes_max

    def attach(self, link: Link, attach: Attach) -> None:
        """Answer a caller's attach."""
        if self._open >= LINKS_MAX:
            link.refuse(Condition.RESOURCE_LIMIT_EXCEEDED, f"{LINKS_MAX} links are the limit")
        elif link.role is Role.RECEIVER:
            self._attach_requests(link, attach)
        else:
            self._attach_replies(link, attach)

    def _attach_requests(self, link: Link, attach: Attach) -> None:
        target = attach.target
        address = target.address if isinstance(target, Target) else None
        if address is None or address not in self._addresses:
            link.refuse(Condition.NOT_FOUND, f"{address!r:.80} is not served here")
            return
        client = self._client
        entry = AddressEntry(client.core, address, CLOSEST_CODE)
        inbox = RequestInbox(client.flusher, client.create_future, 1)
        inbox.listener = partial(self._take, inbox, self)
        entry.add_outlet(inbox)
        end = IncomingLink(link.session.end, link.handle, entry, max_message_size=MESSAGE_BYTES_MAX)
        link.context = _Inflow(inbox, entry, self._window)
        link.attach(source=attach.source, target=target, max_message_size=MESSAGE_BYTES_MAX)
        link.carry(end)
        self._open += 1
        inbox.attach(end)
        inbox.start()
        self._window.add(inbox, is_shared=True)
        self._window.update()

    def _attach_replies(self, link: Link, attach: Attach) -> None:
        source = attach.source
        if source is None or not source.dynamic:
            link.refuse(Condition.NOT_FOUND, "only replies are received here: a dynamic source")
            return
        address = f"direct/{self._number}/{secrets.token_urlsafe(16)}"
        client = self._client
        explain = partial(outcome_of, address)
        outflow = _Outflow(address, Outbox(client.flusher, client.create_future, explain, False))
        end = OutgoingLink(link.session.end, link.handle)
        link.context = outflow
        link.attach(source=Source(address=address, dynamic=True), target=attach.target)
        link.carry(end)
        outflow.outbox.size_bytes_max = attach.max_message_size or 0
        outflow.outbox.attach(end)
        self._outflows[address] = outflow
        self._open += 1

    def stopping(self, link: Link) -> None:
        """A link's compiled half is about to end."""
        if isinstance(link.context, _Outflow):
            link.context.outbox.stop()

    def detached(self, link: Link) -> None:
        """A link has gone."""
        ended, link.context = link.context, None
        if isinstance(ended, (_Inflow, _Outflow)):
            self._open -= 1
            ended.close()
        if isinstance(ended, _Outflow):
            self._outflows.pop(ended.address, None)
