"""Settlement of items in flight: claims, failed attempts, items in doubt.

Theory of operation. Each time an item goes out is an attempt. An accept is a claim: the first one
of the newest attempt is committed and frees the item. Where a consumer vanishes, an item that its
application has is in doubt: it waits for that attempt's claim by another way, then the policy
decides. While nobody else has been given it since, the attempt still counts.

Who claims an attempt that is not open hears what is known: that this claim was counted before; that
it is stale, where there is a later attempt or another one was confirmed; or that it is in doubt,
where nothing is known.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import octets_of
from cython.cimports.cogwork.dataplane.queue.annotations import annotated
from cython.cimports.cogwork.dataplane.queue.audit_events import (
    OUTCOME_ACCEPTED,
    OUTCOME_MODIFIED,
    OUTCOME_RELEASED,
)
from cython.cimports.cogwork.dataplane.queue.journal import cogwork_wall_offset_s
from cython.cimports.cogwork.dataplane.queue.state import RECOVERY_JUMP, is_awaited
from cython.cimports.cogwork.dataplane.queue.stored import (
    HANDED,
    IN_DOUBT,
    LEASED,
    MARKS,
    OUT,
    PRESETTLED,
    READY,
    number_of,
)
from cython.cimports.cogwork.dataplane.terminus import KEEP, REFUSE, SETTLE, UNKNOWN
from cython.cimports.cogwork.dataplane.transport.scan import read_modified
from cython.cimports.cogwork.dataplane.transport.shipment import (
    ACCEPTED,
    LOST,
    MODIFIED,
    RECEIVED,
    REJECTED,
    fill_verdict,
    state_of,
)

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

LEASE_S = cython.declare(cython.double, 10.0)
"""So long an item stays with a consumer of another container while the way there is broken."""

WALL_STEP_S = cython.declare(cython.double, 0.01)
"""A wall clock that is so much off was set."""

REJECTED_BY_CONSUMER, LEFT_IN_DOUBT, ABANDONED = "rejected", "in-doubt", "abandoned"
"""Why an item is dead, for what a consumer said or did not say."""


class Settlement(QueueState):
    """A queue's state, and what is said of each attempt.

    Attributes:
        in_doubt_timeout_s: How long an item in doubt waits for its claim.
        redelivers_in_doubt: Whether it is then delivered again, marked; else it is parked with the
            dead, or stays in doubt where these are not kept.
        waits: How long items waited for their first attempt, in microseconds; None counts nothing.
    """

    def __init__(self, core):
        """Start with nothing, and expect nothing.

        Args:
            core: The core it belongs to.
        """
        QueueState.__init__(self, core)
        self.commits = Commits()
        self.wall_offset_s = cogwork_wall_offset_s()
        self.deadlines = TimerHeap()
        self.in_doubt_timeout_s = 30.0

    # -- what consumers say

    def resolve_outcome(self, token, verdict):
        item: cython.pointer(Item) = self.items.slots.current(token)
        if item == cython.NULL:
            # Only who claims waits for an answer; and a token does not tell which item it was.
            return UNKNOWN if verdict.code == ACCEPTED else SETTLE
        return self.conclude(item, verdict)

    def answer_late(self, number, attempt):
        """Say what is known of an attempt that is not open and not to go on.

        Returns SETTLE where it was confirmed, REFUSE where another one was or is later, UNKNOWN. A
        later number proves nothing where nobody was given it: as after a recovery, and while an
        item is on its way to another container, or has come back from there.
        """
        item: cython.pointer(Item) = self.items.slots.find(number)
        confirmed: uint32_t
        if item != cython.NULL:
            is_overtaken: cython.bint = (
                item.attempt > attempt
                and item.attempt % RECOVERY_JUMP != 0
                and number not in self.unproven
            )
        else:
            confirmed = self.commits.attempt_of(number, self.wall_s())
            if confirmed == attempt and attempt:
                return SETTLE
            is_overtaken = confirmed != 0
        if not is_overtaken:
            return UNKNOWN
        self.stale_claims += 1
        return REFUSE

    def wall_offset(self):
        """Return the wall clock's time where the monotonic clock's is 0.

        It stays what it was until the wall clock is set: reading two clocks one after the other
        gives a little more or less each time, and items that are due at one time keep their order.
        """
        offset_s: cython.double = cogwork_wall_offset_s()
        if not -WALL_STEP_S < offset_s - self.wall_offset_s < WALL_STEP_S:
            self.wall_offset_s = offset_s
        return self.wall_offset_s

    def wall_s(self):
        """Say what time it is, in seconds since 1970."""
        offset_s: cython.double = self.wall_offset_s
        if self.journal is not None:
            offset_s = self.journal.wall_offset_s
        return cython.cast(uint32_t, self.now() + offset_s)

    def conclude(self, item, verdict):
        """Apply what was said of an item's newest attempt (AMQP 1.0 §3.4)."""
        if verdict.code == RECEIVED and not verdict.settled:
            item.flags |= HANDED  # which no journal has: nothing waits for the disk
            return KEEP
        if (
            self.journal is not None
            and verdict.code != LOST
            and (not self.delivers_ahead or (not verdict.settled and is_awaited(self, item)))
        ):
            self.hold_consumer(item)
        if verdict.code == ACCEPTED:
            return self.commit(item, verdict.settled)
        if verdict.code == MODIFIED:
            self.modify(item, verdict)
        elif verdict.code == REJECTED:
            self.rejected += 1
            self.dead_letter(item, REJECTED_BY_CONSUMER, state_of(verdict))
        elif verdict.code == LOST:
            self.lose(item)
        else:
            if self.audit_events is not None:
                self.audit_events.settled(item, OUTCOME_RELEASED)
            self.released += 1
            self.return_item(item)
        return SETTLE

    def return_item(self, item):
        """Give an item back uncounted, as its consumer says.

        That counts as an acquisition where its application may have seen it. Another container also
        releases what its consumer had no room for; that is told from nothing, and not counted.
        """
        if is_unseen(item) or item.flags & LEASED:
            return self.give_back(item)
        return self.release(item)

    def commit(self, item, settled):
        """Confirm a claim: the item is done with.

        It is remembered where somebody may ask for it again. Who settles it with the claim does not:
        only a client that marks its items, and another container, present what they had.
        """
        at_s: uint32_t
        self.accepted += 1
        if self.audit_events is not None:
            self.audit_events.settled(item, OUTCOME_ACCEPTED)
        if self.audit_events is not None or not settled or item.flags & (HANDED | LEASED | MARKS):
            at_s = self.wall_s()
            self.commits.add(number_of(item), item.attempt, at_s)
            if self.journal is not None:
                self.journal.committed(number_of(item), item.attempt, at_s)
        elif self.journal is not None:
            self.journal.done(number_of(item))
        self.discard(item)
        return SETTLE

    def hold_consumer(self, item):
        """Hold what is said to an item's consumer until what happened is durable."""
        return self.core.hold_output()

    def modify(self, item, verdict):
        failed: cython.bint = False
        undeliverable: cython.bint = False
        self.modified += 1
        if self.audit_events is not None:
            self.audit_events.settled(item, OUTCOME_MODIFIED)
        read_modified(
            verdict.state,
            verdict.state_size,
            cython.address(failed),
            cython.address(undeliverable),
        )
        if undeliverable:
            self.exclude(item)
        item = self.annotate(item, verdict)
        return self.fail(item) if failed else self.return_item(item)

    def annotate(self, item, verdict):
        """Add a consumer's annotations to an item's message; return where the item is now."""
        message: bytes = None
        size: uint32_t
        if item.format == 0:
            message = annotated(item.data, item.size, verdict.state, verdict.state_size)
        if message is None:
            return item
        size = cython.cast(uint32_t, len(message))
        if self.journal is not None and size > self.journal.message_bytes_max:
            return item
        item = self.items.rewrite(item, octets_of(message), size)
        if self.journal is not None:
            self.journal.put_again(item)
            self.journal.back(item)
            self.journal.out(item)
        return item

    def in_hand(self, number, attempt):
        """Find an item whose newest attempt is this one and still open; NULL where it is not."""
        item: cython.pointer(Item) = self.items.slots.find(number)
        if item == cython.NULL or item.attempt != attempt:
            return cython.NULL
        return item if item.state == IN_DOUBT or item.state == OUT else cython.NULL

    def given_up(self, number, attempt):
        """Find an item that has come back from this attempt and has not gone out since.

        It may be handed to nobody else for that long, so the attempt can go on. NULL where there is
        none, or where others of its group come first.
        """
        item: cython.pointer(Item) = self.items.slots.find(number)
        if item == cython.NULL or item.attempt != attempt or attempt == 0:
            return cython.NULL
        self.items.restore()
        return item if item.state == READY else cython.NULL

    def claim(self, item: int, attempt: int, code: int = 0x24, state: bytes = None) -> int:
        """Apply an outcome that came by an item's tag instead of over its link.

        Args:
            item: The tag's second part.
            attempt: The tag's third part.
            code: The outcome's descriptor code; accepted where none is given.
            state: The outcome encoded, where it says more than its code.

        Returns:
            SETTLE_CODE, also for a claim that was confirmed before, for as long as that is
            remembered; STALE_CODE where somebody else has the item, or had it; UNKNOWN_CODE where
            it is not known what became of it. What is said of an attempt that is over and is no
            claim does nothing.
        """
        verdict: Verdict
        found: cython.pointer(Item) = self.in_hand(item, attempt)
        fill_verdict(cython.address(verdict), code, state)
        if found == cython.NULL and code == ACCEPTED:
            found = self.given_up(item, attempt)
        if found == cython.NULL:
            return self.answer_late(item, attempt) if code == ACCEPTED else REFUSE
        found.flags |= HANDED
        return self.conclude(found, cython.address(verdict))

    # -- consumers that left in order

    def end_attempt(self, item, verdict, is_named):
        """Apply what follows for an item that is out where its consumer's link ended in order.

        It goes back uncounted, as `released` is the default outcome (AMQP 1.0 §3.5.3), unless the
        source named another one. A client that marks what its application was given tells more: an
        item without the mark was not seen by anybody, and one with it was left half done.

        Args:
            item: It has not been settled.
            verdict: The default outcome.
            is_named: Whether the source named it.
        """
        item.flags &= ~LEASED  # its consumer has gone for certain
        if is_unseen(item):
            return self.give_back(item)
        if item.flags & MARKS and not is_named:
            return self.abandon(item)
        return self.conclude(item, verdict)

    def abandon(self, item):
        """Count an attempt as failed that an application left half done, or park the item.

        Given to somebody else, the item might be processed twice.
        """
        self.abandoned += 1
        if self.redelivers_in_doubt:
            return self.fail(item)
        if self.keeps_dead:
            return self.dead_letter(item, ABANDONED, None)
        # With nowhere to park it the item stays in doubt, as in `resolve_in_doubt`.
        self.items.mark_in_doubt(item)
        item.due_s = 0.0
        self.items.detach_group(item)
        return self.schedule()

    # -- consumers that vanished

    def lose(self, item):
        """Set aside an item that its consumer's application may have; give back any other.

        One at a consumer of another container is set aside in any case: the way there may have
        broken while the consumer goes on, and says that it has it. Its container lets go of it
        before the time is over; then it counts as seen.
        """
        timeout_s: cython.double = self.in_doubt_timeout_s
        if is_unseen(item):
            if not item.flags & LEASED:
                return self.give_back(item)
            timeout_s = LEASE_S
        self.in_doubt_total += 1
        self.items.mark_in_doubt(item)
        item.due_s = self.now() + timeout_s
        if timeout_s <= 0.0:
            return self.resolve_in_doubt(item)
        self.deadlines.push(item.due_s, number_of(item))
        return 0

    def end_lease(self, item):
        """Give back an item in doubt that its consumer's application certainly has not had."""
        return self.give_back(item) if is_unseen(item) else 0

    def resolve_in_doubt(self, item):
        """Decide over an item for which no claim has come."""
        if is_unseen(item) and not item.flags & LEASED:
            return self.give_back(item)
        if self.redelivers_in_doubt:
            return self.fail(item)
        self.parked += 1
        if self.keeps_dead:
            return self.dead_letter(item, LEFT_IN_DOUBT, None)
        # With nowhere to park it the item stays in doubt: it may be claimed yet, and is not lost.
        self.items.detach_group(item)
        return self.schedule()  # the others of its group go on

    def is_at_rest(self):
        """Return whether nothing here waits for a time, or for being put in order or dead-lettered."""
        items: ItemTable = self.items
        if items.expiries.count or items.delays.count or self.deadlines.count:
            return False
        if items.pages.page_expiries.count:
            return False
        if items.is_stirred() or self.exceptions or self.pending_dead_letters:
            return False
        if has_values(items.disorder.histogram):
            return False
        return self.waits is None or not has_values(self.waits)

    def pass_time(self, now_s):
        """Decide over items that have been in doubt for too long; end a period of what counts."""
        timer: Timer
        item: cython.pointer(Item)
        self.items.disorder.histogram.turn(now_s)
        if self.waits is not None:
            self.waits.turn(now_s)
        while self.deadlines.pop_due(now_s, cython.address(timer)):
            item = self.items.slots.find(timer.number)
            if item != cython.NULL and item.state == IN_DOUBT and item.due_s == timer.due_s:
                self.resolve_in_doubt(item)
        return 0

    # -- for people

    def counts(self) -> dict:
        """Count the items by where they stand, and what has become of others so far."""
        items: ItemTable = self.items
        disorder: Histogram = items.disorder.histogram
        return {
            "depth": items.depth,
            "bytes": items.size_bytes,
            "memory-bytes": items.bytes_in_memory(),
            "ready": items.ready.count + items.returned_count,
            "waiting-for-group": items.groups.parked_count,
            "delayed": items.delayed_count,
            "unsettled": items.out_count,
            "in-doubt": items.in_doubt_count,
            "leaving": items.aside_count,
            "groups": items.groups.count,
            "accepted": self.accepted,
            "released": self.released,
            "modified": self.modified,
            "rejected": self.rejected,
            "expired": self.expired,
            "delivery-count-exceeded": self.exceeded,
            "acquisitions-exceeded": self.overacquired,
            "doubted": self.in_doubt_total,
            "doubts-parked": self.parked,
            "abandoned": self.abandoned,
            "dropped": self.dropped,
            "stale-claims": self.stale_claims,
            "removed": self.removed,
            "disorder-p50": disorder.quantile(50),
            "disorder-p99": disorder.quantile(99),
            "disorder-maximum": disorder.maximum,
        }


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def is_unseen(item: cython.pointer(Item)) -> cython.bint:
    """Return whether its consumer's application has certainly not had an item."""
    return (item.flags & (MARKS | PRESETTLED)) != 0 and not item.flags & HANDED


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def has_values(histogram: Histogram) -> cython.bint:
    """Return whether there are values of the latest period, which ends by time."""
    return histogram.latest.bins[0] != 0 or histogram.latest.maximum != 0
