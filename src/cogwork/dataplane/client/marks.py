"""What is said of items before the application gets them: `received`, in ranges of delivery-ids."""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.cogwork.dataplane.transport.shipment import RECEIVED

__all__ = ("SOURCE_HASH", "Marks")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Marks:
    """Items of one link that are about to be handed over, and of which the owner is to be told."""

    def add(self, session, delivery_id):
        """Add an item; a range that it does not extend is written."""
        if self.due.open and delivery_id == self.due.last + 1:
            self.due.last = delivery_id
            return 0
        self.write(session)
        self.due.first = self.due.last = delivery_id
        self.due.code = RECEIVED
        self.due.settled = False
        self.due.open = True
        return 0

    def write(self, session):
        """Write what is left to be said."""
        return session.write_range(cython.address(self.due), True, cython.NULL, 0)
