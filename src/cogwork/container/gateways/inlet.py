"""A gateway's receiving link: what comes from one address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError
from cogwork.amqp.extensions import CONSUMER_LOST, EXCLUSIVE
from cogwork.amqp.performatives import Role, SenderSettleMode
from cogwork.amqp.terminus import Source, Target
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.transport.incoming import IncomingLink
from cogwork.plugin.door import Arrival, Code

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.dataplane.core import Core
    from cogwork.dataplane.link import Link
    from cogwork.plugin.door import Receiver

__all__ = ("LEFT", "DoorInlet")

LEFT = AmqpError(condition=CONSUMER_LOST, description="a gateway's client has gone")
"""Why a gateway detaches: it cannot tell what its client has handled."""


class DoorInlet:
    """Receives from one address until it is closed, or the container detaches it.

    Attributes:
        role: Of this end.
        is_closed: Whether nothing comes any more.
    """

    role = Role.RECEIVER

    def __init__(
        self,
        core: Core,
        address: str | None,
        receiver: Receiver,
        credit: int,
        on_end: Callable[[DoorInlet], None],
        *,
        is_exclusive: bool = False,
    ) -> None:
        """Start with no link yet.

        Args:
            core: Of the door.
            address: Where it receives from; None for a new address.
            receiver: Gets what comes.
            credit: How many messages may come at first.
            on_end: Called when nothing comes any more.
            is_exclusive: Whether nobody else is to receive there.
        """
        self._is_exclusive = is_exclusive
        self.is_closed = False
        self._address = address
        self._receiver = receiver
        self._on_end = on_end
        self._credit = credit
        self._entry = AddressEntry(core, address or "", CLOSEST_CODE)
        self._port = Port(core, self)
        self._entry.add_outlet(self._port)
        self._link: Link | None = None
        self._end: IncomingLink | None = None

    # -- what the door does with it

    def open(self, link: Link) -> None:
        """Attach."""
        self._link = link
        link.context = self
        self._end = IncomingLink(link.session.end, link.handle, self._entry)
        link.attach(
            source=Source(
                address=self._address,
                dynamic=self._address is None,
                capabilities=(EXCLUSIVE,) if self._is_exclusive else (),
            ),
            target=Target(),
            snd_settle_mode=SenderSettleMode.MIXED,
        )
        link.carry(self._end)

    def attached(self, link: Link) -> None:
        """The container agreed, or is about to say why it does not."""
        assert link.remote is not None
        if link.remote.source is None or self.is_closed:
            return
        self._receiver.on_attached(link.remote.source.address or "")
        if self._end is not None:
            self._end.grant(self._credit)

    def detached(self, reason: str) -> None:
        """The link has gone."""
        if not self.is_closed:
            self._give_up()
            self._receiver.on_closed(reason)

    def on_batch(self, port: Port) -> None:
        """Hand over what came."""
        arrivals, port.arrivals = port.arrivals, []
        port.outcomes.clear()
        port.woken.clear()
        if arrivals and not self.is_closed:
            self._receiver.on_arrivals(
                [Arrival(message, token, settled) for message, token, _, settled in arrivals]
            )

    # -- what the gateway does with it

    def grant(self, credit: int) -> None:
        """Set how many more messages may come."""
        self._credit = credit
        if self._end is not None and self._link is not None and self._link.remote is not None:
            self._end.grant(credit)

    def settle(self, token: int, code: Code) -> None:
        """Say what became of a message."""
        if self._end is not None and not self._end.detached:
            self._end.settle(token, code)

    def close(self) -> None:
        """Detach; what was handed over and is not settled may be with somebody."""
        if self.is_closed:
            return
        link = self._link
        self._give_up()
        if link is not None and link.is_attached and not link.session.is_over:
            link.detach(LEFT)

    def _give_up(self) -> None:
        self.is_closed = True
        self._on_end(self)
        self._entry.remove_outlet(self._port)
        self._entry.close()
        if self._port.open:
            self._port.close()
