"""The addresses of one virtual host."""

import cython
from cython.cimports.cogwork.dataplane.terminus import ship_from

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class AddressSpace:
    """Entries by their addresses; the router makes those that are missing.

    Attributes:
        topic_root: Takes the messages below `topic_prefix` whose senders name no target.
        meaning: Called with an address and whether its message says that it is a topic, or else a
            queue; returns the address that is meant. None heeds nothing of that.
        asker: While the resolver is called for a link's message, that link; else None.
        topic_exceptions: First words of subjects for which other rules may hold; None for none, an
            empty word for any.
    """

    def __init__(self, core: Core, resolver):
        """Make a space.

        Args:
            core: The core whose entries it holds.
            resolver: Called with an address that is not known, or that nobody has sent to in this
                way before; returns its entry, or None.
        """
        self.core = core
        self.resolver = resolver
        self.entries = {}

    def find(self, address):
        entry: AddressEntry = self.known(address)
        return self.resolver(address) if entry is None else entry

    def resolve_for(self, address, asker):
        """Find the entry of an address that is not known, for a message that a link has taken."""
        self.asker = asker
        try:
            return self.resolver(address)
        finally:
            self.asker = None

    def send(self, port, token: int, address: bytes, data: bytes, settled: bool) -> bool:
        """Send a message from within the process to an address; False where that is not known."""
        s: Shipment
        entry: AddressEntry = self.find(address)
        if entry is None:
            return False
        ship_from(cython.address(s), port, token, data, settled)
        entry.route(cython.address(s))
        return True
