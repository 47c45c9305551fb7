"""The links of a reader's clients: each gets the batches of one range."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.extensions import STREAM_TRUNCATED
from cogwork.amqp.performatives import Role, SenderSettleMode
from cogwork.amqp.terminus import Source, Target
from cogwork.amqp.types import Symbol, ULong
from cogwork.dataplane.stream.feed import Feed
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.pipeline.arrow.envelope import ADDRESS_PREFIX, BEYOND_END, encode_batch, range_of
from cogwork.pipeline.arrow.errors import ArrowError, BeyondEnd, StreamTruncated, UnknownStream
from cogwork.pipeline.arrow.schema import columns_of
from cogwork.pipeline.arrow.serving.records import Records
from cogwork.plugin.node import Refused
from cogwork.router.own_addresses import missing

if TYPE_CHECKING:
    from cogwork.amqp.performatives import Attach
    from cogwork.container.connections.clients import ClientContext
    from cogwork.container.connections.peer import Peer
    from cogwork.dataplane.connection import Connection
    from cogwork.dataplane.core import Core
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.session import SessionEndpoint
    from cogwork.dataplane.transport.consumer_end import ConsumerEnd
    from cogwork.pipeline.arrow.serving.asker import Asker
    from cogwork.pipeline.arrow.serving.turns import Turns

__all__ = ("Links",)

log = logging.getLogger("cogwork")


@dataclass(slots=True, eq=False)
class _Serving:
    """One link."""

    link: Link
    end: OutgoingLink
    records: Records
    stream: str
    can_send: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Links:
    """Takes links and serves them, where a container has its `Attachments`."""

    def __init__(self, core: Core, asker: Asker, turns: Turns) -> None:
        """Start with none yet.

        Args:
            core: The data plane.
            asker: The way to the container.
            turns: Say when there is a batch for somebody.
        """
        self._core = core
        self._asker = asker
        self._turns = turns
        self._feed = Feed(core, self)
        self._served: dict[ConsumerEnd, _Serving] = {}

    # -- what peers ask

    def take(self, link: Link, attach: Attach, client: ClientContext) -> None:
        """Accept or refuse a link."""
        try:
            self._take(link, attach, client)
        except Refused as refusal:
            link.refuse(refusal.condition, refusal.description)

    def _take(self, link: Link, attach: Attach, client: ClientContext) -> None:
        source = attach.source
        address = source.address if source is not None else None
        if attach.role is Role.SENDER or source is None or not address:
            _refuse(f"a reader serves {ADDRESS_PREFIX}NAME to receivers, and nothing else")
        stream = address.removeprefix(ADDRESS_PREFIX)
        if stream == address:
            _refuse(f"a reader serves {ADDRESS_PREFIX}NAME, not {address!r:.80}")
        client.demand("receive", f"stream/{stream}")
        try:
            wanted = range_of(source.filter)
            columns_of(wanted.columns)
        except ValueError as error:
            raise Refused(str(error), Condition.INVALID_FIELD) from None
        records = Records(self._asker, client.vhost.name, stream, wanted)
        presettles = attach.snd_settle_mode is SenderSettleMode.SETTLED
        end = OutgoingLink(link.session.end, link.handle, presettles)
        end.feeder = self._feed
        end.drains_late = True
        link.carry(end)
        link.attach(
            source=Source(address=address, filter=source.filter),
            target=attach.target if isinstance(attach.target, Target) else Target(),
            snd_settle_mode=attach.snd_settle_mode,
            rcv_settle_mode=attach.rcv_settle_mode,
        )
        serving = self._served[end] = _Serving(link, end, records, stream)
        serving.task = asyncio.get_running_loop().create_task(self._serve(serving))

    def release(self, link: Link, client: ClientContext) -> None:
        """Serve a link no more."""
        del client
        serving = self._served.pop(link.end, None) if isinstance(link.end, OutgoingLink) else None
        if serving is not None:
            serving.end.feeder = None
            serving.can_send.set()

    def permit_anew(self, connection: Peer, client: ClientContext) -> None:
        """Detach links to streams from which their client may not receive any more."""
        for serving in list(self._served.values()):
            address = f"stream/{serving.stream}"
            if serving.link.session.connection is connection and not client.may("receive", address):
                text = missing("receive", address)
                error = AmqpError(condition=Condition.UNAUTHORIZED_ACCESS, description=text)
                serving.link.detach(error)

    def end_session(self, session: SessionEndpoint) -> None:
        """A link that has ended is not kept here."""

    def end_connection(self, connection: Connection, client: ClientContext) -> None:
        """There is nothing here that is a connection's."""

    def tick(self, now_s: float) -> None:
        """Nothing here has its time."""

    def on_batch(self, feed: Feed) -> None:
        """Go on with links that can take more."""
        woken, feed.woken = feed.woken, []
        for end in woken:
            serving = self._served.get(end)
            if serving is not None:
                serving.can_send.set()

    # -- serving

    async def _serve(self, serving: _Serving) -> None:
        try:
            await self._send_all(serving)
        except Exception as error:  # damage, too: it ends one link and nothing else
            if serving.end in self._served:
                if not isinstance(error, ArrowError):
                    log.error("cannot serve a range of records: %s", error, exc_info=error)
                serving.link.detach(_error_of(error))
                self._core.flush()

    async def _send_all(self, serving: _Serving) -> None:
        records, end = serving.records, serving.end
        await records.check()
        while not records.is_over and end in self._served:
            if not self._feed.takes(end):
                serving.can_send.clear()
                await serving.can_send.wait()
                continue
            await self._turns.wait(len(self._served))
            batch = await records.batch()
            message = encode_batch(records.next - 1, batch)
            while end in self._served and not self._send(end, records.next, message):
                serving.can_send.clear()
                await serving.can_send.wait()
            await asyncio.sleep(0)  # others have their turn

    def _send(self, end: OutgoingLink, token: int, message: memoryview) -> bool:
        was_sent = end.send_buffer(self._feed, token, message, True)
        self._core.flush()
        return was_sent


def _refuse(text: str) -> NoReturn:
    raise Refused(text, Condition.NOT_IMPLEMENTED)


def _error_of(error: Exception) -> AmqpError:
    """Return to a client what it is told elsewhere."""
    text = str(error)[:500] or repr(error)[:500]
    if isinstance(error, UnknownStream):
        return AmqpError(condition=Condition.NOT_FOUND, description=text)
    if isinstance(error, StreamTruncated):
        info: dict[Symbol, object] = {Symbol("first"): ULong(error.first)}
        return AmqpError(condition=STREAM_TRUNCATED, description=text, info=info)
    if isinstance(error, BeyondEnd):
        return AmqpError(condition=BEYOND_END, description=text)
    return AmqpError(condition=Condition.INTERNAL_ERROR, description=text)
