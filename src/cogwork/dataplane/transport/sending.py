"""How transfers are written: within the peer's credit and window, from a prepared header."""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import (
    octets_of,
    store_u32,
    store_uint,
)
from cython.cimports.cogwork.dataplane.message.translation import as_amqp
from cython.cimports.cogwork.dataplane.system import clock_s
from cython.cimports.cogwork.dataplane.terminus import Terminus, ship_from
from cython.cimports.cogwork.dataplane.transport.frames import (
    end_performative,
    put_bool,
    put_performative,
)
from cython.cimports.cogwork.dataplane.transport.shipment import fill_shipment
from cython.cimports.libc.string import memcpy, memset

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class SendingEnd(ConsumerEnd):
    """The end of a link on which this side sends, without what must wait there."""

    def hold_output(self):
        self.session.wire.hold()
        return True

    def can_start(self):
        """Return whether credit, window and output allow a delivery now; else the link is woken for it."""
        wire: Wire = self.session.wire
        if self.credit == 0 or self.detached:
            return False
        if wire.congested or self.session.remote_window <= 0:
            if not self.stalled:
                self._stall()
            return False
        return not wire.closed

    def may_go_on(self):
        """Return whether a further transfer may be written now; else the link is woken for it."""
        if self.session.wire.congested or self.session.remote_window <= 0:
            if not self.stalled:
                self._stall()
            return False
        return True

    def _stall(self):
        """Have `relieve` called when the wire or the session takes more."""
        self.stalled = True
        self.session.wire.stalled.append(self)

    def refuses(self, s):
        if self.no_local and s.origin == self.session.wire.origin:
            return True
        if self.selector is None:
            return False
        start_s: cython.double = clock_s()
        try:
            return not self.selector(as_amqp(s.data, s.size, s.format))
        except Exception as error:
            # A consumer's selector must not harm whoever publishes.
            self.core.tell_fault(self, error)
            return True
        finally:
            self.core.note_scan(clock_s() - start_s)

    def run_limit(self, count):
        """Return how many of `count` deliveries the peer's credit and window allow."""
        count = min(count, self.credit)
        if count > self.session.remote_window:
            count = cython.cast(uint32_t, self.session.remote_window)
        return count

    def make_template(self):
        """Prepare a single-frame transfer's header with a four-octet tag.

        What changes from one delivery to the next stands at fixed places from its end: the
        delivery-id 12 octets before it, the tag 6, `settled` 1.
        """
        p: cython.pointer(uint8_t) = put_performative(
            self.template, self.session.local_channel, 0x14, 5
        )
        p = store_uint(p, self.handle)
        p[0] = 0x70
        p[5] = 0xA0
        p[6] = 4
        p[11] = 0x43
        p[12] = 0x41
        p += 13
        self.template_size = end_performative(self.template, p, 0)
        return 0

    def write_run(self, s, pieces, count, size_bytes):
        """Write single-frame deliveries of one source; the caller has checked room for them.

        `size_bytes` is that of all payloads together.
        """
        session: Session = self.session
        wire: Wire = session.wire
        # A copy here can be no part of what is written, so that its bytes stay in registers.
        header: uint8_t[TEMPLATE_MAX_BYTES]
        header_size: uint32_t = self.template_size
        index: uint32_t
        total: uint32_t = cython.cast(uint32_t, size_bytes) + count * header_size
        settled: cython.bint = s.settled or self.presettles
        delivery_id: uint32_t = session.next_delivery_id
        tag: uint32_t = cython.cast(uint32_t, self.next_tag)
        size: uint32_t
        p: cython.pointer(uint8_t) = wire.reserve(total + TEMPLATE_MAX_BYTES)
        memcpy(header, self.template, TEMPLATE_MAX_BYTES)
        if not settled:
            header[header_size - 1] = 0x42
        for index in range(count):
            size = pieces[index].size
            # The whole template, for a copy of known size is quicker; the payload covers the rest.
            put_header(p, header, header_size, delivery_id, tag)
            store_u32(p, header_size + size)
            memcpy(p + header_size, pieces[index].data, size)
            p += header_size + size
            delivery_id += 1
            tag += 1
        if not settled:
            session.sent.track_run(session.next_delivery_id, self.index, s, pieces, count)
            self.unsettled += count
        else:
            session.sent.skip(session.next_delivery_id, delivery_id)
        return self.count_run(count, size_bytes, total)

    def count_run(self, count, size_bytes, total):
        """Count deliveries of one frame each that were written, `total` octets with their headers."""
        session: Session = self.session
        self.next_tag = cython.cast(uint32_t, self.next_tag + count)
        session.next_delivery_id += count
        session.next_outgoing_id += count
        session.remote_window -= count
        self.delivery_count += count
        self.credit -= count
        self.deliveries += count
        self.sent_bytes += size_bytes
        return session.wire.committed(total)

    def write_first(self, s, data, size, more):
        """Write a delivery's first transfer; the caller has checked credit, window and size."""
        session: Session = self.session
        wire: Wire = session.wire
        frame: cython.pointer(uint8_t) = wire.reserve(HEADER_ROOM_BYTES + size)
        delivery_id: uint32_t = session.next_delivery_id
        settled: cython.bint = s.settled or self.presettles
        p: cython.pointer(uint8_t) = put_performative(
            frame, session.local_channel, 0x14, 6 if more else 5
        )
        p = store_uint(p, self.handle)
        p[0] = 0x70
        store_u32(p + 1, delivery_id)
        p[5] = 0xA0
        if s.tag_size and s.tag_size <= 32 and s.source_index != s.via_index:
            p[6] = cython.cast(uint8_t, s.tag_size)
            memcpy(p + 7, s.tag, s.tag_size)
            p += 7 + s.tag_size
        else:
            p[6] = 4
            store_u32(p + 7, cython.cast(uint32_t, self.next_tag))
            self.next_tag += 1
            p += 11
        if s.format == 0:
            p[0] = 0x43
            p += 1
        else:
            p[0] = 0x70
            store_u32(p + 1, s.format)
            p += 5
        p = put_bool(p, settled)
        if more:
            p = put_bool(p, True)
        if size:
            self.fill(p, data, size)
        session.next_delivery_id = delivery_id + 1
        session.next_outgoing_id += 1
        session.remote_window -= 1
        self.delivery_count += 1
        self.credit -= 1
        self.deliveries += 1
        self.sent_bytes += size
        if not settled:
            self.unsettled += 1
            session.sent.track(delivery_id, self.index, s)
        else:
            session.sent.skip(delivery_id, delivery_id + 1)
        return wire.committed(end_performative(frame, p, size))

    def write_more(self, data, size, more, aborted):
        """Write a further transfer of the delivery that was started last on this link."""
        session: Session = self.session
        frame: cython.pointer(uint8_t) = session.wire.reserve(HEADER_ROOM_BYTES + size)
        p: cython.pointer(uint8_t) = put_performative(
            frame, session.local_channel, 0x14, 10 if aborted else 6
        )
        p = store_uint(p, self.handle)
        memset(p, 0x40, 4)
        p = put_bool(p + 4, more)
        if aborted:
            memset(p, 0x40, 3)
            p = put_bool(p + 3, True)
        if size:
            self.fill(p, data, size)
        self.sent_bytes += size
        session.next_outgoing_id += 1
        session.remote_window -= 1
        return session.wire.committed(end_performative(frame, p, size))

    def fill(self, p, data, size):
        """Put a payload into a frame: from `data`, or from the parts that are being sent."""
        part: bytes
        count: uint64_t
        left: uint64_t = size
        if data != cython.NULL:
            memcpy(p, data, size)
            return 0
        while left:
            part = self.gathered[self.gathered_index]
            count = min(left, cython.cast(uint64_t, len(part)) - self.gathered_at)
            memcpy(p, octets_of(part) + self.gathered_at, count)
            p += count
            left -= count
            self.gathered_at += count
            if self.gathered_at == cython.cast(uint64_t, len(part)):
                self.gathered_index += 1
                self.gathered_at = 0
        return 0

    def write_parts(self, s, parts):
        """Send a message that lies in parts; return how much of it the peer's window let go."""
        room: uint32_t = frame_room(self)
        sent: uint32_t = min(s.size, room)
        count: uint32_t
        self.gathered, self.gathered_index, self.gathered_at = parts, 0, 0
        try:
            self.write_first(s, cython.NULL, sent, sent < s.size)
            while sent < s.size and self.may_go_on():
                count = min(room, s.size - sent)
                self.write_more(cython.NULL, count, sent + count < s.size, False)
                sent += count
        finally:
            self.gathered = None
        return sent

    def send_rest(self, s, sent):
        """Send further frames from where the message lies; return how much of it has been sent."""
        room: uint32_t = frame_room(self)
        count: uint32_t
        while sent < s.size and self.may_go_on():
            count = min(room, s.size - sent)
            self.write_more(s.data + sent, count, sent + count < s.size, False)
            sent += count
        return sent

    def send(self, port, token: int, data: bytes, settled: bool, tag: bytes = None) -> bool:
        """Send a message from within the process; False where there is no credit or room.

        Args:
            port: Gets the outcome, as `(token, code, state, settled)`.
            token: Names the delivery to the port.
            data: The encoded message.
            settled: Whether it is sent settled, so that no outcome will come.
            tag: The delivery-tag; None for one of the link's own.
        """
        s: Shipment
        source: Terminus = port
        if not self.is_ready():
            return False
        ship_from(cython.address(s), source, token, data, settled)
        if tag is not None:
            s.tag = octets_of(tag)
            s.tag_size = cython.cast(uint32_t, len(tag))
        self.take(cython.address(s))
        return True

    def send_buffer(
        self, port, token: int, data: cython.const[uint8_t][::1], settled: bool
    ) -> bool:
        """Send a message as `send` does, from wherever its octets are.

        Args:
            port: Gets the outcome.
            token: Names the delivery to the port.
            data: The encoded message.
            settled: Whether it is sent settled.
        """
        s: Shipment
        source: Terminus = port
        if not self.is_ready():
            return False
        fill_shipment(
            cython.address(s), cython.address(data[0]), cython.cast(uint32_t, data.shape[0])
        )
        s.settled = settled
        s.source_index = source.index
        s.source_generation = source.generation
        s.token = token
        self.take(cython.address(s))
        return True
