"""What is to be said of items that the application has: `received`, in ranges of delivery-ids."""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import octets_of
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.cogwork.dataplane.transport.shipment import RECEIVED
from cython.cimports.cpython.bytes import PyBytes_GET_SIZE
from cython.cimports.libc.stdint import uint32_t

__all__ = ("SOURCE_HASH", "Marks")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

RECEIVED_STATE = cython.declare(bytes, b"\x00\x53\x23\xc0\x03\x02\x43\x44")
"""`received` with section 0, offset 0: what counts is that it was handed on."""


class Marks:
    """The items of one link that were handed over, and of which the owner was not told yet."""

    def begin(self, session, delivery_id):
        """Begins a range with an item; one that is due is written."""
        self.write(session)
        self.due.first = self.due.last = delivery_id
        self.due.code = RECEIVED
        self.due.settled = False
        self.due.open = True
        return 0

    def spare(self, session, delivery_id):
        """Keeps `received` from being said after the outcome."""
        if delivery_id != self.due.last:
            return self.write(session)
        if self.due.first == self.due.last:
            self.due.open = False
        else:
            self.due.last -= 1
        return 0

    def write(self, session):
        """Tells the owner; `session` is None where there is no link."""
        if self.due.open and session is not None:
            session.write_range(
                cython.address(self.due),
                True,
                octets_of(RECEIVED_STATE),
                cython.cast(uint32_t, PyBytes_GET_SIZE(RECEIVED_STATE)),
            )
        self.due.open = False
        return 0

    def forget(self):
        """Leaves unsaid what is due: the link has ended."""
        self.due.open = False
