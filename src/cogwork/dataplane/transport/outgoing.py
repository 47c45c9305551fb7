"""The sending end of a link: what the peer's credit allows goes out, the rest waits in its queue.

Deliveries wait here where a multicast's subscriber is slow, or where a delivery of many frames cuts
through. The chunks of a delivery are shared by all outlets; each counts the outlets that still need
it, and those that need none are always the first ones, so freeing is trimming the head.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from, octets_of, store_uint
from cython.cimports.cogwork.dataplane.message.basic import BASIC_FORMAT
from cython.cimports.cogwork.dataplane.message.translation import as_amqp
from cython.cimports.cogwork.dataplane.terminus import ship_from
from cython.cimports.cogwork.dataplane.transport.consumer_end import must_wait
from cython.cimports.cogwork.dataplane.transport.deliveries import join
from cython.cimports.cogwork.dataplane.transport.delivery import (
    age,
    is_over,
    is_single_frame,
    ship,
)
from cython.cimports.cogwork.dataplane.transport.delivery_ring import (
    ring_append,
    ring_at,
    ring_drop_first,
    ring_take_second,
)
from cython.cimports.cogwork.dataplane.transport.sending import frame_room
from cython.cimports.cogwork.dataplane.transport.session_end import Session
from cython.cimports.cogwork.dataplane.transport.shipment import (
    ACCEPTED,
    LOST,
    RELEASED,
    RUN_MAX,
    Piece,
    Verdict,
    fill_verdict,
)
from cython.cimports.libc.stdlib import free

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class OutgoingLink(SendingEnd):
    """A link on which this side sends: the peer's credit, and a queue for what must wait.

    Attributes:
        drains_late: Whether its feeder ends a drain, by `exhaust`, and not the lack of deliveries.
        annotate: Called with each message of a queue; returns what its consumer gets in its place.
            None leaves it as it is.
    """

    def __init__(self, session: Session, handle: int, presettles: bool = False, next_tag: int = 0):
        """Make the sending end of a link.

        Args:
            session: The session it is attached on.
            handle: The handle this side sends its transfers with.
            presettles: Whether every delivery is sent settled (snd-settle-mode 1).
            next_tag: The first delivery-tag's number.
        """
        self.core = session.core
        self.session = session
        self.handle = handle
        self.presettles = presettles
        self.next_tag = next_tag
        self.backlog_bytes_max = 4 * 1024 * 1024
        self.core.register(self)
        self.make_template()

    def __dealloc__(self):
        free(self.queue.slots)

    def head(self):
        return ring_at(cython.address(self.queue), 0)

    @property
    def queue_count(self) -> int:
        """How many deliveries wait."""
        return self.queue.count

    def is_ready(self):
        return self.queue.count == 0 and self.can_start()

    def spare_credit(self):
        return 0 if self.queue.count or self.detached else self.credit

    def put_available(self, p):
        return store_uint(p, self.queue.count)

    def add_to(self, totals):
        totals.links += 1
        totals.unsettled += self.unsettled
        totals.backlog_bytes += self.backlog_bytes
        totals.queued += self.queue.count
        return 0

    def outstanding(self):
        return self.unsettled + self.queue.count

    @property
    def is_midway(self) -> bool:
        """Says whether a delivery has been sent in part."""
        return self.started

    @property
    def is_unjudged(self) -> bool:
        """Says whether what waits first waits for the link's selector, and not for the peer."""
        return self.queue.count != 0 and self.unjudged == self.queue.count

    @property
    def waits_for(self):
        """Names the link whose sender leaves others waiting here, or None.

        That is one with a delivery under way of which all that came was sent on, that could send
        more, and behind which there are deliveries of others.
        """
        d: cython.pointer(Delivery)
        link: ReceivingEnd
        if not self.queue.count or not self.started or self.cursor != cython.NULL:
            return None
        d = self.head()
        if d.complete:
            return None
        if self.queue.count == 1 and (self.feeder is None or not self.feeder.has_waiting()):
            return None
        link = self.core.resolve(d.charged_index, d.charged_generation)
        return link if link is not None and link.may_send() else None

    def pardon(self) -> None:
        """Take back that its backlog is too large: that is another's fault."""
        self.overdue = False

    def take_run(self, s, pieces, count):
        room: uint32_t = frame_room(self)
        index: uint32_t
        size_bytes: uint64_t = 0
        if self.queue.count or not self.can_start():
            return 0
        count = self.run_limit(count)
        for index in range(count):
            if pieces[index].size > room:
                count = index
                break
            size_bytes += pieces[index].size
        if count == 0:
            return Terminus.take_run(self, s, pieces, 1)
        self.write_run(s, pieces, count, size_bytes)
        if self.presettles and not s.settled:
            for index in range(count):
                self._answer(s.source_index, s.source_generation, pieces[index].token, ACCEPTED)
        return count

    def take(self, s):
        sent: uint32_t
        translated: bytes
        shipment: Shipment
        if s.format == BASIC_FORMAT and not (self.is_branch or self.keeps_format):
            translated = as_amqp(s.data, s.size, s.format)
            shipment = s[0]
            shipment.data = octets_of(translated)
            shipment.size = cython.cast(uint32_t, len(translated))
            shipment.format = 0
            s = cython.address(shipment)
        elif self.annotate is not None and s.format == 0:
            translated = self.annotate(bytes_from(s.data, s.size))
            shipment = s[0]
            shipment.data = octets_of(translated)
            shipment.size = cython.cast(uint32_t, len(translated))
            s = cython.address(shipment)
        if s.size <= frame_room(self):
            self.write_first(s, s.data, s.size, False)
            sent = s.size
        else:
            # The first frame goes out in any case: only the shipment knows the delivery-tag.
            sent = frame_room(self)
            self.write_first(s, s.data, sent, True)
            sent = self.send_rest(s, sent)
        if sent < s.size:
            return self.queue_rest(s, sent)
        if self.presettles and not s.settled:
            self._answer(s.source_index, s.source_generation, s.token, ACCEPTED)
        return 0

    def send_parts(self, port, token: int, parts: tuple, settled: bool) -> bool:
        """Send a message as `send` does, whose octets follow each other in several objects."""
        s: Shipment
        size: uint64_t = 0
        sent: uint32_t
        rest: bytes
        for part in parts:
            if type(part) is not bytes:
                raise TypeError(f"a part of a message is bytes, not {part!r}")
            size += cython.cast(uint64_t, len(part))
        if not self.is_ready():
            return False
        ship_from(cython.address(s), port, token, b"", settled)
        s.size = cython.cast(uint32_t, size)
        sent = self.write_parts(cython.address(s), parts)
        if sent < s.size:
            rest = b"".join(parts)
            s.data = octets_of(rest)
            self.queue_rest(cython.address(s), sent)
        elif self.presettles and not s.settled:
            self._answer(s.source_index, s.source_generation, s.token, ACCEPTED)
        return True

    def queue_rest(self, s, sent):
        """Keep what the peer's window did not let go of a message that has been begun."""
        d: cython.pointer(Delivery) = self.core.deliveries.make(s)
        d.complete = True
        self.core.deliveries.append(d, s.data + sent, s.size - sent)
        self.enqueue(d)
        self.started = True
        self.cursor = d.first
        self.cursor_offset = 0
        return self.core.deliveries.release(d)

    def _answer(self, index, generation, token, code):
        verdict: Verdict
        fill_verdict(cython.address(verdict), code, None)
        return self.core.answer(index, generation, token, cython.address(verdict))

    # -- the queue of what must wait

    def push(self, d):
        """Queue a delivery with all the chunks it has, and send what can be sent."""
        self.enqueue(d)
        self.pump()
        return 0

    def enqueue(self, d):
        chunk: cython.pointer(Chunk) = d.first
        if d.format == BASIC_FORMAT and d.complete and not (self.is_branch or self.keeps_format):
            d = translate(self, d)
            self.enqueue(d)
            return self.core.deliveries.release(d)
        if not ring_append(cython.address(self.queue), d):
            raise MemoryError("no room for a longer queue")
        d.refs += 1
        if self.queues_unjudged:
            self.unjudged += 1
        if self.backlog_bytes == 0:
            self.blocked_since_s = self.core.now
        while chunk != cython.NULL:
            chunk.refs += 1
            self.backlog_bytes += chunk.size
            chunk = chunk.next
        return 0

    def pump(self):
        """Send from the queue's head for as long as the peer takes it."""
        while self.queue.count and not self.detached:
            if not self.started and is_over(self.head(), self.core.now):
                self._drop_head()
                continue
            if self.unjudged == self.queue.count and not self.judge_head():
                if self.unscanned:
                    return 0
                continue
            if self.queue.count > 1 and self.pump_run():
                continue
            if self.pump_head(self.head()) == 0:
                return 0
            self.pop()
        return 0

    def judge_head(self):
        """Ask the selector for the queue's head; what it does not want is dropped.

        Returns whether the head is wanted. Where that has to wait, the link is postponed.
        """
        s: Shipment
        d: cython.pointer(Delivery) = self.head()
        # One of several chunks was judged when the last of them came.
        if not d.aborted and d.complete and d.first != cython.NULL and d.first.next == cython.NULL:
            if must_wait(self):
                self.core.postpone(self)
                return False
            ship(cython.address(s), d, d.first.data)
            self.blocked_since_s = self.core.now
            if self.refuses(cython.address(s)):
                if not d.settled:
                    self._answer(d.source_index, d.source_generation, d.token, ACCEPTED)
                self.remove_head()
                return False
        self.unjudged -= 1
        self.queues_unjudged = self.unjudged != 0
        return True

    def _count_unjudged(self):
        """Count anew after one was taken out near the queue's head."""
        self.unjudged = min(
            self.unjudged, self.queue.count - (1 if self.started and self.queue.count else 0)
        )
        self.queues_unjudged = self.unjudged != 0

    def scan_on(self):
        return 0 if self.detached else self.became_ready()

    def source_of_work(self):
        return self.session.wire.source

    def pump_run(self):
        """Send deliveries of one frame and one source from the queue's head in one go.

        Returns how many it sent.
        """
        s: Shipment
        pieces: Piece[RUN_MAX]
        d: cython.pointer(Delivery) = self.head()
        room: uint32_t = frame_room(self)
        room_bytes: uint64_t = cython.cast(uint64_t, self.core.congested_at_bytes)
        size_bytes: uint64_t = 0
        count: uint32_t = 0
        limit: uint32_t
        index: uint32_t
        if self.started or not self.can_start():
            return 0
        limit = self.queue.count - self.unjudged
        limit = self.run_limit(min(limit, cython.cast(uint32_t, RUN_MAX)))
        ship(cython.address(s), d, cython.NULL)
        while count < limit and size_bytes <= room_bytes:
            d = ring_at(cython.address(self.queue), count)
            if (
                not is_single_frame(d, room)
                or d.settled != s.settled
                or d.format != 0
                or d.expires_s
                or d.source_index != s.source_index
                or d.source_generation != s.source_generation
            ):
                break
            pieces[count].data = d.first.data
            pieces[count].size = d.first.size
            pieces[count].token = d.token
            size_bytes += d.first.size
            count += 1
        if count < 2:
            return 0
        self.write_run(cython.address(s), pieces, count, size_bytes)
        self.blocked_since_s = self.core.now
        for index in range(count):
            self.pop()
        return count

    def pump_head(self, d):
        """Send the head delivery's chunks; return 1 once it is done with."""
        chunk: cython.pointer(Chunk)
        if d.aborted:
            if self.started:
                if not self.may_go_on():
                    return 0
                self.write_more(cython.NULL, 0, False, True)
            return 1
        if not self.started:
            self.cursor = d.first
            self.cursor_offset = 0
        while self.cursor != cython.NULL:
            chunk = self.cursor
            if (
                self.send_piece(d, chunk.data, chunk.size, d.complete and chunk.next == cython.NULL)
                == 0
            ):
                return 0
            self.cursor = chunk.next
            self.cursor_offset = 0
            chunk.refs -= 1
            self.backlog_bytes -= chunk.size
            self.blocked_since_s = self.core.now
            if chunk.next == cython.NULL and d.complete:
                self.core.deliveries.trim(d)
                return 1
            self.core.deliveries.trim(d)
        return 0

    def send_piece(self, d, data, size, last):
        """Send `data` from `cursor_offset` on in the peer's frames; return 1 once all is sent."""
        s: Shipment
        room: uint32_t = frame_room(self)
        count: uint32_t
        more: cython.bint
        if not self.started:
            if not self.can_start():
                return 0
            if d.dies_s:
                age(d, self.core.now)
            ship(cython.address(s), d, cython.NULL)
            count = min(size, room)
            more = not (last and count == size)
            self.started = True
            self.started_id = self.session.next_delivery_id
            self.cursor_offset = count
            self.write_first(cython.address(s), data, count, more)
            if not more or count == size:
                return 1
        while True:
            if not self.may_go_on():
                return 0
            count = min(size - self.cursor_offset, room)
            more = not (last and self.cursor_offset + count == size)
            self.write_more(data + self.cursor_offset, count, more, False)
            self.cursor_offset += count
            if self.cursor_offset == size:
                return 1

    def abandon(self, d):
        """Forget a delivery whose sender gave it up; the peer is told in its turn."""
        if not d.settled:
            if not self.started or self.presettles or self.head() != d:
                self._answer(d.source_index, d.source_generation, d.token, LOST)
            elif self.session.sent.forget(self.started_id):
                self.unsettled -= 1
                self._answer(d.source_index, d.source_generation, d.token, LOST)
        return self.became_ready()

    def stream(self, d, data, size, begun):
        """Send a frame that has just arrived, where this outlet has passed all before it.

        `begun` says whether the delivery had frames before.

        Returns 0 when it is done with the frame; 1 when it needs it kept; 2 when it needs it kept
        and has to go on from it.
        """
        if self.detached:
            return 0
        if self.head() != d or self.unjudged == self.queue.count:
            return 1
        if self.cursor != cython.NULL or (not self.started and begun):
            return 1
        self.cursor_offset = 0
        self.blocked_since_s = self.core.now
        if self.send_piece(d, data, size, d.complete):
            if d.complete:
                self.pop()
                self.became_ready()
            return 0
        return 2 if self.started else 1

    def pop(self):
        """Take the head off the queue once it was sent, or was aborted."""
        d: cython.pointer(Delivery) = self.head()
        if self.presettles and not d.settled and not d.aborted:
            self._answer(d.source_index, d.source_generation, d.token, ACCEPTED)
        return self.remove_head()

    def remove_head(self):
        """Take the head off the queue with the chunks that were kept for it."""
        d: cython.pointer(Delivery) = self.head()
        chunk: cython.pointer(Chunk) = self.cursor if self.started else d.first
        ring_drop_first(cython.address(self.queue))
        self.started = False
        if self.unjudged:
            self._count_unjudged()
        while chunk != cython.NULL:
            chunk.refs -= 1
            self.backlog_bytes -= chunk.size
            chunk = chunk.next
        self.cursor = cython.NULL
        self.cursor_offset = 0
        if d.charges and self.feeder is None and self.policy == BLOCK:
            self.core.deliveries.uncharge(d)
        self.core.deliveries.trim(d)
        return self.core.deliveries.release(d)

    def apply_policy(self, d):
        """Charge a publisher for a slow subscriber, or make that one pay, as its policy says."""
        if self.policy == BLOCK:
            self.core.deliveries.charge(d)
        elif self.policy == DROP_OLDEST:
            while self.backlog_bytes > self.backlog_bytes_max and self.queue.count > 1:
                self._drop_oldest()
            return 0
        if self.backlog_bytes > self.backlog_bytes_max and not self.overdue:
            self.overdue = True
            self.core.overdue.append(self)
        return 0

    def _drop_head(self):
        """Drop a delivery that waited here longer than it may; a sender owes it to nobody now."""
        d: cython.pointer(Delivery) = self.head()
        if not d.settled:
            self._answer(d.source_index, d.source_generation, d.token, ACCEPTED)
        self.dropped += 1
        return self.remove_head()

    def _drop_oldest(self):
        """Drop the oldest delivery that was not started."""
        d: cython.pointer(Delivery) = self.head()
        if self.started:
            d = ring_take_second(cython.address(self.queue))
        else:
            ring_drop_first(cython.address(self.queue))
        if self.unjudged:
            self._count_unjudged()
        self._forget_queued(d)
        self.dropped += 1

    def drop_unsettled(self) -> None:
        """Drop what senders wait for in vain, with all before it; what has begun to leave stays."""
        count: uint32_t = self.queue.count
        kept: uint32_t = 1 if self.started else 0
        while count > kept and ring_at(cython.address(self.queue), count - 1).answered:
            count -= 1
        while count > kept:
            self._drop_oldest()
            count -= 1

    def _forget_queued(self, d):
        chunk: cython.pointer(Chunk) = d.first
        while chunk != cython.NULL:
            chunk.refs -= 1
            self.backlog_bytes -= chunk.size
            chunk = chunk.next
        if not d.settled and not d.aborted:
            self._answer(d.source_index, d.source_generation, d.token, ACCEPTED)
        if not d.complete:
            self._leave(d)
        self.core.deliveries.trim(d)
        self.core.deliveries.release(d)

    def _leave(self, d):
        """Take this outlet off a delivery that is still arriving."""
        link: ReceivingEnd = self.core.resolve(d.charged_index, d.charged_generation)
        if link is not None and link.current == d and link.current_outlets is not None:
            link.current_outlets = [o for o in link.current_outlets if o is not self]

    # -- the peer's credit

    def on_flow(self, f):
        under_way: uint32_t = self.delivery_count
        if f.has_link_credit:
            if f.has_delivery_count:
                under_way -= f.delivery_count
            self.credit = f.link_credit - under_way if f.link_credit > under_way else 0
            self.drain = f.drain
            self.became_ready()
        if f.echo and not self.detached and not self.owner.is_put_off:  # else it has no handle yet
            self.session.write_flow(self, False)
        return 0

    def relieve(self):
        self.stalled = False
        return 0 if self.detached else self.became_ready()

    def became_ready(self):
        """Go on with the queue, then lets whoever feeds this link give it more."""
        if self.queue.count:
            self.pump()
        if self.feeder is not None and self.queue.count == 0 and not self.detached:
            self.feeder.on_ready(self)
        return 0 if self.drains_late else self.finish_drain()

    def exhaust(self) -> None:
        """Say that there is nothing more to send at once, where whoever feeds the link knows it."""
        self.finish_drain()

    def finish_drain(self):
        """Use up what credit is left, as a drain asks for (AMQP 1.0 §2.6.7)."""
        if not self.drain or self.detached or (self.queue.count and (self.credit or self.started)):
            return 0
        if self.unscanned:  # there may be more for it
            return 0
        if self.credit:
            self.delivery_count += self.credit
            self.credit = 0
        self.session.write_flow(self, False)
        self.drain = False
        return 0

    def _loss_of(self, d):
        """Return the outcome of a delivery that never left: a copy is no message of its own."""
        is_copy: cython.bint = (
            d.source_index == self.core.fanouts.index or d.source_index == self.core.branches.index
        )
        return LOST if is_copy else RELEASED

    def detach(self) -> None:
        """End the link: what was sent and not settled is in doubt, what waits is released."""
        self._end(LOST, None)

    def conclude(self, code: int, state: bytes = None) -> None:
        """End the link in order: what was sent and not settled has an outcome.

        Args:
            code: The outcome's descriptor code.
            state: The outcome encoded, where it says more than its code.
        """
        self._end(code, state)

    def leave(self) -> None:
        """End the link, and say nothing of what was sent on it: whoever feeds it knows."""
        self._end(0, None)

    def set_default_outcome(self, code: int, state: bytes = None) -> None:
        """Set what a delivery gets that the peer settles without an outcome (AMQP 1.0 §3.5.3)."""
        if self.session.defaults is None:
            self.session.defaults = {}
        self.session.defaults[self.index] = (code, state)

    def _end(self, code, state):
        """End the link; `code` is what sources hear of deliveries that may have been seen."""
        d: cython.pointer(Delivery)
        if self.detached:
            return 0
        self.detached = True
        if self.session.defaults is not None:
            self.session.defaults.pop(self.index, None)
        if self.unsettled:
            self.session.end_link(self.index, code, state)
        while self.queue.count:
            d = self.head()
            if code and not d.settled and not d.aborted:
                if not self.started:
                    self._answer(d.source_index, d.source_generation, d.token, self._loss_of(d))
                elif self.presettles:
                    self._answer(d.source_index, d.source_generation, d.token, LOST)
            self.remove_head()
        self.unsettled = 0
        self.core.unregister(self)
        return 0


@cython.cfunc
def translate(link: OutgoingLink, d: cython.pointer(Delivery)) -> cython.pointer(Delivery):
    """Make a delivery of AMQP 1.0 of one that came by AMQP 0-9-1; the caller releases it."""
    s: Shipment
    joined: bytes = join(d)
    made: cython.pointer(Delivery)
    ship(cython.address(s), d, octets_of(joined))
    joined = as_amqp(s.data, s.size, s.format)
    s.format = 0
    made = link.core.deliveries.make(cython.address(s))
    made.complete = True
    made.expires_s = d.expires_s
    made.dies_s = d.dies_s
    link.core.deliveries.append(made, octets_of(joined), cython.cast(uint32_t, len(joined)))
    return made
