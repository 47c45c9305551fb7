"""A session as its client sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cogwork.amqp.performatives import (
    Attach,
    Detach,
    Disposition,
    End,
    Flow,
    ReceiverSettleMode,
    Role,
    SenderSettleMode,
    Transfer,
)
from cogwork.amqp.terminus import Source, Target

from .links import Consumer, Publisher

if TYPE_CHECKING:
    from cogwork.amqp.outcomes import DeliveryState
    from cogwork.amqp.performatives import Performative

    from .peer import Peer


WINDOW = 1 << 20


class Channel:
    """A session as its client sees it."""

    def __init__(self, peer: Peer, number: int) -> None:
        self.peer = peer
        self.number = number
        self.next_delivery_id = 0
        self.next_outgoing_id = 0
        self.next_incoming_id = 0
        self.window: int | None = None
        self.links: list[Publisher | Consumer] = []
        self.ended: End | None = None

    def say(self, performative: Performative, payload: bytes = b"") -> None:
        self.peer.say(performative, payload, self.number)

    def publisher(
        self,
        address: str | None,
        *,
        name: str | None = None,
        rcv_settle_mode: ReceiverSettleMode = ReceiverSettleMode.FIRST,
        delivery_count: int = 0,
    ) -> Publisher:
        link = Publisher(self, len(self.links), address, delivery_count=delivery_count)
        self._attach(
            link,
            Attach(
                name=name or f"out-{id(self)}-{link.handle}",
                handle=link.handle,
                role=Role.SENDER,
                rcv_settle_mode=rcv_settle_mode,
                source=Source(),
                target=Target(address=address),
                initial_delivery_count=delivery_count,
            ),
        )
        return link

    def consumer(
        self,
        address: str,
        credit: int = 0,
        *,
        name: str | None = None,
        presettled: bool = False,
        source: Source | None = None,
        **fields: Any,
    ) -> Consumer:
        link = Consumer(self, len(self.links), address)
        mode = SenderSettleMode.SETTLED if presettled else SenderSettleMode.MIXED
        self._attach(
            link,
            Attach(
                name=name or f"in-{id(self)}-{link.handle}",
                handle=link.handle,
                role=Role.RECEIVER,
                snd_settle_mode=mode,
                source=source or Source(address=address),
                target=Target(),
                **fields,
            ),
        )
        if credit:
            link.flow(credit)
        return link

    def _attach(self, link: Publisher | Consumer, attach: Attach) -> None:
        self.links.append(link)
        link.name = attach.name
        self.say(attach)

    def end(self) -> None:
        self.say(End())

    def flow(self, **fields: Any) -> None:
        """Say the session's state."""
        values: dict[str, Any] = {
            "next_incoming_id": self.next_incoming_id,
            "incoming_window": self.peer.incoming_window,
            "next_outgoing_id": self.next_outgoing_id,
            "outgoing_window": WINDOW,
        }
        self.say(Flow(**(values | fields)))

    def settle(
        self,
        first: int,
        last: int | None = None,
        state: DeliveryState | None = None,
        *,
        settled: bool = True,
        role: Role = Role.RECEIVER,
    ) -> None:
        self.say(Disposition(role=role, first=first, last=last, settled=settled, state=state))

    # -- what is heard on it

    def note(self, performative: Performative, payload: bytes) -> None:
        if isinstance(performative, Transfer):
            self.next_incoming_id += 1
            self._by_remote(performative.handle).on_transfer(performative, payload)
        elif isinstance(performative, Attach):
            self._on_attach(performative)
        elif isinstance(performative, Flow):
            self.window = performative.incoming_window
            if performative.handle is not None:
                self._by_remote(performative.handle).on_flow(performative)
        elif isinstance(performative, Disposition):
            self._on_disposition(performative)
        elif isinstance(performative, Detach):
            for link in self.links:
                if link.remote_handle == performative.handle:
                    link.detached = performative
        elif isinstance(performative, End):
            self.ended = performative

    def _on_attach(self, attach: Attach) -> None:
        for link in self.links:
            if link.name == attach.name:
                link.remote_handle = attach.handle
                link.attach = attach

    def _by_remote(self, handle: int) -> Publisher | Consumer:
        return next(each for each in reversed(self.links) if each.remote_handle == handle)

    def _on_disposition(self, disposition: Disposition) -> None:
        last = disposition.first if disposition.last is None else disposition.last
        for delivery_id in range(disposition.first, last + 1):
            for link in self.links:
                link.on_disposition(disposition, delivery_id)
