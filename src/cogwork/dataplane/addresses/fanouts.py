"""The multicast deliveries whose publishers wait until others have settled.

Theory of operation. Which copies a publisher waits for is the address's rule: by default those that
go to other containers and to nodes, with `accept = "settled"` every subscriber's. A record counts
them and keeps the worst outcome. A subscriber that goes without an outcome counts for nothing; a
container that does leaves the publisher in doubt.
"""

import cython
from cython.cimports.cogwork.dataplane.terminus import KEEP, SETTLE
from cython.cimports.cogwork.dataplane.transport.shipment import (
    ACCEPTED,
    LOST,
    MODIFIED,
    RECEIVED,
    REJECTED,
    RELEASED,
    Verdict,
    fill_verdict,
    state_of,
)
from cython.cimports.libc.stdlib import free, realloc

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


ROUTES = cython.declare(cython.int, 2)
TAKEN = cython.declare(cython.int, 3)
"""What `judges` is of an exchange's message: nobody has taken it yet, or somebody has. Then it does
not count that others released it."""


class Fanouts(Terminus):
    """A record for each such delivery: its publisher, and how many still have to settle."""

    def __init__(self, registry: Registry):
        self.registry = registry
        self.states = {}
        registry.register(self)

    def __dealloc__(self):
        free(self.records)
        free(self.free)

    def grow(self):
        size: uint32_t = self.size * 2 if self.size else 256
        records: cython.pointer(FanoutRecord) = cython.cast(
            cython.pointer(FanoutRecord), realloc(self.records, size * cython.sizeof(FanoutRecord))
        )
        if records == cython.NULL:
            raise MemoryError("no room for more unsettled multicast deliveries")
        self.records = records
        vacant: cython.pointer(uint32_t) = cython.cast(
            cython.pointer(uint32_t), realloc(self.free, size * cython.sizeof(uint32_t))
        )
        if vacant == cython.NULL:
            raise MemoryError("no room for more unsettled multicast deliveries")
        self.free = vacant
        index: uint32_t = size
        while index > self.size:
            index -= 1
            self.records[index].used = False
            self.free[self.free_count] = index
            self.free_count += 1
        self.size = size
        return 0

    def open(self, s, judges):
        """Start a record for a shipment; it holds itself open until `close`.

        `judges` says whether subscribers' outcomes count, and not only that they have settled. The
        copies of one exchange's message are marked as `ROUTES` there, by whoever made the record.
        """
        if self.free_count == 0:
            self.grow()
        self.free_count -= 1
        index: uint32_t = self.free[self.free_count]
        record: cython.pointer(FanoutRecord) = self.records + index
        record.token = s.token
        record.source_index = s.source_index
        record.source_generation = s.source_generation
        record.waiting = 1
        record.worst = ACCEPTED
        record.used = True
        record.judges = judges
        return index

    def judge(self, token, verdict):
        """Keep an outcome that is worse than all before it, with what it says besides its code."""
        record: cython.pointer(FanoutRecord) = self.records + token
        if _badness(verdict.code) <= _badness(record.worst):
            return 0
        record.worst = verdict.code
        self.states.pop(token, None)
        if verdict.state != cython.NULL:
            self.states[token] = state_of(verdict)
        return 0

    def lose(self, token):
        """Note that a copy may not have got through: as bad as modified."""
        verdict: Verdict
        fill_verdict(cython.address(verdict), LOST, None)
        return self.judge(token, cython.address(verdict))

    def _conclude(self, record):
        found: FanoutRecord = self.records[record]
        verdict: Verdict
        state: bytes = None
        self.records[record].used = False
        self.free[self.free_count] = record
        self.free_count += 1
        if found.worst != ACCEPTED and self.states:
            state = self.states.pop(record, None)
        if found.judges == TAKEN and found.worst == RELEASED:
            found.worst = ACCEPTED
            state = None
        fill_verdict(cython.address(verdict), found.worst, state)
        return self.registry.answer(
            found.source_index, found.source_generation, found.token, cython.address(verdict)
        )

    def resolve_outcome(self, token, verdict):
        if verdict.code == RECEIVED:
            return KEEP
        if self.is_open(token):
            if verdict.code == ACCEPTED and self.records[token].judges == ROUTES:
                self.records[token].judges = TAKEN
            if self.records[token].judges and verdict.code != LOST:
                self.judge(token, verdict)
            self.close(cython.cast(uint32_t, token))
        return SETTLE


class Branches(Terminus):
    """The same records, as those see them who carry copies to other containers.

    A branch that does not accept its copy leaves the publisher in doubt: subscribers behind it may
    not have got theirs. Where subscribers' outcomes count, so does what the branch says of them.
    """

    def __init__(self, fanouts: Fanouts):
        self.fanouts = fanouts
        fanouts.registry.register(self)

    def resolve_outcome(self, token, verdict):
        if verdict.code == RECEIVED:
            return KEEP
        if verdict.code != ACCEPTED and self.fanouts.is_open(token):
            if verdict.code == LOST or not self.fanouts.records[token].judges:
                self.fanouts.lose(token)
            else:
                self.fanouts.judge(token, verdict)
        return self.fanouts.resolve_outcome(token, verdict)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _badness(code: cython.int) -> cython.int:
    """Order outcomes: rejected is the worst, then modified, released, accepted."""
    if code == REJECTED:
        return 3
    if code in (MODIFIED, LOST):
        return 2
    return 1 if code == RELEASED else 0
