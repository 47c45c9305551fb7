"""A channel of AMQP 0-9-1, its consumers, and what they have not acknowledged.

Theory of operation. A channel is the source of what is published on it, and keeps what it has
delivered until that is acknowledged: by its delivery-tag, in a ring, as a session of AMQP 1.0 does by
delivery-id. A consumer is an end that any store feeds. What it takes is written straight into the
connection's output: method, content header and body, cut by the peer's frame-max. Its credit is its
prefetch less what it has; the channel may have a prefetch of its own.

A message goes out octet for octet as it was published; one of AMQP 1.0 is translated first.
"""

import cython
from cython.cimports.cogwork.dataplane.addresses.exchange import cogwork_has_copies
from cython.cimports.cogwork.dataplane.amqp091.confirms import REFUSED, TAKEN
from cython.cimports.cogwork.dataplane.amqp091.wire import INCOMPLETE, INDIRECT
from cython.cimports.cogwork.dataplane.encoding.octets import (
    bytes_from,
    load_u16,
    load_u32,
    load_u64,
    octets_of,
    store_u16,
    store_u32,
    store_u64,
)
from cython.cimports.cogwork.dataplane.message.basic import (
    BASIC_FORMAT,
    BasicFacts,
    find_basic_parts,
    is_table,
    read_basic_facts,
)
from cython.cimports.cogwork.dataplane.queue.federated_consumer import FederatedConsumer
from cython.cimports.cogwork.dataplane.queue.settlement import Settlement
from cython.cimports.cogwork.dataplane.terminus import KEEP, SETTLE, ship_from
from cython.cimports.cogwork.dataplane.transport.shipment import (
    ACCEPTED,
    LOST,
    MODIFIED,
    NOWHERE,
    RECEIVED,
    RELEASED,
    fill_shipment,
    fill_verdict,
    state_of,
)
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memcmp, memcpy

from cogwork.dataplane.message.basic import pack_basic
from cogwork.dataplane.message.basic_conversion import basic_from_amqp

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

UNLIMITED = cython.declare(uint32_t, 0x7FFFFFFF)
"""The credit of a consumer without a prefetch."""

FAILED_STATE = cython.declare(bytes, b"\x00\x53\x27\xc0\x02\x01\x41")
"""Modified, with delivery-failed: the item goes back to its place, marked, and the attempt counts."""

DIRECT_BODY_MAX = cython.declare(uint64_t, 64 * 1024)
"""A larger body is put together by Python: meanwhile the wire reads on."""

ALLOWED_MAX = 4096
"""Routes that are remembered for a channel; one more, and all are forgotten."""

DAMAGED = cython.declare(int64_t, -2)
"""Frames that are no body: Python says what is wrong with them."""

IS_DIRECT = cython.declare(uint64_t, 1 << 62)
"""Marks the token of a message that is confirmed without the owner; the rest is its number."""

SPAN_MAX = cython.declare(uint64_t, 1 << 31)
"""Of two delivery-tags that are further apart than this, nothing is known of the older one."""

METHOD = cython.declare(uint8_t, 1)
HEADER = cython.declare(uint8_t, 2)
BODY = cython.declare(uint8_t, 3)
FRAME_END = cython.declare(uint8_t, 0xCE)
FRAME_OVERHEAD = cython.declare(uint32_t, 8)
BASIC_PUBLISH = cython.declare(cython.uint, 40)
BASIC_ACK = cython.declare(cython.uint, 80)
BASIC_DELIVER = cython.declare(uint32_t, 60 << 16 | 60)
BASIC_GET_OK = cython.declare(uint32_t, 60 << 16 | 71)
CONTENT_HEADER_BYTES = cython.declare(uint32_t, 12)
"""Of a content header, before the property flags: class, weight, size of the body (§4.2.6.1)."""


