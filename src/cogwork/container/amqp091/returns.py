"""Bounds what a connection has returned and its client has not read (`max_returned_messages`).

Theory of operation. A return is written behind all that was written before, so what is known of the
output tells which of them have left: a return has, once so many octets have been sent as had been
written with it. Only a client that does not read has returns that wait.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cogwork.dataplane.amqp091.wire import BasicWire

__all__ = ("Returns",)

log = logging.getLogger("cogwork")


class Returns:
    """Those of one connection.

    Attributes:
        dropped: Messages that were not returned, for too many waited.
    """

    def __init__(self, wire: BasicWire, count_max: int) -> None:
        """Have none.

        Args:
            wire: The connection's octets.
            count_max: How many may wait until the client reads them.
        """
        self.dropped = 0
        self._wire = wire
        self._count_max = count_max
        self._positions: deque[int] = deque()

    def admit(self) -> bool:
        """Return whether one more message may be returned; tell of the first that may not."""
        waiting, sent = self._positions, self._wire.bytes_out
        while waiting and waiting[0] <= sent:
            waiting.popleft()
        if len(waiting) < self._count_max or not self._wire.blocked:
            return True
        self.dropped += 1
        if self.dropped == 1:
            log.warning(
                "a client of AMQP 0-9-1 does not read %d returned messages; more are dropped",
                len(waiting),
            )
        return False

    def note(self) -> None:
        """Take note that a message was returned."""
        self._positions.append(self._wire.bytes_out + self._wire.unsent_bytes)
