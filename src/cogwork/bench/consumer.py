"""Receives deliveries on any number of links of one connection, checks and settles them.

Theory of operation. Each body starts with a sequence number (the producer's number in the top 16
bits) and the time it was sent. On each link a producer's numbers must rise: `missing` counts the
gaps, `repeated` what came twice or too late. Where several links share the work, gaps are theirs
by right; then the sum of scrambled numbers over all links, `digest`, is compared with the
producers' own. Credit is topped up below half of the window, and what arrived in one read is
accepted in ranges.
"""

import cython
from cython.cimports.cogwork.bench.frame import (
    find_stamp,
    mix,
    read_u64,
    write_accepted,
)
from cython.cimports.cogwork.bench.histogram import Histogram
from cython.cimports.cogwork.bench.layout import (
    COGWORK_SOURCE_HASH,
    Inlet,
    Transfer,
    octet,
)
from cython.cimports.cogwork.bench.wire import Wire, now_ns
from cython.cimports.libc.stdint import int32_t, uint32_t, uint64_t
from cython.cimports.libc.stdlib import calloc, free
from cython.cimports.libc.string import memset

SOURCE_HASH: str = COGWORK_SOURCE_HASH.decode()

_MAX_HANDLE = cython.declare(cython.Py_ssize_t, 1 << 20)
"""A peer that numbers its links higher than this is broken."""


class Consumer(Wire):
    """A connection with receiving links."""

    def __init__(
        self, peer: object, links: list, producers: int, credit: int, *, is_timed: bool = False
    ) -> None:
        """Prepare the links; their credit goes out with the first step.

        Args:
            peer: The connection beyond its handshake, a `Peer`.
            links: The receiving links, each a `Link`.
            producers: How many producers number their messages, from 0.
            credit: Each link's window.
            is_timed: Whether `latency` is kept.
        """
        super().__init__(peer)
        self.latency = Histogram()
        self._producers, self._credit, self._is_timed = producers, credit, is_timed
        self._handles_count = 1 + max(link.peer_handle for link in links)
        if self._handles_count > _MAX_HANDLE:
            raise ValueError(f"the peer uses handles up to {self._handles_count - 1}")
        self._allocate(len(links))
        index: cython.Py_ssize_t
        for index in range(self._inlets_count):
            link = links[index]
            self._by_handle[link.peer_handle] = cython.cast(int32_t, index)
            self._inlets[index].handle = link.handle
            self._inlets[index].delivery_count = link.delivery_count
            self._inlets[index].expected = self._expected + index * self._producers

    def _allocate(self, count: cython.Py_ssize_t) -> None:
        self._inlets_count = count
        self._inlets = cython.cast(cython.pointer(Inlet), calloc(count, cython.sizeof(Inlet)))
        self._by_handle = cython.cast(
            cython.pointer(int32_t), calloc(self._handles_count, cython.sizeof(int32_t))
        )
        self._expected = cython.cast(
            cython.pointer(uint64_t), calloc(count * self._producers, cython.sizeof(uint64_t))
        )
        if not self._inlets or not self._by_handle or not self._expected:
            raise MemoryError
        memset(self._by_handle, 0xFF, self._handles_count * cython.sizeof(int32_t))

    def __dealloc__(self) -> None:
        free(self._inlets)
        free(self._by_handle)
        free(self._expected)

    def aim(self, target: int) -> None:
        """End after `target` deliveries over all links; 0: never."""
        self.target = target

    def _is_over(self) -> cython.bint:
        return self.target > 0 and self.delivered >= self.target

    def _compose(self) -> cython.bint:
        """Grant the first credit, a buffer full at a time."""
        while self._granted < self._inlets_count and self._has_room():
            self._grant(cython.address(self._inlets[self._granted]))
            self._granted += 1
        return self._granted < self._inlets_count

    def _grant(self, inlet: cython.pointer(Inlet)) -> cython.void:
        """Restore the link's full window."""
        inlet.delivery_count += inlet.used
        inlet.used = 0
        self._send_flow(inlet.handle, inlet.delivery_count, self._credit)

    def _on_transfer(self, transfer: cython.pointer(Transfer)) -> cython.void:
        index: cython.Py_ssize_t = -1
        if transfer.handle < self._handles_count:
            index = self._by_handle[transfer.handle]
        if index < 0:
            self._fail(b"the peer sent a transfer on a link that does not receive")
            return
        inlet = cython.address(self._inlets[index])
        self.payload_bytes += transfer.payload_size
        if not inlet.is_partial:
            self._begin(inlet, transfer)
        inlet.is_settled |= transfer.settled
        inlet.is_partial = transfer.more and not transfer.aborted
        if transfer.aborted:
            self.aborted += 1
            inlet.used += 1
        elif not transfer.more:
            self._complete(inlet)

    def _begin(
        self, inlet: cython.pointer(Inlet), transfer: cython.pointer(Transfer)
    ) -> cython.void:
        """Take in a delivery's first frame, which holds the stamp."""
        stamp = find_stamp(transfer.payload, transfer.payload + transfer.payload_size)
        if transfer.delivery_id < 0:
            self._fail(b"the peer began a delivery without a delivery-id")
        elif stamp:
            inlet.delivery_id = cython.cast(uint32_t, transfer.delivery_id)
            inlet.is_settled = False
            self._check(inlet, stamp)
            self._on_delivery(transfer)
        elif not transfer.aborted:
            self._fail(b"a message arrived whose body is not one of this load generator")

    def _check(self, inlet: cython.pointer(Inlet), stamp: cython.pointer(octet)) -> cython.void:
        """Compare the sequence number with the one expected of its producer."""
        word: uint64_t = read_u64(stamp)
        producer: cython.Py_ssize_t = word >> 48
        number: uint64_t = word & ((cython.cast(uint64_t, 1) << 48) - 1)
        if producer >= self._producers:
            self._fail(b"a message arrived from a producer of another run")
            return
        expected: uint64_t = inlet.expected[producer]
        if number >= expected:
            self.missing += number - expected
            inlet.expected[producer] = number + 1
        else:
            self.repeated += 1
        self.digest += mix(word)
        if self._is_timed:
            self.latency.add(now_ns() - read_u64(stamp + 8))

    def _complete(self, inlet: cython.pointer(Inlet)) -> cython.void:
        if self.delivered == 0:
            self.first_ns = self.last_ns
        self.delivered += 1
        inlet.used += 1
        if not inlet.is_settled:
            self._settle(inlet.delivery_id)
        if inlet.used * 2 >= self._credit:
            self._grant(inlet)

    def _settle(self, delivery_id: uint32_t) -> cython.void:
        """Add a delivery to the range to be accepted, which must not skip any."""
        if self._has_range and delivery_id == self._range_last + 1:
            self._range_last = delivery_id
            return
        self._settle_range()
        self._has_range = True
        self._range_first = self._range_last = delivery_id

    def _settle_range(self) -> cython.void:
        if self._has_range:
            self._control_end += write_accepted(
                self._control + self._control_end,
                self._channel,
                self._range_first,
                self._range_last,
            )
            self._has_range = False

    def _after_batch(self) -> cython.void:
        self._settle_range()

    def _on_delivery(self, transfer: cython.pointer(Transfer)) -> cython.void:
        """Take a delivery's first frame in, checked; the replying role answers it."""