class BasicConsumer:
    """The end by which a queue's messages go to a consumer, or to one basic.get.

    Attributes:
        channel: The channel that it was declared on.
        tag: The consumer tag.
        prefetch: How much it may have unacknowledged; 0 for any number.
        is_get: Whether it stands for a basic.get, and takes one message.
        is_cancelled: Whether it takes nothing more.
        message_count: What get-ok says is left in the queue.
    """

    def __init__(
        self,
        channel: BasicChannel,
        tag: bytes,
        *,
        no_ack: bool = False,
        prefetch: int = 0,
        is_get: bool = False,
    ):
        """Make an end that nobody feeds yet.

        Args:
            channel: The channel that its deliveries go by.
            tag: The consumer tag, of at most 255 octets.
            no_ack: Whether what is delivered counts as acknowledged.
            prefetch: How much it may have unacknowledged; 0 for any number.
            is_get: Whether it stands for a basic.get.

        Raises:
            ValueError: The tag is too long.
        """
        if len(tag) > 255:
            raise ValueError(f"a consumer tag of {len(tag)} octets (at most 255)")
        self.core = channel.core
        self.channel = channel
        self.handle = channel.handle
        self.tag = tag
        self.presettles = no_ack
        self.is_get = is_get
        self.prefetch = 1 if is_get else (0 if no_ack else prefetch)
        self.credit = self.prefetch if self.prefetch else UNLIMITED
        self.core.register(self)
        channel.consumers[self.index] = self

    def is_ready(self):
        wire: BasicWire = self.channel.wire
        if self.is_cancelled or self.detached or wire.closed:
            return False
        # One that does not acknowledge fills no room, but gets nothing without it (RabbitMQ).
        if self.credit == 0 or not (self.is_get or self.channel.has_room()):
            self.starve()
            return False
        if self.channel.stopped:
            self.starve()
            return False
        if wire.congested:
            if not self.is_stalled:
                self.is_stalled = True
                wire.stalled.append(self)
            return False
        return True

    def starve(self):
        """Have `became_ready` called when the channel has credit for it."""
        if not self.is_starved and not self.is_get:
            self.is_starved = True
            self.channel.starved.append(self)
        return 0

    def relieve(self):
        self.is_stalled = False
        return self.became_ready()

    def became_ready(self):
        """Let whoever feeds it give it more."""
        if self.feeder is None or self.is_cancelled or self.detached:
            return 0
        return self.feeder.on_ready(self)

    def spare_credit(self):
        """Return how much it could take; where that is nothing, `became_ready` is called when it can."""
        spare: uint32_t = self.credit
        channel: BasicChannel = self.channel
        if self.is_cancelled or channel.wire.closed:
            return 0
        if not self.is_get and not channel.has_room():
            spare = 0
        elif channel.prefetch_count and not self.presettles and not self.is_get:
            spare = min(spare, channel.prefetch_count - channel.prefetched)
        if spare == 0 or channel.stopped:
            self.starve()
            return 0
        return spare

    def refuses(self, s):
        return self.no_local and s.origin == self.channel.wire.origin

    def outstanding(self):
        return self.unsettled

    def add_to(self, totals):
        totals.links += 1
        totals.unsettled += self.unsettled
        return 0

    def hold_output(self):
        self.channel.wire.hold()
        return True

    def source_of_work(self):
        return self.channel.wire.source

    def take(self, s):
        """Deliver a message, and remember it until it is acknowledged."""
        parts: BasicParts
        verdict: Verdict
        message: bytes
        if s.format != BASIC_FORMAT or not find_basic_parts(s.data, s.size, cython.address(parts)):
            message = basic_from_amqp(bytes_from(s.data, s.size), s.format)
            find_basic_parts(
                octets_of(message), cython.cast(uint32_t, len(message)), cython.address(parts)
            )
        self.deliveries += 1
        self.channel.last_tag += 1
        if self.presettles:
            self.write(cython.address(parts), s.acquired)
            if self.is_get:
                self.credit = 0
            if s.settled:
                return 0
            fill_verdict(cython.address(verdict), ACCEPTED, None)
            self.core.answer(s.source_index, s.source_generation, s.token, cython.address(verdict))
            return 0
        self.channel.track(self, s)
        return self.write(cython.address(parts), s.acquired)

    def write(self, parts, redelivered):
        """Write method, content header and body (§4.2.6)."""
        wire: BasicWire = self.channel.wire
        room: uint32_t = wire.max_frame_out - FRAME_OVERHEAD
        pieces: uint32_t = (parts.body_size + room - 1) // room
        method_size: uint32_t = cython.cast(uint32_t, len(self.tag)) + parts.route_size + 14
        header_size: uint32_t = CONTENT_HEADER_BYTES + parts.properties_size
        size: uint32_t
        left: uint32_t = parts.body_size
        body: octets = parts.body
        p: cython.pointer(uint8_t)
        if self.is_get:
            method_size = parts.route_size + 17
        size = method_size + header_size + left + (2 + pieces) * FRAME_OVERHEAD
        p = wire.reserve(size)
        p = put_frame(p, METHOD, self.handle, method_size)
        p = self.put_method(p, parts, redelivered)
        p[0] = FRAME_END
        p = put_frame(p + 1, HEADER, self.handle, header_size)
        store_u32(p, 60 << 16)
        store_u64(p + 4, left)
        memcpy(p + 12, parts.properties, parts.properties_size)
        p += header_size
        p[0] = FRAME_END
        p += 1
        while left:
            size_now: uint32_t = min(left, room)
            p = put_frame(p, BODY, self.handle, size_now)
            memcpy(p, body, size_now)
            p[size_now] = FRAME_END
            p += size_now + 1
            body += size_now
            left -= size_now
        wire.frames_out += 1 + pieces
        return wire.committed(size)

    def put_method(self, p, parts, redelivered):
        """Write the arguments of basic.deliver (§1.8.3.11) or basic.get-ok (§1.8.3.14)."""
        tag_size: uint8_t = cython.cast(uint8_t, len(self.tag))
        store_u32(p, BASIC_GET_OK if self.is_get else BASIC_DELIVER)
        p += 4
        if not self.is_get:
            p[0] = tag_size
            memcpy(p + 1, octets_of(self.tag), tag_size)
            p += 1 + tag_size
        store_u64(p, self.channel.last_tag)
        p[8] = redelivered
        memcpy(p + 9, parts.route, parts.route_size)
        p += 9 + parts.route_size
        if self.is_get:
            store_u32(p, self.message_count)
            p += 4
        return p

    def regain(self):
        """Take note that some of what it has is acknowledged."""
        if self.prefetch and not self.is_get:
            self.credit = self.prefetch - min(self.unsettled, self.prefetch)
        if self.is_federated and not self.is_cancelled:
            self.starve()  # so that others hear of its credit, too
        if self.is_cancelled and self.unsettled == 0:
            return self.end()
        return 0

    def detach(self) -> None:
        """Take nothing more; what it has is settled by its channel, as before."""
        self.is_cancelled = True
        self.credit = 0
        if self.unsettled == 0:
            self.end()

    def end(self):
        """Be no more: nothing of it is unacknowledged."""
        if self.detached:
            return 0
        self.detached = self.is_cancelled = True
        self.credit = 0
        self.channel.consumers.pop(self.index, None)
        return self.core.unregister(self)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_frame(
    p: cython.pointer(uint8_t), kind: uint8_t, channel: uint32_t, size: uint32_t
) -> cython.pointer(uint8_t):
    """Write what comes before a frame's payload; return where that goes (§4.2.3)."""
    p[0] = kind
    store_u16(p + 1, cython.cast(cython.ushort, channel))
    store_u32(p + 3, size)
    return p + 7


