"""Request/reply: one end keeps a number of requests under way, the other answers each.

A request carries reply-to and a correlation-id in its properties; the reply carries the first as
`to`, the second as correlation-id, and the request's body. So the requester reads its own time
stamp from the reply.
"""

import cython
from cython.cimports.cogwork.bench.consumer import Consumer
from cython.cimports.cogwork.bench.frame import (
    find_section,
    find_stamp,
    mix,
    read_list,
    read_u32,
    read_u64,
    value_size,
    write_accepted,
    write_u32,
)
from cython.cimports.cogwork.bench.histogram import Histogram
from cython.cimports.cogwork.bench.layout import (
    BLOCK_SIZE,
    COGWORK_SOURCE_HASH,
    REPLY_ROOM,
    SECTION_PROPERTIES,
    Fields,
    Flow,
    Transfer,
    octet,
)
from cython.cimports.cogwork.bench.producer import Producer
from cython.cimports.cogwork.bench.wire import now_ns
from cython.cimports.libc.stdint import int32_t, uint32_t, uint64_t
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memcpy, memmove

SOURCE_HASH: str = COGWORK_SOURCE_HASH.decode()


class Requester(Producer):
    """Sends requests and receives their replies; `target` counts replies."""

    def __init__(  # noqa: PLR0917 -- the producer's arguments and three more
        self, peer: object, link: object, image: object, number: int, replies: object, depth: int
    ) -> None:
        """Prepare both links.

        Args:
            peer: See `Producer`.
            link: See `Producer`.
            image: One request, whose reply-to is the address of `replies`.
            number: See `Producer`.
            replies: The receiving link, a `Link`.
            depth: Requests under way at most.
        """
        super().__init__(peer, link, image, number)
        self.latency = Histogram()
        self._depth = depth
        self._reply_handle, self._peer_reply_handle = replies.handle, replies.peer_handle
        self._reply_count = replies.delivery_count
        self._reply_credit = 4 * depth
        self._grant_replies()

    def _grant_replies(self) -> cython.void:
        self._reply_count += self._used
        self._used = 0
        self._send_flow(self._reply_handle, self._reply_count, self._reply_credit)

    def _is_over(self) -> cython.bint:
        return self.target > 0 and self.answered >= self.target

    def _allowance(self) -> uint64_t:
        allowance: uint64_t = Producer._allowance(self)
        return min(allowance, self._depth - (self.sent - self.answered))

    def _on_transfer(self, transfer: cython.pointer(Transfer)) -> cython.void:
        stamp = find_stamp(transfer.payload, transfer.payload + transfer.payload_size)
        if transfer.handle != self._peer_reply_handle or not stamp or transfer.more:
            self._fail(b"the reply is not one frame with the request's body")
            return
        self.answered += 1
        self.reply_digest += mix(read_u64(stamp))
        self.latency.add(now_ns() - read_u64(stamp + 8))
        if not transfer.settled:
            delivery_id: uint32_t = cython.cast(uint32_t, transfer.delivery_id)
            self._control_end += write_accepted(
                self._control + self._control_end, self._channel, delivery_id, delivery_id
            )
        self._used += 1
        if self._used * 2 >= self._reply_credit:
            self._grant_replies()


class Replier(Consumer):
    """Answers each request on one sending link, within its credit."""

    def __init__(
        self, peer: object, link: object, image: object, replies: object, credit: int
    ) -> None:
        """Prepare both links.

        Args:
            peer: See `Consumer`.
            link: The link on which requests arrive, a `Link`.
            image: The head of a reply's frame, an `Image`: all that stands before its properties.
            replies: The sending link, a `Link`.
            credit: The window for requests.
        """
        super().__init__(peer, [link], 1 << 8, credit)
        self._held = cython.cast(cython.pointer(octet), malloc(BLOCK_SIZE))
        if not self._held:
            raise MemoryError
        self._bulk = self._held
        self._head_octets = image.octets
        self._head = self._head_octets
        self._head_size = len(image.octets)
        self._id_at, self._tag_at = image.id_at, image.tag_at
        self._reply_handle, self._peer_reply_handle = replies.handle, replies.peer_handle

    def __dealloc__(self) -> None:
        free(self._held)

    def _on_flow(self, flow: cython.pointer(Flow)) -> cython.void:
        seen: uint32_t = 0
        if flow.handle == self._peer_reply_handle:
            if flow.delivery_count >= 0:
                seen = cython.cast(uint32_t, flow.delivery_count)
            sent: uint32_t = cython.cast(uint32_t, self.replied)
            self._reply_credit = max(flow.link_credit, 0) + cython.cast(int32_t, seen - sent)
        if flow.echo:
            self._send_flow(self._reply_handle, self.replied, max(self._reply_credit, 0))

    def _compose(self) -> cython.bint:
        """Let the send reach over the held replies that credit and window allow."""
        left: cython.Py_ssize_t = self._held_end - self._bulk_end
        Consumer._compose(self)
        memmove(self._held, self._held + self._bulk_end, left)
        self._bulk_start = self._bulk_end = 0
        self._held_end = left
        while self._bulk_end < self._held_end and self._reply_credit > 0 and self._window > 0:
            self._bulk_end += read_u32(self._held + self._bulk_end)
            self._reply_credit -= 1
            self._window -= 1
            self._next_outgoing_id += 1
            self.replied += 1
        return False

    def _on_delivery(self, transfer: cython.pointer(Transfer)) -> cython.void:
        """Add the reply to those held."""
        fields = cython.declare(Fields)
        end: cython.pointer(octet) = transfer.payload + transfer.payload_size
        properties = find_section(transfer.payload, end, SECTION_PROPERTIES)
        if BLOCK_SIZE - self._held_end < self._head_size + 2 * transfer.payload_size + REPLY_ROOM:
            self._fail(b"the peer takes no replies while requests go on arriving")
            return
        if not properties or read_list(properties, end, cython.address(fields)) < 0:
            self._fail(b"a request arrived without properties")
            return
        start: cython.pointer(octet) = self._held + self._held_end
        memcpy(start, self._head, self._head_size)
        write_u32(start + self._id_at, self._reply_count)
        write_u32(start + self._tag_at, self._reply_count)
        at = self._put_properties(start + self._head_size, cython.address(fields))
        if not at:
            return
        memcpy(at, fields.end, end - fields.end)
        at += end - fields.end
        write_u32(start, cython.cast(uint32_t, at - start))
        self._held_end += at - start
        self._reply_count += 1

    def _put_properties(
        self, at: cython.pointer(octet), request: cython.pointer(Fields)
    ) -> cython.pointer(octet):
        """Write properties with `to` and correlation-id (AMQP 1.0 §3.2.4); return their end."""
        to_size: cython.Py_ssize_t
        id_size: cython.Py_ssize_t
        if request.count < 6:
            self._fail(b"a request arrived without reply-to and correlation-id")
            return cython.NULL
        to_size = value_size(request.at[4], request.end)
        id_size = value_size(request.at[5], request.end)
        memcpy(at, b"\x00\x53\x73\xd0", 4)
        write_u32(at + 4, cython.cast(uint32_t, 4 + 4 + to_size + id_size))
        write_u32(at + 8, 6)
        at[12] = at[13] = 0x40
        memcpy(at + 14, request.at[4], to_size)
        at += 14 + to_size
        at[0] = at[1] = 0x40
        memcpy(at + 2, request.at[5], id_size)
        return at + 2 + id_size
