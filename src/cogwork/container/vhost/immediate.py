"""Messages that are delivered at once, or not at all (`immediate`, AMQP 0-9-1 §1.8.3.3).

Theory of operation. Such a message goes to those of its queues that have a consumer with room for
it and nothing that waits before it; where none has, nobody takes it. For private queues elsewhere
their own container decides, as the message says there what it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.addresses.exchange import Changes, ExchangeInlet, Routes
from cogwork.plugin.message_finder import MessageFinder

if TYPE_CHECKING:
    from cogwork.container.vhost.exchanges import Exchanges
    from cogwork.dataplane.core import Core
    from cogwork.plugin.message_finder import Found
    from cogwork.router.exchanges.binding import Routed

__all__ = ("ImmediateEntries",)


class ImmediateEntries:
    """Where such messages come in, exchange by exchange."""

    def __init__(self, core: Core, exchanges: Exchanges) -> None:
        """Make none yet."""
        self._core = core
        self._exchanges = exchanges
        self._entries: dict[str, AddressEntry] = {}

    def entry(self, exchange: str) -> AddressEntry:
        """Return where such messages for an exchange come in.

        Raises:
            ExchangeError: There is none, or it is internal.
        """
        address = self._exchanges.entry(exchange).name
        entry = self._entries.get(exchange)
        if entry is None:
            finder = _Finder(self._exchanges, exchange)
            inlet = ExchangeInlet(self._core, Routes(finder.changes, finder))
            entry = self._entries[exchange] = AddressEntry(self._core, address, CLOSEST_CODE)
            entry.add_outlet(inlet)
        return entry


class _Finder(MessageFinder):
    """Says where such messages for one exchange go, now."""

    def __init__(self, exchanges: Exchanges, name: str) -> None:
        self.changes = Changes()
        self._exchanges = exchanges
        self._name = name

    def entries(self, routed: Routed) -> Found:
        """Return where a message goes; for the next one that may be elsewhere."""
        route = self._exchanges.route(self._name, routed)
        found = [self._exchanges.find_immediate(queue) for queue in route.queues]
        for each in route.forwards:
            there = each.route._replace(is_immediate=True)
            found.append(self._exchanges.find_forward(each._replace(route=there), self.changes))
        return [entry for entry in found if entry is not None], False

    def resolve(self, _destination: object, /) -> AddressEntry | None:
        """Never happens: no pattern is matched without Python here."""
