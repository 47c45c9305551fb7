"""One direction pair of links on a control connection: messages of one purpose, both ways.

What cannot be sent at once waits here, in order, and for one purpose alone: what another channel of
the same connection has waiting holds nothing up.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from cogwork.amqp.performatives import Role, SenderSettleMode
from cogwork.amqp.terminus import Source, Target
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.transport.incoming import IncomingLink
from cogwork.dataplane.transport.outgoing import OutgoingLink

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.performatives import Attach
    from cogwork.dataplane.core import Core
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.session import SessionEndpoint

__all__ = ("Channel",)

ACCEPTED = 0x24
"""The outcome's descriptor code (AMQP 1.0 §3.4.2)."""

WAITING_BYTES_MAX = 64 * 1024 * 1024
"""What may wait for a neighbour."""

_DATA_SECTION = b"\x00\x53\x75\xb0"
_HEAD_BYTES = len(_DATA_SECTION) + 4


class Channel:
    """Messages of one purpose between two neighbours.

    Attributes:
        address: Names the purpose in both targets.
        waiting_bytes: What waits to be sent.
    """

    def __init__(
        self,
        core: Core,
        address: str,
        window: int,
        on_message: Callable[[memoryview], None],
        on_fault: Callable[[Exception], None],
    ) -> None:
        """Start with no links yet.

        Args:
            core: The data plane.
            address: Names the purpose in both targets.
            window: Messages on their way at most.
            on_message: Takes what comes, uncopied: it may be large.
            on_fault: Takes what that raises: a fault of ours, for which nothing else is lost.
        """
        self.address = address
        self.waiting_bytes = 0
        self._window = window
        self._on_message = on_message
        self._on_fault = on_fault
        self._port = Port(core, self)
        self._entry = AddressEntry(core, address, CLOSEST_CODE, assembles=True)
        self._entry.add_outlet(self._port)
        self._end: OutgoingLink | None = None
        self._waiting: deque[bytes] = deque()

    @property
    def waiting(self) -> int:
        """Counts the messages that wait to be sent."""
        return len(self._waiting)

    def open(self, session: SessionEndpoint, sender: str) -> None:
        """Attach the link on which this side sends.

        Args:
            session: Of the control connection.
            sender: This container's id, for the link's name.
        """
        link = session.open_link(f"{self.address}/{sender}", Role.SENDER)
        self._end = OutgoingLink(session.end, link.handle, True)
        self._end.feeder = self._port
        link.carry(self._end)
        link.attach(
            source=Source(),
            target=Target(address=self.address),
            snd_settle_mode=SenderSettleMode.SETTLED,
        )

    def take(self, link: Link, attach: Attach) -> None:
        """Take the link on which the other side sends."""
        end = IncomingLink(link.session.end, link.handle, self._entry, None, self._window)
        link.attach(source=attach.source, target=Target(address=self.address))
        link.carry(end)
        self._entry.add_source(end)
        end.open_credit()

    def send(self, *parts: bytes) -> bool:
        """Send a message, given in parts, as soon as the other side takes it.

        Returns:
            False where it is dropped, as too much waits already.
        """
        size_bytes = sum(map(len, parts))
        message = (_DATA_SECTION, size_bytes.to_bytes(4, "big"), *parts)
        end = self._end
        if not self._waiting and end is not None and end.send_parts(self._port, 0, message, True):
            return True
        if self.waiting_bytes + size_bytes > WAITING_BYTES_MAX:
            return False
        self._waiting.append(b"".join(message))
        self.waiting_bytes += size_bytes
        return True

    def _send_waiting(self) -> None:
        while self._waiting and self._end is not None:
            if not self._end.send(self._port, 0, self._waiting[0], True):
                return
            self.waiting_bytes -= len(self._waiting.popleft()) - _HEAD_BYTES

    def on_batch(self, port: Port) -> None:
        """Take what has come, and send what had to wait."""
        arrivals, port.arrivals = port.arrivals, []
        port.outcomes.clear()
        port.woken.clear()
        self._send_waiting()
        for message, token, source, settled in arrivals:
            if not settled and source is not None:
                source.settle(token, ACCEPTED)
            try:
                self._on_message(memoryview(message)[_HEAD_BYTES:])
            except Exception as error:  # the others of the batch are still to come
                self._on_fault(error)

    def close(self) -> None:
        """The connection is over."""
        self._end = None
        self._port.close()
        self._entry.close()
