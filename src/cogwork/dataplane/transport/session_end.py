"""A session's compiled end: its windows, and which unsettled delivery an outcome belongs to.

Theory of operation. An unsettled delivery that was sent has an entry in its session's ring that
names its source by index and generation; a source that has gone is simply not found. Settlements,
credit and session windows are gathered while a batch is scanned and written when it ends.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import (
    bytes_from,
    octets,
    octets_of,
    store_uint,
)
from cython.cimports.cogwork.dataplane.terminus import KEEP, REFUSE, UNKNOWN, Terminus
from cython.cimports.cogwork.dataplane.transport.ends import ReceivingEnd
from cython.cimports.cogwork.dataplane.transport.frames import (
    HEADER_ROOM_BYTES,
    end_performative,
    put_bool,
    put_performative,
)
from cython.cimports.cogwork.dataplane.transport.scan import (
    FlowFields,
    TransferFields,
    parse_disposition,
    parse_flow,
    parse_transfer,
)
from cython.cimports.cogwork.dataplane.transport.shipment import (
    RECEIVED,
    REJECTED,
    RELEASED,
    fill_verdict,
)
from cython.cimports.cogwork.dataplane.transport.transfers import parse_common_transfer
from cython.cimports.cogwork.dataplane.transport.wire import Wire
from cython.cimports.libc.stdint import uint8_t
from cython.cimports.libc.string import memcpy, memset

from cogwork.amqp.errors import ProtocolError
from cogwork.amqp.kinds import composite_from
from cogwork.dataplane.encoding.codec import decode

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

SESSION_HELD_MAX_BYTES = cython.declare(int64_t, 8 * 1024 * 1024)
"""Above this much held for one session its window stays closed until some of it has gone."""

STALE_STATE = cython.declare(
    bytes,
    b"\x00\x53\x25\xc0\x1e\x01\x00\x53\x1d\xc0\x18\x01\xa3\x15cogwork:stale-attempt",
)
"""Rejected with the condition that tells a consumer its claim came too late."""

IN_DOUBT_STATE = cython.declare(
    bytes,
    b"\x00\x53\x25\xc0\x1f\x01\x00\x53\x1d\xc0\x19\x01\xa3\x16cogwork:claim-in-doubt",
)
"""Rejected with the condition that tells a consumer that nothing is known of its claim."""


class Session(Settlements):
    """One session's windows, its links by the peer's handle, and its unsettled deliveries."""

    def __init__(
        self,
        wire: Wire,
        local_channel: int,
        next_incoming_id: int,
        remote_window: int,
        incoming_window: int,
    ):
        """Make a session.

        Args:
            wire: The connection it runs on.
            local_channel: The channel that this side sends on.
            next_incoming_id: The peer's next-outgoing-id.
            remote_window: The peer's incoming-window in frames.
            incoming_window: How many frames the peer may send ahead.
        """
        self.wire = wire
        self.core = wire.core
        self.local_channel = local_channel
        self.next_incoming_id = next_incoming_id
        self.remote_window = remote_window
        self.incoming_window = incoming_window
        self.incoming_window_max = incoming_window
        self.links = []
        self.links_due = []
        self.sent = UnsettledRing()
        self.sent.registry = wire.core.registry

    def peer_began(self, next_incoming_id: int, remote_window: int) -> None:
        """Take in the peer's answer to a begin that this side sent first."""
        self.next_incoming_id = next_incoming_id
        self.remote_window = remote_window

    def map_link(self, handle: int, link) -> None:
        """Let transfers and flows with the peer's `handle` reach `link`; None unmaps it.

        For anything but a link's compiled end, one that was refused say, transfers are thrown away;
        the last flow is kept for `take_early_flow`.
        """
        while len(self.links) <= handle:
            self.links.append(None)
        self.links[handle] = link
        if link is None and self.early_flows is not None:
            self.early_flows.pop(handle, None)

    def take_early_flow(self, handle: int) -> None:
        """Apply the flow that came for a link before it had its compiled end, if there was one."""
        f: FlowFields
        kept: bytes = None if self.early_flows is None else self.early_flows.pop(handle, None)
        link = self.link_of(handle)
        if kept is not None and isinstance(link, LinkEnd):
            memcpy(cython.address(f), octets_of(kept), cython.sizeof(FlowFields))
            cython.cast(LinkEnd, link).on_flow(cython.address(f))

    def end(self) -> None:
        """Discard from now on whatever arrives; the links must have been detached."""
        self.ended = True

    @property
    def unsettled(self) -> int:
        """Counts the deliveries that were sent on this session and are not settled."""
        return len(self.sent)

    def end_batch(self):
        self.dirty = False
        if not self.ended and not self.wire.closed:
            try:
                self.write_due()
            except Exception as error:
                self.wire._blame(error)
        return 0

    def relieve(self):
        self.is_starved = False
        if not self.ended:
            self.replenish()
        return 0

    def replenish(self):
        """Open the window again once half of it is used and what is held has gone on."""
        if self.flow_due or self.incoming_window > self.incoming_window_max // 2:
            return 0
        if (
            self.held_bytes > 0
            and self.core.deliveries.held_bytes > self.core.deliveries.held_bytes_max
        ):
            if not self.is_starved:
                self.is_starved = True
                self.core.deliveries.starved.append(self)
            return 0
        if self.holds_too_much():
            return 0
        self.flow_due = True
        return self.mark_dirty()

    def narrow(self, frames: int) -> None:
        """Begin with a smaller window than it may have later: there is little memory left."""
        self.incoming_window = min(self.incoming_window, cython.cast(uint32_t, frames))

    def _window(self):
        """Return how many frames the peer may send: of who holds something, by what is left."""
        if self.wire.held_bytes == 0:
            return self.incoming_window_max
        return max(
            self.incoming_window,
            self.core.window_frames(self.incoming_window_max, self.wire.max_frame_in),
        )

    def holds_too_much(self):
        """Tell whether the window must stay as it is: one that holds nothing is never to blame."""
        if self.held_bytes > SESSION_HELD_MAX_BYTES:
            return True
        return (
            self.held_bytes > 0
            and self.core.deliveries.held_bytes > self.core.deliveries.held_bytes_max
        )

    # -- transfer, flow, disposition

    def run_limit(self, handle, size, message_size_max):
        limit: uint64_t
        link = self.link_of(handle)
        if not isinstance(link, ReceivingEnd):
            return 0
        limit = cython.cast(ReceivingEnd, link).run_limit(size, message_size_max)
        return cython.cast(uint32_t, min(limit, cython.cast(uint64_t, self.incoming_window)))

    def route_run(self, handle, pieces, count, settled):
        taken: uint32_t
        self.incoming_window -= count
        self.next_incoming_id += count
        taken = cython.cast(ReceivingEnd, self.links[handle]).route_run(pieces, count, settled)
        self.incoming_window += count - taken
        self.next_incoming_id -= count - taken
        self.replenish()
        return taken

    def on_transfer(self, p, at, end):
        t: TransferFields
        problem: cython.p_const_char
        if not parse_common_transfer(p, at, end, cython.address(t)):
            problem = parse_transfer(p, at, end, cython.address(t))
            if problem != cython.NULL:
                self.wire.owner.on_violation("amqp:decode-error", problem.decode())
                return 0
        if self.incoming_window == 0:
            self.wire.owner.on_session_violation(
                self,
                "amqp:session:window-violation",
                f"a transfer beyond the incoming-window of {self.incoming_window_max} frames",
            )
            return 0
        self.incoming_window -= 1
        self.next_incoming_id += 1
        link = self.link_of(t.handle)
        if not isinstance(link, ReceivingEnd):
            if link is not None and not isinstance(link, LinkEnd):
                return self.replenish()
            self.wire.owner.on_session_violation(
                self,
                "amqp:session:unattached-handle",
                f"a transfer on handle {t.handle}, where no sender is attached",
            )
            return 0
        cython.cast(ReceivingEnd, link).on_transfer(cython.address(t))
        return self.replenish()

    def on_flow(self, p, at, end):
        f: FlowFields
        problem: cython.p_const_char = parse_flow(p, at, end, cython.address(f))
        unseen: uint32_t
        widened: cython.bint
        if problem != cython.NULL:
            self.wire.owner.on_violation("amqp:decode-error", problem.decode())
            return 0
        unseen = self.next_outgoing_id
        if f.has_next_incoming_id:
            unseen -= f.next_incoming_id
        widened = self.remote_window <= 0
        self.remote_window = cython.cast(int64_t, f.incoming_window) - unseen
        if widened and self.remote_window > 0:
            self.wire.wake_stalled()
        if not f.has_handle:
            if f.echo:
                self.flow_due = True
                self.mark_dirty()
            return 0
        link = self.link_of(f.handle)
        if isinstance(link, LinkEnd):
            return cython.cast(LinkEnd, link).on_flow(cython.address(f))
        if link is not None:
            # A peer may give credit behind its attach at once; what it gives is absolute, so that
            # the last flow is all that counts (AMQP 1.0 §2.6.7).
            if self.early_flows is None:
                self.early_flows = {}
            self.early_flows[f.handle] = bytes_from(
                cython.cast(octets, cython.address(f)), cython.sizeof(FlowFields)
            )
            return 0
        self.wire.owner.on_session_violation(
            self,
            "amqp:session:unattached-handle",
            f"a flow on handle {f.handle}, where no link is attached",
        )
        return 0

    def on_disposition(self, p, at, end):
        d: DispositionFields
        problem: cython.p_const_char = parse_disposition(p, at, end, cython.address(d))
        if problem != cython.NULL:
            self.wire.owner.on_violation("amqp:decode-error", problem.decode())
            return 0
        if d.from_receiver:
            # A state with fields goes on to another peer: what is malformed ends here.
            if d.state_size > 4 and d.code >= REJECTED and d.code != RELEASED:
                try:
                    _check_state(bytes_from(d.state, d.state_size))
                except ProtocolError as error:
                    self.wire.owner.on_violation("amqp:decode-error", f"disposition: {error}")
                    return 0
            return self.settle_sent(cython.address(d))
        self.wire.owner.on_sender_disposition(
            self,
            d.first,
            d.last,
            d.settled,
            bytes_from(d.state, d.state_size),
        )
        return 0

    def settle_sent(self, d):
        """Apply a receiver's disposition to every delivery in its range (AMQP 1.0 §2.6.12)."""
        verdict: Verdict
        first: uint32_t = d.first
        last: uint32_t = d.last
        newest: uint32_t = self.next_delivery_id - 1
        if cython.cast(cython.int, last - first) < 0:
            self.wire.owner.on_session_violation(
                self, "amqp:invalid-field", f"a disposition from {first} back to {last}"
            )
            return 0
        if d.code == 0 and not d.settled:
            return 0
        if cython.cast(cython.int, last - newest) > 0:
            last = newest  # of what was not sent there is nothing to say
            if cython.cast(cython.int, last - first) < 0:
                return 0
        # Settled without an outcome is the source's default outcome (AMQP 1.0 §3.5.3): released,
        # where it names no other.
        if d.code == 0 or (d.code == RECEIVED and d.settled):
            if self.defaults:
                return self.settle_by_default(first, last)
            verdict.code = RELEASED
            verdict.state = cython.NULL
        else:
            verdict.code = d.code
            verdict.state = d.state
        verdict.state_size = d.state_size
        verdict.settled = d.settled
        if self.sent.spilled:
            self.settle_spilled(first, last, cython.address(verdict))
        if not self.sent.clip(cython.address(first), cython.address(last)):
            return 0
        if verdict.settled:
            return self.settle_range(first, last, cython.address(verdict))
        return self.settle_each(first, last, cython.address(verdict))

    def settle_range(self, first, last, verdict):
        """Settle deliveries; what has one source, one link and consecutive tokens in one go."""
        left: uint32_t = last - first + 1
        count: uint32_t
        sent: Sent
        source: Terminus
        link: LinkEnd
        while left:
            count = self.sent.take_run(last - left + 1, last, cython.address(sent))
            if count == 0:
                left -= 1
                continue
            left -= count
            link = cython.cast(LinkEnd, self.core.registry.termini[sent.link_index])
            if link is not None:
                link.unsettled -= count
            source = self.core.resolve(sent.source_index, sent.source_generation)
            if source is None:
                continue
            if count == 1:
                source.resolve_outcome(sent.token, verdict)
            else:
                source.resolve_run(sent.token, count, verdict)
        self.sent.skip(first, last + 1)
        return 0

    def settle_each(self, first, last, verdict):
        """Pass on what a receiver says that has not settled yet."""
        sent: Sent
        left: uint32_t = last - first + 1
        while left:
            left -= 1
            if self.sent.find(last - left, cython.address(sent)):
                self.settle_one(cython.address(sent), verdict)
        return 0

    def settle_one(self, sent, verdict):
        """Tell one delivery's source its outcome, and confirm to a receiver that settles second."""
        refusal: Verdict
        state: bytes
        reply: cython.int
        link: LinkEnd
        delivery_id: uint32_t = sent.delivery_id
        link_index: uint32_t = sent.link_index
        reply = self.core.answer(sent.source_index, sent.source_generation, sent.token, verdict)
        if not verdict.settled:
            if reply == KEEP:
                return 0
            self.sent.forget(delivery_id)
            if reply in (REFUSE, UNKNOWN):
                state = STALE_STATE if reply == REFUSE else IN_DOUBT_STATE
                fill_verdict(cython.address(refusal), REJECTED, state)
                self.settle(
                    cython.address(self.to_receiver),
                    False,
                    delivery_id,
                    cython.address(refusal),
                    True,
                )
            else:
                self.settle(cython.address(self.to_receiver), False, delivery_id, verdict, True)
        link = cython.cast(LinkEnd, self.core.registry.termini[link_index])
        if link is not None:
            link.unsettled -= 1
        return 0

    def settle_by_default(self, first, last):
        """Settle deliveries with the default outcomes of the sources that they came from."""
        sent: Sent
        verdict: Verdict
        left: uint32_t
        for fields in self.sent.spilled_between(first, last):
            code, state = self.defaults.get(fields[1], (RELEASED, None))
            fill_verdict(cython.address(verdict), code, state)
            self.settle_spilled(fields[0], fields[0], cython.address(verdict))
        if not self.sent.clip(cython.address(first), cython.address(last)):
            return 0
        left = last - first + 1
        while left:
            left -= 1
            if self.sent.find(last - left, cython.address(sent)):
                code, state = self.defaults.get(sent.link_index, (RELEASED, None))
                fill_verdict(cython.address(verdict), code, state)
                self.sent.forget(sent.delivery_id)
                self.settle_one(cython.address(sent), cython.address(verdict))
        self.sent.skip(first, last + 1)
        return 0

    def settle_spilled(self, first, last, verdict):
        sent: Sent
        for fields in self.sent.spilled_between(first, last):
            sent.delivery_id = fields[0]
            sent.link_index = fields[1]
            sent.source_index = fields[2]
            sent.source_generation = fields[3]
            sent.token = fields[4]
            if verdict.settled:
                self.sent.forget(sent.delivery_id)
            self.settle_one(cython.address(sent), verdict)
        return 0

    def confirm(self, delivery_id: int, code: int, state: bytes = None) -> None:
        """Settle a delivery that was sent, once its source kept the receiver waiting for that."""
        verdict: Verdict
        fill_verdict(cython.address(verdict), code, state)
        self.sent.forget(delivery_id)
        self.settle(
            cython.address(self.to_receiver), False, delivery_id, cython.address(verdict), True
        )

    def end_link(self, link_index: int, code: int, state: bytes = None) -> None:
        """Answer for every unsettled delivery of a link that is going.

        Args:
            link_index: The link's.
            code: What their sources hear: LOST where they are in doubt, or an outcome; 0 says
                nothing, where whoever sent them knows what becomes of them.
            state: The outcome encoded, where it says more than its code.
        """
        verdict: Verdict
        fill_verdict(cython.address(verdict), code, state)
        sent: Sent
        cursor: uint32_t = self.sent.first
        while self.sent.take_next(link_index, cython.address(cursor), cython.address(sent)):
            if code:
                self.core.answer(
                    sent.source_index, sent.source_generation, sent.token, cython.address(verdict)
                )
        for key, fields in list(self.sent.spilled.items()):
            if fields[0] == link_index:
                del self.sent.spilled[key]
                if code:
                    self.core.answer(fields[1], fields[2], fields[3], cython.address(verdict))

    # -- what is due at the end of a batch

    def write_flow(self, link, echo):
        """Write the session's state, with a link's where one is given (AMQP 1.0 §2.7.4)."""
        frame: cython.pointer(uint8_t) = self.wire.reserve(HEADER_ROOM_BYTES)
        count: uint8_t = 4 if link is None else 9
        if echo:
            count = 10
        p: cython.pointer(uint8_t) = put_performative(frame, self.local_channel, 0x13, count)
        if not self.holds_too_much():
            self.incoming_window = self._window()
        p = store_uint(p, self.next_incoming_id)
        p = store_uint(p, self.incoming_window)
        p = store_uint(p, self.next_outgoing_id)
        p = store_uint(p, 0x7FFFFFFF)
        self.flow_due = False
        if link is not None:
            link.promise()
            p = store_uint(p, link.handle)
            p = store_uint(p, link.delivery_count)
            p = store_uint(p, link.credit)
            p = link.put_available(p)
            p = put_bool(p, link.drain)
        elif echo:
            memset(p, 0x40, 5)
            p += 5
        if echo:
            p = put_bool(p, True)
        return self.wire.committed(end_performative(frame, p, 0))

    def write_due(self):
        links: list = self.links_due
        link: ReceivingEnd
        self.write_ranges()
        if links:
            self.links_due = []
            for link in links:
                link.flow_due = False
                if not link.detached:
                    self.write_flow(link, False)
        if self.flow_due:
            self.write_flow(None, False)
        return 0


def _check_state(state: bytes) -> None:
    """Decode a delivery state.

    Raises:
        ProtocolError: It is malformed.
    """
    composite_from(decode(state, 0)[0])
