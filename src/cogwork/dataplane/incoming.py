"""The receiving end of a link: credit given, deliveries counted and routed, their outcomes passed back.

A transfer goes by its link to an `AddressEntry`, and by that to an outlet. A delivery of several
frames cuts through frame by frame, or is assembled where the entry's outlets take only whole ones.
"""

import cython
from cython.cimports.cogwork.dataplane.core import UNFLUSHED_MAX_BYTES
from cython.cimports.cogwork.dataplane.deliveries import join
from cython.cimports.cogwork.dataplane.delivery import Chunk, ship
from cython.cimports.cogwork.dataplane.entry import MULTICAST
from cython.cimports.cogwork.dataplane.octets import bytes_from, octets_of
from cython.cimports.cogwork.dataplane.outgoing import OutgoingLink
from cython.cimports.cogwork.dataplane.scan import find_to
from cython.cimports.cogwork.dataplane.shipment import (
    ACCEPTED,
    NOWHERE,
    RECEIVED,
    RELEASED,
    RUN_MAX,
    Verdict,
    fill_verdict,
)
from cython.cimports.cogwork.dataplane.terminus import KEEP, SETTLE
from cython.cimports.libc.stdlib import free
from cython.cimports.libc.string import memcpy

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class IncomingLink(ReceivingEnd):
    """A link on which the peer sends: credit given, deliveries counted, the entry they go to."""

    def __init__(
        self,
        session: Session,
        handle: int,
        entry=None,
        space=None,
        window: int = 0,
        max_message_size: int = 0,
    ):
        """Makes the receiving end of a link.

        Args:
            session: The session it is attached on.
            handle: The handle this side sends its flows with.
            entry: Where its deliveries go; None for a link to the null target, whose messages name
                their address themselves.
            space: The addresses of its virtual host, for such a link.
            window: Deliveries that may be unsettled or held; 0 leaves credit to `grant`.
            max_message_size: Largest message in bytes; 0 for no limit.
        """
        self.core = session.core
        self.session = session
        self.handle = handle
        self.entry = entry
        self.space = space
        self.window = window
        self.max_message_size = max_message_size
        self.core.register(self)

    # -- credit

    def start_at(self, delivery_count: int) -> None:
        """Takes over where its sender starts to count (AMQP 1.0 §2.7.3, initial-delivery-count)."""
        self.delivery_count = delivery_count
        self.limit = delivery_count
        if self.credit:
            self.flow_later()

    def grant(self, credit: int, drain: bool = False) -> None:
        """Sets the credit to `credit`, as one that counts its own messages does."""
        self.credit = credit
        self.drain = drain
        self.flow_later()

    def top_up(self):
        """Gives credit for what is neither unsettled nor held, a quarter of the window at a time."""
        used: uint32_t = self.unsettled + self.charged
        target: uint32_t = self.window - used if self.window > used else 0
        # What is due anyway carries as much as there is.
        quantum: uint32_t = 1 if self.flow_due else self.window >> 2
        ration: uint32_t
        entry: AddressEntry = self.entry
        if self.window == 0 or self.detached:
            return 0
        if entry is not None and entry.distribution != MULTICAST:
            if not entry.offered:
                return self._take_back_credit()
            if target < self.credit + quantum:
                return 0
            ration = entry.ration(self)
            if ration < target:
                entry.rationed = True
                target = ration
                quantum = min(quantum, ration >> 1)
        if target > self.credit and target - self.credit >= quantum:
            self.credit = target
            return self.flow_later()
        return 0

    def _take_back_credit(self):
        if self.credit:
            self.credit = 0
            self.flow_later()
        return 0

    def open_credit(self) -> None:
        """Gives the first credit, once the attach has been answered."""
        self.top_up()

    def flow_later(self):
        if not self.flow_due and not self.detached:
            self.flow_due = True
            self.session.links_due.append(self)
            self.session.mark_dirty()
        return 0

    def promise(self):
        """Notes the furthest delivery-count the peer was ever told it may reach.

        Where credit is taken back, transfers may be under way already: they are taken, as AMQP 1.0
        §2.6.7 lets a receiver do.
        """
        limit: uint32_t = self.delivery_count + self.credit
        if cython.cast(cython.int, limit - self.limit) > 0:
            self.limit = limit

    def on_flow(self, f):
        passed: uint32_t
        if f.has_delivery_count:
            passed = f.delivery_count - self.delivery_count
            if 0 < passed <= self.credit:
                self.delivery_count += passed
                self.credit -= passed
        if f.echo:
            self.flow_later()
        if self.drain and self.credit == 0:
            self.drain = False
            if self.owner is not None:
                self.owner.on_drained(self)
        return 0

    # -- deliveries

    def on_transfer(self, t):
        s: Shipment
        if self.detached:
            return 0
        if self.in_delivery:
            return self.on_fragment(t)
        if self.begin_delivery(t) == 0:
            return 0
        if t.more:
            return self.on_fragment(t)
        self.in_delivery = False
        if not t.settled:
            self.unsettled += 1
        s.data = t.payload
        s.size = t.payload_size
        s.format = t.message_format
        s.settled = t.settled
        s.source_index = self.index
        s.source_generation = self.generation
        s.token = t.delivery_id
        s.tag = t.tag
        s.tag_size = t.tag_size
        s.origin = self.session.wire.origin
        s.via_index = self.index
        s.via_generation = self.generation
        self.route(cython.address(s))
        return self.top_up()

    def begin_delivery(self, t):
        """Checks and counts a delivery's first transfer; returns 0 where it goes no further."""
        if not t.has_delivery_id:
            self.session.wire.owner.on_session_violation(
                self.session, "amqp:invalid-field", "a delivery's first transfer has no delivery-id"
            )
            return 0
        if self.credit:
            self.credit -= 1
        elif cython.cast(cython.int, self.limit - self.delivery_count) <= 0:
            self.session.wire.owner.on_link_violation(
                self, "amqp:link:transfer-limit-exceeded", "a transfer beyond the link credit"
            )
            return 0
        self.delivery_count += 1
        self.deliveries += 1
        if t.aborted:
            self.top_up()
            return 0
        if self.max_message_size and t.payload_size > self.max_message_size:
            self._too_large()
            return 0
        self.in_delivery = True
        self.discarding = False
        self.current = cython.NULL
        self.current_id = t.delivery_id
        self.current_tag_size = min(t.tag_size, cython.cast(uint32_t, 32))
        if self.current_tag_size:
            memcpy(self.current_tag, t.tag, self.current_tag_size)
        self.current_answered = False
        self.current_settled = t.settled
        self.current_size = 0
        return 1

    def _too_large(self):
        self.session.wire.owner.on_link_violation(
            self,
            "amqp:link:message-size-exceeded",
            f"a message of more than {self.max_message_size} bytes",
        )

    def on_fragment(self, t):
        """Takes one transfer of a delivery that has several (AMQP 1.0 §2.6.14)."""
        if t.has_delivery_id and t.delivery_id != self.current_id:
            self.session.wire.owner.on_session_violation(
                self.session,
                "amqp:invalid-field",
                f"delivery {t.delivery_id} begins before delivery {self.current_id} has ended",
            )
            return 0
        if t.aborted:
            self.abort_delivery()
            return self.top_up()
        self.current_size += t.payload_size
        if self.max_message_size and self.current_size > self.max_message_size:
            self.abort_delivery()
            self._too_large()
            return 0
        if self.current == cython.NULL and not self.discarding:
            self._start_fragments(t)
        if self.current != cython.NULL:
            if self.current.assembled and self._has_no_room(t.payload_size):
                return 0
            self.current.complete = not t.more
            self.forward_fragment(self.current, t.payload, t.payload_size)
        if not t.more:
            self.finish_delivery()
            return self.top_up()
        return 0

    def _has_no_room(self, size):
        """Detaches the link where the message it sends cannot be assembled any further."""
        if self.core.deliveries.held_bytes + size <= self.core.deliveries.held_bytes_max:
            return False
        self.abort_delivery()
        self.session.wire.owner.on_link_violation(
            self,
            "amqp:resource-limit-exceeded",
            f"messages under way take {self.core.deliveries.held_bytes_max} bytes already",
        )
        return True

    def _start_fragments(self, t):
        s: Shipment
        entry: AddressEntry = self.choose_entry(t.payload, t.payload_size)
        self.current_entry = entry
        self.current_outlets = None
        if not self.current_settled:
            self.unsettled += 1
        if entry is None:
            self.discarding = True
            return 0
        if not entry.assembles:
            return self.start_streaming(entry, t)
        self._describe(cython.address(s), t)
        self.current = self.core.deliveries.make(cython.address(s))
        self.current.assembled = True
        return 0

    def _describe(self, s, t):
        s.data = cython.NULL
        s.size = 0
        s.format = t.message_format
        s.settled = self.current_settled
        s.source_index = self.index
        s.source_generation = self.generation
        s.token = self.current_id
        s.tag = cython.NULL
        s.tag_size = 0
        s.origin = self.session.wire.origin
        s.via_index = self.index
        s.via_generation = self.generation

    def start_streaming(self, entry, t):
        """Chooses the outlets of a delivery that cuts through frame by frame."""
        s: Shipment
        d: cython.pointer(Delivery)
        outlet: Terminus
        self._describe(cython.address(s), t)
        s.data = t.payload
        s.size = t.payload_size
        entry.received += 1
        if entry.distribution == MULTICAST:
            return self._stream_multicast(entry, cython.address(s))
        if not entry.outlets:
            self.discarding = True
            return 0
        d = self.core.deliveries.make(cython.address(s))
        self.current = d
        self.core.deliveries.charge(d)
        outlet = entry.pick(cython.address(s)) if entry.held_first == cython.NULL else None
        if outlet is None:
            return entry.hold(d)
        entry.delivered += 1
        self.current_outlets = [outlet]
        return cython.cast(OutgoingLink, outlet).enqueue(d)

    def _stream_multicast(self, entry, s):
        outlet: Terminus
        record: uint32_t = 0
        outlets: list = [o for o in entry.matching() if not self._refused(o, s)]
        if not outlets:
            entry.unmatched += 1
            self.discarding = True
            return 0
        if not s.settled:
            record = self.core.fanouts.open(s)
            s.source_index = self.core.fanouts.index
            s.source_generation = self.core.fanouts.generation
            s.token = record
        self.current = self.core.deliveries.make(s)
        self.current_outlets = outlets
        for outlet in outlets:
            if not s.settled:
                self.core.fanouts.records[record].waiting += 1
            entry.delivered += 1
            cython.cast(OutgoingLink, outlet).enqueue(self.current)
            cython.cast(OutgoingLink, outlet).apply_policy(self.current)
        if not s.settled:
            self.core.fanouts.close(record)
        return 0

    def _refused(self, outlet, s):
        return outlet.refuses(s)

    def forward_fragment(self, d, data, size):
        """Streams a frame to the outlets that are ready for it, keeps it for those that are not."""
        outlet: OutgoingLink
        chunk: cython.pointer(Chunk) = cython.NULL
        waits: cython.int
        begun: cython.bint = d.begun
        d.begun = True
        if self.current_outlets is None:
            self.core.deliveries.append(d, data, size)
            return 0
        for outlet in self.current_outlets:
            waits = outlet.stream(d, data, size, begun)
            if waits == 0:
                continue
            if chunk == cython.NULL:
                chunk = self.core.deliveries.append(d, data, size)
            chunk.refs += 1
            outlet.backlog_bytes += size
            if waits == 2:
                outlet.cursor = chunk
        return 0

    def finish_delivery(self):
        """Ends a delivery of several frames: routes what was assembled, answers what was dropped."""
        d: cython.pointer(Delivery) = self.current
        entry: AddressEntry = self.current_entry
        self.in_delivery = False
        self.current = cython.NULL
        self.current_entry = None
        outlets: list = self.current_outlets
        self.current_outlets = None
        if d == cython.NULL:
            if not self.current_settled:
                accepted: cython.bint = (
                    entry is not None
                    and entry.distribution == MULTICAST
                    and not entry.release_unmatched
                )
                self.reply(self.current_id, ACCEPTED if accepted else RELEASED, True)
            elif entry is not None:
                entry.dropped += 1
            return 0
        try:
            if d.assembled:
                self._route_assembled(entry, d)
            elif outlets is None:
                entry.serve_held()
        finally:
            self.core.deliveries.release(d)
        return 0

    def _route_assembled(self, entry, d):
        s: Shipment
        joined: cython.pointer(uint8_t) = join(d)
        ship(cython.address(s), d, joined)
        s.tag = self.current_tag
        s.tag_size = self.current_tag_size
        try:
            entry.route(cython.address(s))
        finally:
            free(joined)
        return 0

    def abort_delivery(self):
        """Gives up a delivery whose sender aborted it or has gone (AMQP 1.0 §2.7.5)."""
        d: cython.pointer(Delivery) = self.current
        entry: AddressEntry = self.current_entry
        outlets: list = self.current_outlets
        outlet: OutgoingLink
        if not self.in_delivery:
            return 0
        self.in_delivery = False
        self.current = cython.NULL
        self.current_entry = None
        self.current_outlets = None
        counted: cython.bint = d != cython.NULL or self.discarding
        if counted and not self.current_settled and not self.current_answered:
            self.unsettled -= 1
        self.discarding = False
        if d == cython.NULL:
            return 0
        d.aborted = True
        d.complete = True
        if not d.settled and not self.current_answered:
            self._disown(d)
        if outlets is None:
            entry.discard_held(d)
        else:
            for outlet in outlets:
                if not outlet.detached:
                    outlet.abandon(d)
        return self.core.deliveries.release(d)

    def _disown(self, d):
        """Has nobody told of an aborted delivery's outcome: its sender holds it settled."""
        if d.source_index == self.core.fanouts.index:
            self.core.fanouts.records[d.token].source_index = NOWHERE
        else:
            d.source_index = NOWHERE

    def choose_entry(self, data, size):
        """Finds where a message goes: the link's own entry, or that of its `to`."""
        found: octets = cython.NULL
        length: uint32_t = 0
        if self.entry is not None:
            return self.entry
        if find_to(data, size, cython.address(found), cython.address(length)) != 1:
            return None
        address: bytes = bytes_from(found, length)
        if self.permit is not None and not self.permit[address]:
            return None
        return self.space.find(address)

    def route(self, s):
        entry: AddressEntry
        root: AddressEntry
        prefix: bytes
        found: octets = cython.NULL
        length: uint32_t = 0
        skip: uint32_t
        if self.entry is not None:
            return self.entry.route(s)
        if find_to(s.data, s.size, cython.address(found), cython.address(length)) != 1:
            return self._unroutable(s)
        if self.permit is None and self.space.topic_root is not None:
            root = self.space.topic_root
            prefix = self.space.topic_prefix
            skip = cython.cast(uint32_t, len(prefix))
            if length > skip and _starts_with(found, prefix, skip):
                root.received += 1
                return root.multicast(
                    s,
                    root.interest.match_octets(found + skip, length - skip),
                )
        entry = self.choose_entry(s.data, s.size)
        if entry is None:
            return self._unroutable(s)
        return entry.route(s)

    def run_limit(self, size, message_size_max):
        limit: uint64_t = RUN_MAX
        share: uint64_t
        entry: AddressEntry = self.entry
        if self.detached or self.in_delivery or self.wants_tags:
            return 0
        limit = min(limit, cython.cast(uint64_t, self.credit))
        message_size_max[0] = self.max_message_size
        if entry is not None and entry.distribution == MULTICAST:
            share = cython.cast(uint64_t, len(entry.outlets)) * (size + 32) + 1
            limit = min(limit, cython.cast(uint64_t, UNFLUSHED_MAX_BYTES) // share + 1)
        return cython.cast(uint32_t, limit)

    def route_run(self, pieces, count, settled):
        s: Shipment
        entry: AddressEntry = self.entry
        self.credit -= count
        self.delivery_count += count
        self.deliveries += count
        if not settled:
            self.unsettled += count
        s.format = 0
        s.settled = settled
        s.source_index = self.index
        s.source_generation = self.generation
        s.tag = cython.NULL
        s.tag_size = 0
        s.origin = self.session.wire.origin
        s.via_index = self.index
        s.via_generation = self.generation
        if entry is None:
            self._route_each(cython.address(s), pieces, count)
            return self.top_up()
        entry.received += count
        if entry.distribution == MULTICAST:
            entry.multicast_run(cython.address(s), pieces, count)
        else:
            entry.anycast_run(cython.address(s), pieces, count)
        return self.top_up()

    def _route_each(self, s, pieces, count):
        """Routes messages that name their addresses themselves."""
        index: uint32_t
        for index in range(count):
            s.data = pieces[index].data
            s.size = pieces[index].size
            s.token = pieces[index].token
            self.route(s)
        return 0

    def _unroutable(self, s):
        """Answers for a message whose `to` is missing, forbidden or leads nowhere."""
        if self.space is not None:
            self.space.unroutable += 1
        if not s.settled:
            self.reply(cython.cast(uint32_t, s.token), RELEASED, True)
        return 0

    def resolve_outcome(self, token, verdict):
        if verdict.code == RECEIVED:
            return KEEP
        if self.detached:
            return SETTLE
        self.unsettled -= 1
        self.session.settle(
            cython.address(self.session.to_sender),
            True,
            cython.cast(uint32_t, token),
            verdict,
            not self.settles_second or verdict.code != ACCEPTED,
        )
        if not self.in_delivery:
            self.top_up()
        elif token == self.current_id:
            self.current_answered = True
        return SETTLE

    def resolve_run(self, token, count, verdict):
        if verdict.code == RECEIVED or self.detached:
            return 0
        self.unsettled -= count
        self.session.settle_more(
            cython.address(self.session.to_sender),
            True,
            cython.cast(uint32_t, token),
            count,
            verdict,
            not self.settles_second or verdict.code != ACCEPTED,
        )
        if not self.in_delivery:
            self.top_up()
        elif self.current_id - cython.cast(uint32_t, token) < count:
            self.current_answered = True
        return 0

    def reply(self, token, code, settled):
        verdict: Verdict
        fill_verdict(cython.address(verdict), code, None)
        verdict.settled = settled
        self.resolve_outcome(token, cython.address(verdict))
        return 0

    # -- what is kept of it

    def hold(self, size_bytes):
        self.held_bytes += size_bytes
        self.session.held_bytes += size_bytes
        return 0

    def let_go(self, size_bytes):
        self.held_bytes -= size_bytes
        self.session.held_bytes -= size_bytes
        return self.session.replenish()

    def may_send(self):
        return self.session.incoming_window > 0

    def add_to(self, totals):
        totals.links += 1
        totals.unsettled_in += self.unsettled
        if self.in_delivery:
            totals.partial_bytes += self.current_size
        return 0

    def detach(self) -> None:
        """Ends the link: a delivery in the middle is aborted, outcomes still to come are dropped."""
        if self.detached:
            return
        self.abort_delivery()
        self.detached = True
        if self.entry is not None:
            self.entry.remove_source(self)
        self.session.held_bytes -= self.held_bytes
        self.session.replenish()
        self.core.unregister(self)


@cython.cfunc
@cython.inline
def _starts_with(p: octets, prefix: bytes, size: uint32_t) -> cython.bint:
    at: uint32_t
    q: octets = octets_of(prefix)
    for at in range(size):
        if p[at] != q[at]:
            return False
    return True