class BasicChannel:
    """A channel: the source of what is published on it, the keeper of what is unacknowledged.

    Attributes:
        wire: The connection's octets.
        last_tag: The delivery-tag that was given last.
    """

    def __init__(self, wire: BasicWire, number: int, owner):
        """Open a channel.

        Args:
            wire: The connection's octets.
            number: The channel's number.
            owner: Hears what became of published messages, `on_outcomes`, at the end of a batch.
        """
        self.core = wire.core
        self.wire = wire
        self.handle = number
        self.owner = owner
        self.sent = UnsettledRing()
        self.starved = []
        self.consumers = {}
        self.outcomes = []
        self.allowed = {}
        self.core.register(self)
        wire.map(self.handle, self)

    # -- what is published

    def publish(
        self,
        entry: AddressEntry,
        exchange: bytes,
        key: bytes,
        properties: bytes,
        body: bytes,
        *,
        token: int = 0,
    ) -> int:
        """Route a message.

        Args:
            entry: Where it goes.
            exchange: The exchange's name.
            key: The routing key.
            properties: Property flags and list, as in the content header.
            body: The content's body.
            token: What its outcome is told by; 0 where nobody waits for it.

        Returns:
            The outcome's code where it is known already, else 0. It is also among those that
            `owner.on_outcomes` gets.
        """
        return self.publish_message(entry, pack_basic(exchange, key, properties, body), token=token)

    def publish_message(self, entry: AddressEntry, message: bytes, *, token: int = 0) -> int:
        """Route a message that is in its stored form already; the rest is as with `publish`."""
        s: Shipment
        ship_from(cython.address(s), self, token, message, token == 0)
        s.format = BASIC_FORMAT
        s.origin = self.wire.origin
        s.via_index = self.index
        s.via_generation = self.generation
        self.deliveries += 1
        self.routed_token = s.token
        self.routed_code = 0
        try:
            entry.route(cython.address(s))
        finally:
            self.routed_token = 0
        return self.routed_code

    def allow(self, entry: AddressEntry, exchange: bytes, key: bytes = None) -> None:
        """Let messages go to an address without asking the owner, while the channel is direct.

        It holds until the address has gone. Only plain messages go so: none that are mandatory or
        immediate, that name a user or a pseudo-queue for replies, or are large or damaged.

        Args:
            entry: Where they go.
            exchange: The exchange's name.
            key: The routing key; None for all keys.
        """
        route: bytes = bytes((len(exchange),)) + exchange
        if key is not None:
            route += bytes((len(key),)) + key
        if len(self.allowed) >= ALLOWED_MAX:
            self.forget_allowed()
        self.allowed[route] = entry

    def forget_allowed(self) -> None:
        """Have the owner asked about every message again."""
        self.allowed.clear()
        self.last_route = None
        self.last_entry = None

    def take_frames(self, data, size):
        method: cython.uint = load_u16(data + 9)
        if method == BASIC_ACK:
            return self.take_ack(data)
        return self.take_publish(data, size) if method == BASIC_PUBLISH else INDIRECT

    def take_publish(self, data, size):
        """Route the message that `data` begins with (§1.8.3.7, §4.2.6)."""
        content: Content
        facts: BasicFacts
        entry: AddressEntry
        body_size: uint64_t
        taken: int64_t
        header_size: int64_t
        end: int64_t = cython.cast(int64_t, load_u32(data + 3)) + 7
        exchange_end: int64_t = 14 + data[13]
        at: int64_t
        # Class, method and a reserved short come before the exchange; flags behind the key.
        if end < 16 or data[end] != FRAME_END or exchange_end >= end - 1:
            return INDIRECT
        at = exchange_end + 1 + data[exchange_end]
        if at != end - 1 or data[at] != 0:
            return INDIRECT
        content.route = data + 13
        content.route_size = cython.cast(uint32_t, at - 13)
        entry = self.entry_for(
            content.route, content.route_size, cython.cast(uint32_t, exchange_end - 13)
        )
        if entry is None:
            return INDIRECT
        at = end + 1
        if size - at < 7:
            return INCOMPLETE
        header_size = cython.cast(int64_t, load_u32(data + at + 3))
        if (
            data[at] != HEADER
            or load_u16(data + at + 1) != self.handle
            or header_size < CONTENT_HEADER_BYTES + 2
            or header_size > self.wire.max_frame_in
        ):
            return INDIRECT
        if size - at < header_size + FRAME_OVERHEAD:
            return INCOMPLETE
        if data[at + 7 + header_size] != FRAME_END or load_u32(data + at + 7) != 60 << 16:
            return INDIRECT
        body_size = load_u64(data + at + 11)
        content.properties = data + at + 19
        content.properties_size = cython.cast(uint32_t, header_size) - CONTENT_HEADER_BYTES
        if body_size > DIRECT_BODY_MAX or not (
            read_basic_facts(content.properties, content.properties_size, cython.address(facts))
            and is_plain(cython.address(facts))
        ):
            return INDIRECT
        at += header_size + FRAME_OVERHEAD
        taken = self.measure_body(data + at, size - at, body_size)
        if taken < 0:
            return INDIRECT if taken == DAMAGED else INCOMPLETE
        content.body_frames = data + at
        content.body_size = cython.cast(uint32_t, body_size)
        self.route_content(entry, cython.address(content))
        return at + taken

    def entry_for(self, route, size, exchange_size):
        """Find where messages of a route may go; None where the owner has to say."""
        entry: AddressEntry
        found: bytes
        if (
            self.last_route is not None
            and cython.cast(uint32_t, len(self.last_route)) == size
            and memcmp(octets_of(self.last_route), route, size) == 0
        ):
            return self.last_entry if self.last_entry.index != NOWHERE else None
        found = bytes_from(route, size)
        entry = self.allowed.get(found)
        if entry is None:
            entry = self.allowed.get(bytes_from(route, exchange_size))
        if entry is None or entry.index == NOWHERE:
            return None
        self.last_route = found
        self.last_entry = entry
        return entry

    def measure_body(self, data, size, body_size):
        """Return how many octets the frames of a body take; DAMAGED or INCOMPLETE."""
        at: int64_t = 0
        piece: uint32_t
        while body_size:
            if size - at < 7:
                return INCOMPLETE
            piece = load_u32(data + at + 3)
            if (
                data[at] != BODY
                or load_u16(data + at + 1) != self.handle
                or piece == 0
                or piece > body_size
            ):
                return DAMAGED
            if size - at < cython.cast(int64_t, piece) + FRAME_OVERHEAD:
                return INCOMPLETE
            if data[at + 7 + piece] != FRAME_END:
                return DAMAGED
            at += cython.cast(int64_t, piece) + FRAME_OVERHEAD
            body_size -= piece
        return at

    def route_content(self, entry, content):
        """Put a message into its stored form, and route it."""
        small: uint8_t[SMALL_BYTES]
        message: cython.pointer(uint8_t) = small
        size: uint32_t = content.route_size + 4 + content.properties_size + content.body_size
        frames: uint32_t = 2
        s: Shipment
        if size > SMALL_BYTES:
            message = cython.cast(cython.pointer(uint8_t), malloc(size))
            if message == cython.NULL:
                raise MemoryError("no room for a message")
        try:
            frames += put_content(message, content)
            self.wire.frames_in += frames
            self.core.frames_in += frames
            self.deliveries += 1
            fill_shipment(cython.address(s), message, size)
            s.format = BASIC_FORMAT
            s.settled = self.confirms is None
            if self.confirms is not None:
                s.source_index = self.index
                s.source_generation = self.generation
                s.token = self.confirms.count() | IS_DIRECT
            s.origin = self.wire.origin
            s.via_index = self.index
            s.via_generation = self.generation
            entry.route(cython.address(s))
        finally:
            if message != small:
                free(message)
        return 0

    # -- confirms

    def start_confirms(self) -> None:
        """Count the messages from now on, and confirm those that take their way without Python."""
        if self.confirms is None:
            self.confirms = Confirms(self.wire, self.handle)

    def count_published(self) -> int:
        """Return the number of a message that the owner publishes now; it confirms it itself."""
        return self.confirms.count()

    def confirm(self, number: int, is_taken: bool) -> None:
        """Have the client told at the end of the batch what became of such a message.

        Args:
            number: As `count_published` gave it.
            is_taken: Whether it was taken, or led nowhere; else it was refused.
        """
        if self.confirms is not None:
            self.confirms.note(number, TAKEN if is_taken else REFUSED)
            self.core.put_off(self)

    def resolve_outcome(self, token, verdict):
        if verdict.code == RECEIVED:
            return KEEP
        if token & IS_DIRECT:
            is_taken: cython.bint = verdict.code == ACCEPTED or verdict.code == RELEASED
            if self.confirms is not None:
                self.confirms.note(token & ~IS_DIRECT, TAKEN if is_taken else REFUSED)
                self.core.put_off(self)
            return SETTLE
        if token == self.routed_token:
            self.routed_code = verdict.code
        self.outcomes.append(
            (token, verdict.code, None if verdict.code == ACCEPTED else state_of(verdict))
        )
        self.core.put_off(self)
        return SETTLE

    def end_batch(self):
        self.dirty = False
        self.wire.tell_backlog()
        if self.outcomes:
            outcomes, self.outcomes = self.outcomes, []
            try:
                self.owner.on_outcomes(outcomes)
            except Exception as error:
                self.wire._blame(error)
        return 0 if self.confirms is None else self.confirms.write_all()

    def hold(self, size_bytes, is_assembled):
        self.held_bytes += size_bytes
        self.wire.held_bytes += size_bytes
        return self.core.put_off(self) if self.wire.has_backlog() else 0

    def let_go(self, size_bytes, is_assembled):
        self.held_bytes -= size_bytes
        self.wire.held_bytes -= size_bytes
        return self.core.put_off(self) if self.wire.has_backlog() else 0

    def hold_output(self):
        self.wire.hold()
        return True

    # -- consumers

    def consumer(
        self, tag: bytes, *, no_ack: bool = False, prefetch: int = 0, no_local: bool = False
    ) -> BasicConsumer:
        """Make the end of a consumer, for a node to feed.

        Args:
            tag: The consumer tag.
            no_ack: Whether what is delivered counts as acknowledged.
            prefetch: How much it may have unacknowledged; 0 for any number.
            no_local: Whether it does not want what came by its own connection.
        """
        made: BasicConsumer = BasicConsumer(self, tag, no_ack=no_ack, prefetch=prefetch)
        made.no_local = no_local
        return made

    def get(self, *, no_ack: bool = False) -> BasicConsumer:
        """Make the end of one basic.get, which takes a message as soon as a node feeds it.

        Where there is none, its `deliveries` stay 0 and it is to be detached.
        """
        return BasicConsumer(self, b"", no_ack=no_ack, is_get=True)

    @property
    def prefetch(self) -> int:
        """How much all its consumers together may have unacknowledged; 0 for any number."""
        return self.prefetch_count

    @prefetch.setter
    def prefetch(self, count: int):
        self.prefetch_count = count
        self.wake()

    @property
    def is_stopped(self) -> bool:
        """Whether the peer wants no deliveries for now (channel.flow)."""
        return self.stopped

    @is_stopped.setter
    def is_stopped(self, stopped: bool):
        self.stopped = stopped
        self.wake()

    def has_room(self):
        return self.prefetch_count == 0 or self.prefetched < self.prefetch_count

    def track(self, consumer, s):
        """Remember a delivery under its tag."""
        shipment: Shipment = s[0]
        if s.settled:
            shipment.source_index = NOWHERE  # settled at its source: only the channel waits for it
        self.sent.track(
            cython.cast(uint32_t, self.last_tag), consumer.index, cython.address(shipment)
        )
        self.unsettled += 1
        consumer.unsettled += 1
        if consumer.is_get:
            consumer.credit = 0
            return 0
        self.prefetched += 1
        if consumer.prefetch:
            consumer.credit -= 1
        return 0

    def wake(self):
        """Let those go on for whom there was no credit; who gets some is the last the next time."""
        consumer: BasicConsumer
        taken: uint64_t
        served: list = None
        waiting: list = self.starved
        if not waiting:
            return 0
        self.starved = []
        for consumer in waiting:
            consumer.is_starved = False
            taken = consumer.deliveries
            consumer.became_ready()
            if consumer.is_starved and consumer.deliveries != taken:
                self.starved.remove(consumer)
                served = [consumer] if served is None else [*served, consumer]
        if served is not None:
            self.starved += served
        return 0

    # -- acknowledgements

    def take_ack(self, data):
        """Apply an acknowledgement (§1.8.3.13); an unknown tag is the owner's to refuse."""
        verdict: Verdict
        count: int64_t
        tag: uint64_t = load_u64(data + 11)
        if load_u32(data + 3) != 13 or data[20] != FRAME_END:
            return INDIRECT
        fill_verdict(cython.address(verdict), ACCEPTED, None)
        if not data[19] & 1:
            count = self.settle_one(tag, cython.address(verdict))
        elif tag and not self.holds(tag):
            return INDIRECT
        else:
            count = self.settle_up_to(tag if tag else self.last_tag, cython.address(verdict))
        if count == 0:
            return INDIRECT
        self.wire.frames_in += 1
        self.core.frames_in += 1
        self.wake()
        return 21

    def acknowledge(
        self,
        delivery_tag: int,
        multiple: bool,
        code: int,
        state: bytes = None,
        *,
        is_awaited: bool = False,
    ) -> int:
        """Settle what was delivered, and let consumers have more.

        Args:
            delivery_tag: A delivery-tag.
            multiple: Whether all before it are settled too; with the tag 0 all there are.
            code: The outcome's descriptor code.
            state: The outcome encoded, where it says more than its code.
            is_awaited: Whether what is written to the client from now on waits until it is durable.

        Returns:
            How many; 0 where the tag is not known.
        """
        verdict: Verdict
        count: int64_t
        fill_verdict(cython.address(verdict), code, state)
        verdict.settled = not is_awaited
        if not multiple:
            count = self.settle_one(delivery_tag, cython.address(verdict))
        elif delivery_tag == 0:
            count = self.settle_up_to(self.last_tag, cython.address(verdict))
        elif self.holds(delivery_tag):
            count = self.settle_up_to(delivery_tag, cython.address(verdict))
        else:
            return 0
        self.wake()
        return count

    def requeue(self, delivery_tag: int, multiple: bool) -> int:
        """Give back what was delivered, to its place and marked as redelivered; see `acknowledge`."""
        return self.acknowledge(delivery_tag, multiple, MODIFIED, FAILED_STATE)

    def recover(self) -> int:
        """Give back all that is unacknowledged; return how much that was."""
        return self.acknowledge(0, True, MODIFIED, FAILED_STATE)

    def holds(self, tag):
        """Return whether a delivery-tag is unacknowledged."""
        if tag == 0 or tag > self.last_tag or self.last_tag - tag >= SPAN_MAX:
            return False
        return cython.cast(uint32_t, tag) in self.sent

    def unacknowledged_tags(self, last_tag: int) -> list[int]:
        """Return which delivery-tags up to one are unacknowledged, the oldest first.

        Args:
            last_tag: A delivery-tag; 0 for the last one.
        """
        newest: uint64_t = min(last_tag, self.last_tag) if last_tag else self.last_tag
        first: uint32_t = self.sent.first
        last: uint32_t = cython.cast(uint32_t, newest)
        tags: list = [self.last_tag + self._age(each) for each in self.sent.spilled]
        if self.sent.clip(cython.address(first), cython.address(last)):
            while cython.cast(cython.int, last - first) >= 0:
                if first in self.sent:
                    tags.append(self.last_tag + self._age(first))
                first += 1
        return sorted({tag for tag in tags if tag <= newest})

    def consumer_of(self, tag: int):
        """Return the consumer that an unacknowledged delivery went to; None where there is none."""
        sent: Sent
        delivery_id: uint32_t = cython.cast(uint32_t, tag)
        if not self.holds(tag):
            return None
        if not self.sent.find(delivery_id, cython.address(sent)):
            fill_sent(cython.address(sent), delivery_id, self.sent.spilled[delivery_id])
        return self.core.registry.termini[sent.link_index]

    def settle_one(self, tag, verdict):
        sent: Sent
        delivery_id: uint32_t = cython.cast(uint32_t, tag)
        if tag == 0 or tag > self.last_tag or self.last_tag - tag >= SPAN_MAX:
            return 0
        if self.sent.take_run(delivery_id, delivery_id, cython.address(sent)) == 0:
            fields = self.sent.spilled.pop(delivery_id, None)
            if fields is None:
                return 0
            fill_sent(cython.address(sent), delivery_id, fields)
        self.answer(cython.address(sent), 1, verdict)
        return 1

    def settle_up_to(self, tag, verdict):
        """Settle all that is unacknowledged up to a delivery-tag, in runs, the oldest first."""
        sent: Sent
        first: uint32_t
        taken: uint32_t
        last: uint32_t = cython.cast(uint32_t, tag)
        count: int64_t = self.settle_spilled(last, verdict) if self.sent.spilled else 0
        first = self.sent.first
        if not self.sent.clip(cython.address(first), cython.address(last)):
            return count
        while cython.cast(cython.int, last - first) >= 0:
            taken = self.sent.take_run(first, last, cython.address(sent))
            if taken:
                self.answer(cython.address(sent), taken, verdict)
                count += taken
                first += taken
            else:
                first += 1
        return count

    def settle_spilled(self, last, verdict):
        """Settle what is too old for the ring."""
        sent: Sent
        count: int64_t = 0
        for delivery_id in sorted(self.sent.spilled, key=self._age):
            if cython.cast(cython.int, last - cython.cast(uint32_t, delivery_id)) >= 0:
                fill_sent(cython.address(sent), delivery_id, self.sent.spilled.pop(delivery_id))
                self.answer(cython.address(sent), 1, verdict)
                count += 1
        return count

    def _age(self, delivery_id: int) -> int:
        """Return what sorts the oldest of some deliveries to the front."""
        return -cython.cast(
            int64_t,
            cython.cast(
                uint32_t, cython.cast(uint32_t, self.last_tag) - cython.cast(uint32_t, delivery_id)
            ),
        )

    def answer(self, sent, count, verdict):
        """Tell the source of deliveries with consecutive tokens what was said of them.

        Where nothing was (NULL), the channel has ended: a queue that redelivers has them at once,
        marked as redelivered; any other has them in doubt.
        """
        given_up: Verdict
        source: Terminus
        consumer: BasicConsumer = self.core.registry.termini[sent.link_index]
        self.unsettled -= count
        consumer.unsettled -= count
        if not consumer.is_get:
            self.prefetched -= count
        source = self.core.resolve(sent.source_index, sent.source_generation)
        if verdict == cython.NULL:
            fill_verdict(cython.address(given_up), MODIFIED, FAILED_STATE)
            store: Terminus = source
            if isinstance(source, FederatedConsumer):
                store = cython.cast(FederatedConsumer, source).store
            if isinstance(store, Settlement) and not (
                cython.cast(Settlement, store).redelivers_in_doubt
            ):
                fill_verdict(cython.address(given_up), LOST, None)
            verdict = cython.address(given_up)
        if source is not None:
            source.resolve_run(sent.token, count, verdict)
        return consumer.regain()

    def close(self) -> None:
        """End the channel and its consumers: what is unacknowledged goes back, the oldest first."""
        consumer: BasicConsumer
        if self.detached:
            return
        self.detached = True
        for consumer in self.consumers.values():
            consumer.is_cancelled = True
        self.settle_up_to(self.last_tag, cython.NULL)
        for consumer in list(self.consumers.values()):
            consumer.end()
        self.starved = []
        self.is_direct = False
        # After channel.close-ok nothing may come on the channel (§1.5.2.6); RabbitMQ, too, keeps to
        # itself what it has not confirmed until then.
        self.confirms = None
        self.forget_allowed()
        if self.wire.channel_of(self.handle) is self:
            self.wire.map(self.handle, None)
        self.core.unregister(self)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def is_plain(facts: cython.pointer(BasicFacts)) -> cython.bint:
    """Return whether nothing in a property list has to be checked, or replaced, by the owner."""
    if facts.has_user_id:
        return False
    if facts.headers_size and (
        not is_table(facts.headers, facts.headers_size)
        or cogwork_has_copies(facts.headers, facts.headers_size)
    ):
        return False
    return (
        facts.reply_to_size <= 21 or memcmp(facts.reply_to + 1, b"amq.rabbitmq.reply-to", 21) != 0
    )


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_content(p: cython.pointer(uint8_t), content: cython.pointer(Content)) -> uint32_t:
    """Write a message's stored form; return how many frames its body had."""
    frames: uint32_t = 0
    left: uint32_t = content.body_size
    piece: uint32_t
    frame: octets = content.body_frames
    memcpy(p, content.route, content.route_size)
    p += content.route_size
    store_u32(p, content.properties_size)
    memcpy(p + 4, content.properties, content.properties_size)
    p += 4 + content.properties_size
    while left:
        piece = load_u32(frame + 3)
        memcpy(p, frame + 7, piece)
        p += piece
        frame += piece + FRAME_OVERHEAD
        left -= piece
        frames += 1
    return frames


@cython.cfunc
@cython.inline
@cython.exceptval(-1)
def fill_sent(sent: cython.pointer(Sent), delivery_id: uint32_t, fields: tuple) -> cython.int:
    """Describe a delivery that the ring had no room for."""
    sent.delivery_id = delivery_id
    sent.link_index = fields[0]
    sent.source_index = fields[1]
    sent.source_generation = fields[2]
    sent.token = fields[3]
    return 0
