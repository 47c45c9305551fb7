"""Messages of exchanges on their way to the private queues of other containers.

Theory of operation. A private queue is known at its own container alone; others have bindings that
lead to the container. What matches one is put into a wrapping and goes there once, by the one link
that there is for all exchanges. The wrapping says where the message is to be looked up: at which
exchanges, and by which keys where the message does not say these itself. Over there the message is
taken out as it was, and goes to private queues alone: it never comes back, nor goes on.

A publisher that waits hears of a copy as of any queue's. While there is no way to a container its
copies are in doubt at once, so no confirm waits for it; once it was given up nobody is there.

A wrapping has the message's own format (4 octets), the route and the keys, each behind its size
(4 octets), and the message. What route and keys say is the routers' (`router.exchanges.forwards`).
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import (
    bytes_from,
    load_u32,
    octets_of,
    store_u32,
)
from cython.cimports.cogwork.dataplane.transport.shipment import (
    LOST,
    REJECTED,
    RELEASED,
    Shipment,
    Verdict,
    fill_verdict,
)
from cython.cimports.libc.stdint import uint8_t
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memcpy

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

FORWARD_MESSAGE_FORMAT = FORWARD_FORMAT
"""The message-format of wrapped messages, as Python names it."""

OVERHEAD = cython.declare(uint32_t, 12)
"""Octets of a wrapping besides route, keys and message."""

SMALL_BYTES = cython.declare(uint32_t, 2048)
"""A wrapping of no more is put together on the stack."""

KNOWN_MAX = cython.declare(cython.Py_ssize_t, 4096)
"""Routes that are remembered; one more, and all are forgotten."""


class ForwardOutlet(Terminus):
    """Stands for a container among the queues that an exchange's messages go to.

    Attributes:
        way: The address of the container, whose outlet is the link.
        route: Where messages are to be looked up there.
    """

    def __init__(self, core: Core, way: AddressEntry, route: bytes, changes: Changes):
        """Take messages from now on.

        Args:
            core: The core it belongs to.
            way: The address of the container.
            route: Where messages are to be looked up there.
            changes: Says the keys of a message that does not say them itself.
        """
        self.core = core
        self.way = way
        self.route = route
        self.changes = changes
        core.register(self)

    def take(self, s):
        small: uint8_t[2048]
        wrapping: cython.pointer(uint8_t) = small
        p: cython.pointer(uint8_t)
        keys: bytes = self.changes.keys
        route_size: uint32_t = cython.cast(uint32_t, len(self.route))
        keys_size: uint32_t = 0 if keys is None else cython.cast(uint32_t, len(keys))
        size: uint32_t = OVERHEAD + route_size + keys_size + s.size
        shipment: Shipment = s[0]
        if size > SMALL_BYTES:
            wrapping = cython.cast(cython.pointer(uint8_t), malloc(size))
            if wrapping == cython.NULL:
                raise MemoryError("no room for a message")
        try:
            store_u32(wrapping, s.format)
            store_u32(wrapping + 4, route_size)
            p = wrapping + 8
            memcpy(p, octets_of(self.route), route_size)
            p += route_size
            store_u32(p, keys_size)
            p += 4
            if keys_size:
                memcpy(p, octets_of(keys), keys_size)
                p += keys_size
            memcpy(p, s.data, s.size)
            shipment.data = wrapping
            shipment.size = size
            shipment.format = FORWARD_FORMAT
            if shipment.source_index == self.core.fanouts.index:
                # A copy that may not have got through leaves the publisher in doubt.
                shipment.source_index = self.core.branches.index
                shipment.source_generation = self.core.branches.generation
            return self.way.route(cython.address(shipment))
        finally:
            if wrapping != small:
                free(wrapping)

    def close(self) -> None:
        """Take it out of use."""
        self.core.unregister(self)


class LostWay(Terminus):
    """Stands for the link to a container while there is none.

    Attributes:
        is_given_up: Whether nobody is there any more; else publishers are left in doubt.
        dropped: Copies that came here.
    """

    def __init__(self, core: Core):
        self.core = core
        core.register(self)

    def take(self, s):
        verdict: Verdict
        self.dropped += 1
        if not s.settled:
            fill_verdict(cython.address(verdict), RELEASED if self.is_given_up else LOST, None)
            self.core.answer(s.source_index, s.source_generation, s.token, cython.address(verdict))
        return 0

    def close(self) -> None:
        """Take it out of use."""
        self.core.unregister(self)


class ForwardInlet(Terminus):
    """Takes the wrapped messages that other containers send, and gives the messages to private queues."""

    def __init__(self, core: Core, find):
        """Take wrapped messages from now on.

        Args:
            core: The core it belongs to.
            find: Called with a route and keys; returns the `ExchangeInlet` that takes messages which
                are to be looked up so, or None where they cannot be understood.
        """
        self.core = core
        self.find = find
        self.known = {}
        core.register(self)

    def take(self, s):
        wrapping: ForwardParts
        inlet: ExchangeInlet
        head: bytes
        shipment: Shipment = s[0]
        if s.format != FORWARD_FORMAT or not read_wrapping(
            s.data, s.size, cython.address(wrapping)
        ):
            return self._refuse(s.source_index, s.source_generation, s.token, s.settled)
        head = bytes_from(s.data + 4, s.size - 4 - wrapping.message_size)
        inlet = self.known.get(head)
        if inlet is None:
            inlet = self.find(
                bytes_from(wrapping.route, wrapping.route_size),
                bytes_from(wrapping.keys, wrapping.keys_size),
            )
            if inlet is None:
                return self._refuse(s.source_index, s.source_generation, s.token, s.settled)
            if len(self.known) >= KNOWN_MAX:
                self.known.clear()
            self.known[head] = inlet
        shipment.data = wrapping.message
        shipment.size = wrapping.message_size
        shipment.format = wrapping.format
        return inlet.take(cython.address(shipment))

    def _refuse(self, source_index, source_generation, token, settled):
        verdict: Verdict
        if not settled:
            fill_verdict(cython.address(verdict), REJECTED, None)
            self.core.answer(source_index, source_generation, token, cython.address(verdict))
        return 0

    def close(self) -> None:
        """Take it out of use."""
        self.known.clear()
        self.core.unregister(self)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def read_wrapping(p: octets, size: uint32_t, wrapping: cython.pointer(ForwardParts)) -> cython.bint:
    """Find the parts of a wrapping; return whether they are all there."""
    at: uint32_t = 8
    if size < OVERHEAD:
        return False
    wrapping.format = load_u32(p)
    wrapping.route_size = load_u32(p + 4)
    if wrapping.route_size > size - OVERHEAD:
        return False
    wrapping.route = p + at
    at += wrapping.route_size
    wrapping.keys_size = load_u32(p + at)
    at += 4
    if wrapping.keys_size > size - at:
        return False
    wrapping.keys = p + at
    at += wrapping.keys_size
    wrapping.message = p + at
    wrapping.message_size = size - at
    return True
