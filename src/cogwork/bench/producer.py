"""Sends deliveries as fast as credit and window allow, from a block encoded beforehand.

Theory of operation. A block holds as many images of one delivery as fit into BLOCK_SIZE, at least
one. Composing patches delivery-id, tag, sequence number and time into the next images and lets
the send reach that far; it never passes the link's credit or the peer's session window, and may
stop between two frames of a delivery. Once everything was sent at a delivery's end, it starts
again at the block's first image, which is then still in the cache.
"""

import cython
from cython.cimports.cogwork.bench.frame import mix, write_u32, write_u64
from cython.cimports.cogwork.bench.layout import (
    BLOCK_SIZE,
    CODE_ACCEPTED,
    CODE_MODIFIED,
    CODE_REJECTED,
    CODE_RELEASED,
    COGWORK_SOURCE_HASH,
    MAX_DIGITS,
    Digits,
    Disposition,
    Flow,
    octet,
)
from cython.cimports.cogwork.bench.wire import Wire, now_ns
from cython.cimports.libc.stdint import int32_t, uint32_t, uint64_t
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memcpy

SOURCE_HASH: str = COGWORK_SOURCE_HASH.decode()


class Producer(Wire):
    """A connection with one sending link."""

    def __init__(self, peer: object, link: object, image: object, number: int) -> None:
        """Prepare the block.

        Args:
            peer: The connection beyond its handshake, a `Peer`.
            link: The sending link, a `Link`.
            image: One delivery, an `Image`.
            number: This producer's number, the top 16 bits of its sequence numbers.
        """
        super().__init__(peer)
        self._handle, self._peer_handle = link.handle, link.peer_handle
        self._presettled = image.settled
        self._number = cython.cast(uint64_t, number) << 48
        self._id_at, self._tag_at = image.id_at, image.tag_at
        self._stamp_at, self._correlation_at = image.stamp_at, image.correlation_at
        self._take_frames(image.octets, image.frame_sizes)
        self._take_digits(image.digits)

    def __dealloc__(self) -> None:
        free(self._block)
        free(self._frame_sizes)

    def _take_frames(self, octets: bytes, frame_sizes: tuple) -> None:
        self._image_size, self._frames = len(octets), len(frame_sizes)
        self._images = max(1, BLOCK_SIZE // self._image_size)
        self._block = cython.cast(cython.pointer(octet), malloc(self._images * self._image_size))
        self._frame_sizes = cython.cast(
            cython.pointer(cython.Py_ssize_t),
            malloc(self._frames * cython.sizeof(cython.Py_ssize_t)),
        )
        if not self._block or not self._frame_sizes:
            raise MemoryError
        self._bulk = self._block
        source: cython.pointer(octet) = octets
        index: cython.Py_ssize_t
        for index in range(self._images):
            memcpy(self._block + index * self._image_size, source, self._image_size)
        for index in range(self._frames):
            self._frame_sizes[index] = frame_sizes[index]

    def _take_digits(self, digits: tuple) -> None:
        if len(digits) > MAX_DIGITS:
            raise ValueError(f"{len(digits)} counters in an address, at most {MAX_DIGITS}")
        self._digits_count = len(digits)
        for index, (at, modulus, stride, carry) in enumerate(digits):
            self._digits[index].at = at
            self._digits[index].modulus = modulus
            self._digits[index].stride = stride
            self._digits[index].carry = carry

    @property
    def resolved(self) -> int:
        """Deliveries whose outcome is known."""
        return self.accepted + self.released + self.rejected + self.modified

    def aim(self, target: int) -> None:
        """End after `target` deliveries, or as soon as possible where more were begun."""
        self.target = max(target, self.sent + (1 if self._frame else 0), 1)

    def _is_over(self) -> cython.bint:
        if self.target == 0 or self.sent < self.target:
            return False
        known: uint64_t = self.accepted + self.released + self.rejected + self.modified
        return self._presettled or known >= self.sent

    def _allowance(self) -> uint64_t:
        """Return how many deliveries may begin now."""
        if self._credit <= 0:
            return 0
        if self.target == 0:
            return self._credit
        return min(cython.cast(uint64_t, self._credit), self.target - self.sent)

    def _compose(self) -> cython.bint:
        allowance: uint64_t
        stamp_ns: uint64_t
        if self._frame == 0:
            self._image = self._bulk_start = self._bulk_end = 0
        elif not self._emit():
            return False
        allowance = self._allowance()
        if allowance == 0:
            return False
        stamp_ns = now_ns()
        if self.sent == 0:
            self.first_ns = stamp_ns
        while allowance > 0 and self._image < self._images:
            if self._window <= 0:
                return False
            self._patch(stamp_ns)
            allowance -= 1
            if not self._emit():
                return False
        return allowance > 0

    def _emit(self) -> cython.bint:
        """Let the send reach over the current delivery's frames; return whether all had room."""
        while self._window > 0:
            self._bulk_end += self._frame_sizes[self._frame]
            self._window -= 1
            self._next_outgoing_id += 1
            self._frame += 1
            if self._frame == self._frames:
                self._frame = 0
                self._image += 1
                self.sent += 1
                return True
        return False

    def _patch(self, stamp_ns: uint64_t) -> cython.void:
        """Make the current image the next delivery, which takes its credit."""
        at: cython.pointer(octet) = self._block + self._image * self._image_size
        word: uint64_t = self._number + self.sent
        write_u32(at + self._id_at, self._delivery_count)
        write_u32(at + self._tag_at, self._delivery_count)
        write_u64(at + self._stamp_at, word)
        write_u64(at + self._stamp_at + 8, stamp_ns)
        if self._correlation_at >= 0:
            write_u64(at + self._correlation_at, word)
        if self._digits_count > 0:
            self._patch_digits(at)
        self.digest += mix(word)
        self._delivery_count += 1
        self._credit -= 1

    def _patch_digits(self, at: cython.pointer(octet)) -> cython.void:
        """Write the address's counters, four decimal digits each."""
        digits: cython.pointer(Digits)
        value: uint64_t
        index: cython.Py_ssize_t
        place: cython.int
        for index in range(self._digits_count):
            digits = cython.address(self._digits[index])
            value = (self.sent * digits.stride + self.sent // digits.carry) % digits.modulus
            for place in range(4):
                at[digits.at + 3 - place] = 48 + cython.cast(cython.int, value % 10)
                value //= 10

    def _on_flow(self, flow: cython.pointer(Flow)) -> cython.void:
        """Take new credit (AMQP 1.0 §2.6.7); an absent delivery-count means our first, 0."""
        seen: uint32_t = 0
        ahead: int32_t
        if flow.handle == self._peer_handle:
            if flow.delivery_count >= 0:
                seen = cython.cast(uint32_t, flow.delivery_count)
            ahead = cython.cast(int32_t, seen - self._delivery_count)
            self._credit = max(flow.link_credit, 0) + ahead
        if flow.echo:
            self._send_flow(self._handle, self._delivery_count, max(self._credit, 0))

    def _on_disposition(self, disposition: cython.pointer(Disposition)) -> cython.void:
        """Count outcomes; what the receiver has not settled is not final."""
        count: uint32_t = cython.cast(uint32_t, disposition.last - disposition.first + 1)
        if not disposition.receiver or not disposition.settled:
            return
        if disposition.outcome == CODE_ACCEPTED:
            self.accepted += count
        elif disposition.outcome == CODE_RELEASED:
            self.released += count
        elif disposition.outcome == CODE_MODIFIED:
            self.modified += count
        elif disposition.outcome == CODE_REJECTED:
            self.rejected += count
        else:
            self._fail(b"the peer settled deliveries without an outcome")
