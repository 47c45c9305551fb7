"""Deliveries of several frames: cut through frame by frame, or assembled for those that take whole ones."""

import cython
from cython.cimports.cogwork.dataplane.addresses.holding import MULTICAST
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from, octets_of
from cython.cimports.cogwork.dataplane.message.basic import BASIC_FORMAT
from cython.cimports.cogwork.dataplane.message.destination import (
    SAYS_NOTHING,
    SAYS_TOPIC,
    read_destination,
)
from cython.cimports.cogwork.dataplane.message.sections import ABSENT, FOUND, find_to
from cython.cimports.cogwork.dataplane.system import clock_s
from cython.cimports.cogwork.dataplane.transport.consumer_end import is_picky
from cython.cimports.cogwork.dataplane.transport.deliveries import join
from cython.cimports.cogwork.dataplane.transport.delivery import Chunk, ship
from cython.cimports.cogwork.dataplane.transport.outgoing import OutgoingLink
from cython.cimports.cogwork.dataplane.transport.shipment import (
    ACCEPTED,
    NOWHERE,
    REJECTED,
    RELEASED,
    Verdict,
    fill_verdict,
)

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class FragmentingEnd(CreditingEnd):
    """The end of a link on which the peer sends, with the delivery that is under way there."""

    def route(self, s):
        """Give a whole message to its address."""
        return 0

    def on_fragment(self, t):
        """Take one transfer of a delivery that has several (AMQP 1.0 §2.6.14)."""
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
        if t.payload_size == 0 and t.more:
            return 0  # nothing has come: there is nothing to keep, or to go by
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

    def _too_large(self):
        self.session.wire.owner.on_link_violation(
            self,
            "amqp:link:message-size-exceeded",
            f"a message of more than {self.max_message_size} bytes",
        )

    def _has_no_room(self, size):
        """Detach the link where the message it sends cannot be assembled any further.

        Where somebody makes room when it is short, that is at the cost of who holds most.
        """
        if self.core.on_no_room is not None:
            return False
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
        if entry is None and not self._may_say_more(t.payload, t.payload_size):
            self.discarding = True
            self.current_address = self.address_in(t.payload, t.payload_size)
            return 0
        # What is of another protocol is translated as a whole.
        if (
            entry is not None
            and t.message_format != BASIC_FORMAT
            and not self.needs_whole(entry, t.payload, t.payload_size)
        ):
            return self.start_streaming(entry, t)
        self._describe(cython.address(s), t)
        self.current = self.core.deliveries.make(cython.address(s))
        self.current.assembled = True
        return 0

    def _may_say_more(self, data, size):
        """Return whether a later frame may have the address that this first one does not.

        A sender may part a message anywhere (AMQP 1.0 §2.6.14).
        """
        found: octets = cython.NULL
        length: uint32_t = 0
        return (
            self.entry is None
            and find_to(data, size, cython.address(found), cython.address(length)) != 1
        )

    def needs_whole(self, entry, data, size):
        """Return whether a delivery, whose first frame this is, is assembled before it goes on.

        A selector has to see the properties, which a sender may part anywhere; and where nobody may
        want it, a dead letter has all of it.
        """
        if entry.assembles:
            return True
        if entry.distribution == MULTICAST and entry.leads_away():
            return True
        outlets: list = entry.matching() if entry.distribution == MULTICAST else entry.outlets
        return _selects(outlets) or (entry.dead_letter is not None and _may_all_refuse(outlets))

    def _describe(self, s, t):
        s.data = cython.NULL
        s.size = 0
        s.format = t.message_format
        s.settled = self.current_settled
        s.acquired = False
        s.source_index = self.index
        s.source_generation = self.generation
        s.token = self.current_id
        s.tag = cython.NULL
        s.tag_size = 0
        s.origin = self.session.wire.origin
        s.via_index = self.index
        s.via_generation = self.generation

    def start_streaming(self, entry, t):
        """Choose the outlets of a delivery that cuts through frame by frame."""
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
        awaited: cython.bint = not s.settled and entry.awaits_settlement
        if awaited:
            record = self.core.fanouts.open(s, True)
            s.source_index = self.core.fanouts.index
            s.source_generation = self.core.fanouts.generation
            s.token = record
        elif not s.settled:
            s.source_index = NOWHERE  # accepted once all of it has come
        self.current = self.core.deliveries.make(s)
        self.current_outlets = outlets
        for outlet in outlets:
            if awaited:
                self.core.fanouts.records[record].waiting += 1
            entry.delivered += 1
            cython.cast(OutgoingLink, outlet).enqueue(self.current)
            cython.cast(OutgoingLink, outlet).apply_policy(self.current)
        if awaited:
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
        if self.current_entry is not None and not d.assembled:
            self.current_entry.received_bytes += size
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
        """End a delivery of several frames: route what was assembled, answers what was dropped."""
        d: cython.pointer(Delivery) = self.current
        entry: AddressEntry = self.current_entry
        self.in_delivery = False
        self.current = cython.NULL
        self.current_entry = None
        outlets: list = self.current_outlets
        self.current_outlets = None
        address: bytes = self.current_address
        self.current_address = None
        if d == cython.NULL:
            if entry is None and address is not None:
                return self.turn_away(self.current_id, self.current_settled, address)
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
                self._route_assembled(d)
            elif outlets is None:
                entry.watch_life(d)
                entry.serve_held()
            elif d.answered and not d.settled:
                self.reply(self.current_id, ACCEPTED, True)
        finally:
            self.core.deliveries.release(d)
        return 0

    def _route_assembled(self, d):
        """By the same way as small messages, so that none overtakes another."""
        s: Shipment
        self.joined = join(d)
        ship(cython.address(s), d, octets_of(self.joined))
        s.tag = self.current_tag
        s.tag_size = self.current_tag_size
        try:
            self.route(cython.address(s))
        finally:
            self.joined = None
        return 0

    def abort_delivery(self):
        """Give up a delivery whose sender aborted it or has gone (AMQP 1.0 §2.7.5)."""
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
        self.current_address = None
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
            if entry is not None:
                entry.discard_held(d)
        else:
            for outlet in outlets:
                if not outlet.detached:
                    outlet.abandon(d)
        return self.core.deliveries.release(d)

    def _disown(self, d):
        """Have nobody told of an aborted delivery's outcome: its sender holds it settled."""
        if d.source_index == self.core.fanouts.index:
            self.core.fanouts.records[d.token].source_index = NOWHERE
        else:
            d.source_index = NOWHERE

    def address_in(self, data, size):
        """Return the `to` of a message; None where it has none, and empty where it is malformed."""
        found: octets = cython.NULL
        length: uint32_t = 0
        result: cython.int = find_to(data, size, cython.address(found), cython.address(length))
        if result == FOUND:
            return self.meant(data, size, found, length)
        return None if result == ABSENT else b""

    def turn_away(self, token, settled, address):
        """Answer for a message that leads nowhere: its `to` is missing, forbidden or nobody's."""
        if self.space is not None:
            self.space.unroutable += 1
        if settled:
            return 0
        if self.refuser is None:
            return self.reply(token, RELEASED, True)
        self.refuser(self, token, address)
        return 0

    def answer(self, token: int, state) -> None:
        """Answer for such a message.

        Args:
            token: Its delivery-id.
            state: A rejected outcome, as octets; None releases it: nobody is there now.
        """
        verdict: Verdict
        code: cython.int = RELEASED if state is None else REJECTED
        fill_verdict(cython.address(verdict), code, state)
        verdict.settled = True
        self.resolve_outcome(token, cython.address(verdict))

    def choose_entry(self, data, size):
        """Find where a message goes: the link's own entry, or that of its `to`."""
        found: octets = cython.NULL
        length: uint32_t = 0
        if self.entry is not None:
            return self.entry
        if find_to(data, size, cython.address(found), cython.address(length)) != 1:
            return None
        address: bytes = self.meant(data, size, found, length)
        if self.permit is not None and not self.permit[address]:
            return None
        entry: AddressEntry = self.space.known(address)
        if entry is not None:
            return entry
        start_s: cython.double = clock_s()
        entry = self.space.resolve_for(address, self)
        self.session.wire.pause_if_late(start_s)
        return entry

    def meant(self, data, size, found, length):
        """Return the address that a message means by its `to`, and what it says of that."""
        address: bytes = bytes_from(found, length)
        if self.space is None or self.space.meaning is None:
            return address
        kind: cython.int = read_destination(data, size)
        if kind == SAYS_NOTHING:
            return address
        return self.space.meaning(address, kind == SAYS_TOPIC)

    def reply(self, token, code, settled):
        verdict: Verdict
        fill_verdict(cython.address(verdict), code, None)
        verdict.settled = settled
        self.resolve_outcome(token, cython.address(verdict))
        return 0


@cython.cfunc
def _selects(outlets: list) -> cython.bint:
    """Return whether one of these takes only some messages."""
    for outlet in outlets:
        if type(outlet) is OutgoingLink and cython.cast(OutgoingLink, outlet).selector is not None:
            return True
    return False


@cython.cfunc
def _may_all_refuse(outlets: list) -> cython.bint:
    """Return whether there is none of these that takes every message."""
    for outlet in outlets:
        if type(outlet) is not OutgoingLink or not is_picky(cython.cast(OutgoingLink, outlet)):
            return False
    return True
