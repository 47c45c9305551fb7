"""The multicast deliveries whose subscribers have not all settled yet."""

import cython
from cython.cimports.cogwork.dataplane.terminus import KEEP, SETTLE
from cython.cimports.cogwork.dataplane.transport.shipment import (
    ACCEPTED,
    LOST,
    RECEIVED,
    Verdict,
    fill_verdict,
)
from cython.cimports.libc.stdlib import free, realloc

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Fanouts(Terminus):
    """A record for each such delivery: who published it, and how many still have to settle."""

    def __init__(self, registry: Registry):
        self.registry = registry
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

    def open(self, s):
        """Starts a record for a shipment; it holds itself open until `close`."""
        if self.free_count == 0:
            self.grow()
        self.free_count -= 1
        index: uint32_t = self.free[self.free_count]
        record: cython.pointer(FanoutRecord) = self.records + index
        record.token = s.token
        record.source_index = s.source_index
        record.source_generation = s.source_generation
        record.waiting = 1
        record.used = True
        record.lost = False
        return index

    def cancel(self, record):
        """Frees a record that nobody waits on, without a word to the publisher."""
        self.records[record].used = False
        self.free[self.free_count] = record
        self.free_count += 1
        return 0

    def _conclude(self, record):
        found: FanoutRecord = self.records[record]
        verdict: Verdict
        self.cancel(record)
        fill_verdict(cython.address(verdict), LOST if found.lost else ACCEPTED, None)
        self.registry.answer(
            found.source_index, found.source_generation, found.token, cython.address(verdict)
        )
        return 0

    def resolve_outcome(self, token, verdict):
        if verdict.code == RECEIVED:
            return KEEP
        if token < self.size and self.records[token].used:
            self.close(cython.cast(uint32_t, token))
        return SETTLE


class Branches(Terminus):
    """The same records, as those see them who carry copies to other containers.

    A subscriber that refuses its copy, or goes, has been served; a branch that does not accept its
    copy leaves the publisher in doubt, for subscribers behind it may not have got theirs.
    """

    def __init__(self, fanouts: Fanouts):
        self.fanouts = fanouts
        fanouts.registry.register(self)

    def resolve_outcome(self, token, verdict):
        if verdict.code == RECEIVED:
            return KEEP
        if verdict.code != ACCEPTED and token < self.fanouts.size:
            self.fanouts.records[token].lost = True
        return self.fanouts.resolve_outcome(token, verdict)
