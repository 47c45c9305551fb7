"""Messages that the container sends itself, and what becomes of them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cogwork.dataplane.addresses.port import Port

if TYPE_CHECKING:
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.core import Core
    from cogwork.plugin.management import OnOutcome

__all__ = ("ACCEPTED", "RECEIVED", "Outgoing")

ACCEPTED, RECEIVED = 0x24, 0x23
"""Descriptor codes of delivery states (AMQP 1.0 §3.4.1, §3.4.2)."""


log = logging.getLogger("cogwork")


class Outgoing:
    """Sends unsettled, and tells each message's outcome. Owned by the container."""

    def __init__(self, core: Core) -> None:
        """Open the port that messages are sent from.

        Args:
            core: The data plane.
        """
        self._port = Port(core, self)
        self._waiting: dict[int, OnOutcome] = {}
        self._count = 0

    def send(self, vhost: VirtualHost, address: str, message: bytes, on_outcome: OnOutcome) -> bool:
        """Send a message; False where the address leads nowhere.

        Args:
            vhost: Whose addresses are meant.
            address: Where to.
            message: Encoded.
            on_outcome: Called once, not before this returns.
        """
        self._count += 1
        name = address.removeprefix("/").encode()
        self._waiting[self._count] = on_outcome
        if vhost.space.send(self._port, self._count, name, message, False):
            return True
        del self._waiting[self._count]
        return False

    def on_batch(self, port: Port) -> None:
        """Tell the outcomes."""
        outcomes, port.outcomes = port.outcomes, []
        port.arrivals.clear()
        port.woken.clear()
        for token, code, _state, _settled in outcomes:
            if code == RECEIVED:
                continue
            on_outcome = self._waiting.pop(token, None)
            if on_outcome is None:
                continue
            try:
                on_outcome(accepted=code == ACCEPTED)
            except Exception:  # whatever it is, others wait for theirs
                log.exception("the handler of a message's outcome failed")
