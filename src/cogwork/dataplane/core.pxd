cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from cogwork.dataplane.transport.deliveries cimport Deliveries
from cogwork.dataplane.due cimport Due
from cogwork.dataplane.addresses.fanouts cimport Branches, Fanouts
from cogwork.dataplane.registry cimport Registry
from cogwork.dataplane.transport.shipment cimport Verdict
from cogwork.dataplane.source_hash cimport COGWORK_SOURCE_HASH
from cogwork.dataplane.terminus cimport Terminus

cdef enum:
    READ_SIZE_BYTES = 262144
    CONGESTED_AT_BYTES = 1048576
    # Output written but not sent within one batch: a wide fan-out is sent in slices of this size.
    UNFLUSHED_MAX_BYTES = 16777216


@cython.final
cdef class Core:
    cdef Registry registry
    cdef readonly Deliveries deliveries
    cdef Fanouts fanouts
    cdef Branches branches
    cdef readonly list wires
    cdef list dirty_wires
    cdef list dirty_sessions
    cdef list dirty_ports
    cdef list lost_wires
    cdef readonly list expiring
    # Entries that hold something, or did when they were looked at last.
    cdef list holding
    cdef public list overdue
    cdef uint8_t* buffer
    cdef readonly double now
    cdef public object on_error
    cdef uint32_t next_origin
    cdef int64_t unflushed_bytes
    # Output that was written since somebody looked how much of it waits.
    cdef int64_t unchecked_bytes
    # Called when too much is held; tells whether that could be helped.
    cdef public object on_no_room
    cdef bint is_making_room
    cdef double no_room_until_s
    cdef bint flushing
    cdef public int64_t congested_at_bytes
    cdef readonly uint64_t frames_in
    cdef uint64_t sends
    cdef uint64_t sent_bytes
    cdef readonly uint64_t open_barrier
    cdef readonly uint64_t released_barrier
    cdef public object on_barrier
    # What took long since the last turn, and who has more of it to do.
    cdef double scanned_s
    # Queues by whose work it is; the first one is the next to get its turn.
    cdef dict unscanned
    cdef public object on_unscanned
    # When time is let pass the next time, and who is asked to do so earlier.
    cdef public double next_tick_s
    cdef public object on_due
    cdef bint is_turn_awaited
    cdef bint is_share_used
    cdef bint is_barrier_used
    cdef uint64_t held_barrier
    cdef list held_wires
    cdef int tell_fault(self, object who, object error) except -1
    cdef int use_barrier(self) except -1
    cpdef int hold_output(self) except -1
    cdef int list_holding(self, object entry) except -1
    cdef int flush_all(self) except -1
    cdef int wake_at(self, double due_s) except -1
    cdef int note_scan(self, double took_s) except -1
    cdef int postpone(self, Due due) except -1
    cdef int _await_turn(self) except -1
    cdef Due _next_unscanned(self)
    cdef int _run_ports(self) except -1
    cdef int _write_sessions(self) except -1
    cdef int _send_wires(self) except -1
    cdef int _report_lost(self) except -1
    cdef int _look_for_room(self) except -1
    cpdef uint32_t window_frames(self, uint32_t frames, uint32_t frame_bytes) noexcept

    # Has `end_batch` called when what arrives now has been taken.
    cdef inline int put_off(self, Due due) except -1:
        if not due.dirty:
            due.dirty = True
            self.dirty_ports.append(due)
        return 0

    # Says whether what may take long has had its share of this turn.
    cdef inline bint is_scanned_out(self) noexcept:
        return self.is_share_used

    cdef inline int register(self, Terminus terminus) except -1:
        return self.registry.register(terminus)

    cdef inline int unregister(self, Terminus terminus) except -1:
        return self.registry.unregister(terminus)

    cdef inline Terminus resolve(self, uint32_t index, uint32_t generation):
        return self.registry.resolve(index, generation)

    cdef inline int answer(self, uint32_t index, uint32_t generation, uint64_t token, Verdict* verdict) except -1:
        return self.registry.answer(index, generation, token, verdict)
