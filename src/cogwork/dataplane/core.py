"""What one event loop's wires share, and what happens when a batch ends."""

from collections import deque

import cython
from cython.cimports.cogwork.dataplane.due import Totals
from cython.cimports.cogwork.dataplane.system import clock_s
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memset

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

SCAN_TIME_MAX_S = cython.declare(cython.double, 0.0005)
"""So long selectors, and frames that are not for the data plane, take together in one turn of the
event loop; what has begun then is ended. It is what a quiet round trip takes."""


WINDOW_MIN_FRAMES = cython.declare(int64_t, 8)
"""However little memory is left: a session goes on, and does not have to be asked for each frame."""

WINDOW_SHARE = cython.declare(int64_t, 4)
"""A session is promised one part in so many of the memory that is left."""

UNCHECKED_MAX_BYTES = cython.declare(int64_t, 4 * 1024 * 1024)
"""After so much new output it is looked how much of it has not been taken."""

NO_ROOM_PAUSE_S = cython.declare(cython.double, 0.1)
"""Nobody is asked for room again so soon who could make none."""


class Core:
    """Everything one event loop's wires share: the termini, the read buffer, what is due."""

    def __cinit__(self):
        self.buffer = cython.cast(cython.pointer(uint8_t), malloc(READ_SIZE_BYTES * 5))
        if self.buffer == cython.NULL:
            raise MemoryError("no room for the read buffer")

    def __init__(self, on_error=None):
        self.registry = Registry()
        self.deliveries = Deliveries(self.registry)
        self.fanouts = Fanouts(self.registry)
        self.branches = Branches(self.fanouts)
        self.wires = []
        self.dirty_wires = []
        self.dirty_sessions = []
        self.dirty_ports = []
        self.lost_wires = []
        self.overdue = []
        self.expiring = []
        self.holding = []
        self.congested_at_bytes = CONGESTED_AT_BYTES
        self.held_wires = []
        self.unscanned = {}
        self.open_barrier = 1
        self.on_error = on_error
        self.now = clock_s()

    def __dealloc__(self):
        free(self.buffer)

    @property
    def held_bytes(self) -> int:
        """Counts what is kept of deliveries that wait."""
        return self.deliveries.held_bytes

    @property
    def held_bytes_max(self) -> int:
        """Returns how much may be kept before windows stay closed."""
        return self.deliveries.held_bytes_max

    @held_bytes_max.setter
    def held_bytes_max(self, size_bytes: int) -> None:
        self.deliveries.limit(size_bytes)

    @property
    def is_short(self) -> bool:
        """Tells whether more is held and waits to be sent than may be, windows and all."""
        taken: int64_t = self.deliveries.held_bytes
        for wire in self.wires:
            taken += wire.output_bytes
        return taken > self.deliveries.held_bytes_most

    def window_frames(self, frames, frame_bytes):
        """Tell how many frames a session may send ahead: all it asks for, while there is plenty."""
        left: int64_t = self.deliveries.held_bytes_max - self.deliveries.held_bytes
        if left > self.deliveries.held_bytes:
            return frames
        least: int64_t = min(WINDOW_MIN_FRAMES, cython.cast(int64_t, frames))
        share: int64_t = left // (WINDOW_SHARE * frame_bytes)
        return cython.cast(uint32_t, max(least, min(share, cython.cast(int64_t, frames))))

    def unfinished(self, limit_s: float) -> list:
        """List the links on which one delivery has been coming for longer than a time.

        It counts from when this is asked for the first time.
        """
        terminus: Terminus
        found: list = []
        for terminus in self.registry.termini:
            if terminus is not None and terminus.is_unfinished(self.now, limit_s):
                found.append(terminus)
        return found

    @property
    def held_deliveries(self) -> int:
        """Counts the deliveries that wait."""
        return self.deliveries.count

    @property
    def open_fanouts(self) -> int:
        """Counts the multicast deliveries whose subscribers have not all settled."""
        return self.fanouts.size - self.fanouts.free_count

    def blocked_links(self):
        """List the outgoing links for which something has been waiting."""
        found = []
        totals: Totals
        terminus: Terminus
        for terminus in self.registry.termini:
            if terminus is None:
                continue
            totals.queued = 0
            terminus.add_to(cython.address(totals))
            if totals.queued:
                found.append(terminus)
        return found

    def totals(self) -> dict:
        """Add up what all links and wires hold, in one pass without a Python object for each."""
        totals: Totals
        each: Due
        memset(cython.address(totals), 0, cython.sizeof(Totals))
        for each in self.registry.termini:
            if each is not None:
                each.add_to(cython.address(totals))
        for each in self.wires:
            each.add_to(cython.address(totals))
        return {
            "links": totals.links,
            "unsettled": totals.unsettled,
            "unsettled_in": totals.unsettled_in,
            "partial_bytes": totals.partial_bytes,
            "backlog_bytes": totals.backlog_bytes,
            "unsent_bytes": totals.unsent_bytes,
            "held_bytes": self.deliveries.held_bytes,
        }

    # -- output that must not leave before something is durable

    def use_barrier(self):
        """Have the open barrier closed soon: something happened that waits for it."""
        if not self.is_barrier_used:
            self.is_barrier_used = True
            if self.on_barrier is not None:
                self.on_barrier()
        return 0

    def hold_output(self):
        """Hold whatever is written from now on, on all wires, until the open barrier is released."""
        if self.held_barrier != self.open_barrier:
            self.held_barrier = self.open_barrier
            self.use_barrier()
            for wire in self.wires:
                wire.hold_output()
        return 0

    def close_barrier(self) -> int:
        """Return the barrier of all that has happened so far; what happens now has the next."""
        self.is_barrier_used = False
        self.open_barrier += 1
        return self.open_barrier - 1

    def release(self, barrier: int) -> None:
        """Send what was held for a barrier, and for those before it.

        Args:
            barrier: A closed one; what happened up to it is durable.
        """
        wires: list = self.held_wires
        assert barrier < self.open_barrier
        if barrier <= self.released_barrier:
            return
        self.released_barrier = barrier
        self.held_wires = []
        for wire in wires:
            if wire.release(barrier):
                self.held_wires.append(wire)
        self.flush_all()

    def break_off(self, condition: str, description: str) -> None:
        """Close the connections whose output is held; what is held is never sent.

        Args:
            condition: Why, for programs.
            description: Why, for people.
        """
        wires: list = self.held_wires
        self.held_wires = []
        for wire in wires:
            wire.break_off(condition, description)
        self.flush_all()

    @property
    def held_connections(self) -> int:
        """Counts the connections whose output is held."""
        return len(self.held_wires)

    def tick(self):
        """Read the clock, so that `now` is true even where nothing arrives."""
        self.now = clock_s()

    def wake_at(self, due_s):
        """Have time pass at a moment that comes before the next tick, where somebody can."""
        if due_s < self.next_tick_s and self.on_due is not None:
            self.next_tick_s = due_s
            self.on_due(due_s)
        return 0

    # -- what takes long, and goes on in a later turn

    def note_scan(self, took_s):
        """Count what a selector took; above the turn's share the others wait for the next turn."""
        self.scanned_s += took_s
        if self.scanned_s > SCAN_TIME_MAX_S and self.on_unscanned is not None:
            self.is_share_used = True
            self._await_turn()
        return 0

    def _await_turn(self):
        if not self.is_turn_awaited:
            self.is_turn_awaited = True
            self.on_unscanned()
        return 0

    def postpone(self, due):
        """Have `scan_on` called in a later turn, where somebody calls it; once.

        Sources take turns, so that nobody waits for all that another one has brought; what is of
        one source goes in the order asked.
        """
        source: object
        waiting: object
        if self.on_unscanned is None or due.unscanned:
            return 0
        due.unscanned = True
        source = due.source_of_work()
        waiting = self.unscanned.get(source)
        if waiting is None:
            self.unscanned[source] = deque((due,))
        else:
            waiting.append(due)
        return self._await_turn()

    def _next_unscanned(self):
        """Take out who is the next to go on; the source that it is of is the last from now on."""
        source: object = next(iter(self.unscanned))
        waiting: object = self.unscanned.pop(source)
        due: Due = waiting.popleft()
        if waiting:
            self.unscanned[source] = waiting
        due.unscanned = False
        return due

    def go_on(self) -> None:
        """Go on with what was postponed; called once a turn after `on_unscanned` was.

        Who does not get its turn this time is the first the next time.
        """
        left: cython.Py_ssize_t = sum([len(waiting) for waiting in self.unscanned.values()])
        self.scanned_s = 0.0
        self.is_turn_awaited = self.is_share_used = False
        while left and not self.is_share_used:
            left -= 1
            self._next_unscanned().scan_on()
        if self.unscanned:
            self._await_turn()
        self.flush_all()

    def expire_held(self) -> None:
        """Give up what addresses hold and what is over by now."""
        entries: list = self.expiring
        self.holding = [entry for entry in self.holding if entry.still_holds()]
        self.expiring = []
        for entry in entries:
            if entry.expire_held():
                self.expiring.append(entry)

    def list_holding(self, entry):
        """List an entry that holds something; `expire_held` drops those that no longer do."""
        self.holding.append(entry)
        return 0

    def take_back(self, session, first: uint32_t, last: uint32_t) -> None:
        """Release what addresses hold of a session's deliveries, as their sender wants them back.

        Args:
            session: Where they came.
            first: The first delivery-id.
            last: The last one.
        """
        for entry in self.holding:
            entry.give_back(session, first, last)

    def flush(self):
        """End a batch: let the ports work, writes what is due, sends each dirty wire."""
        self.flush_all()

    def flush_all(self):
        if self.flushing:
            return 0
        self.flushing = True
        try:
            while self.dirty_ports or self.dirty_sessions or self.dirty_wires or self.lost_wires:
                self._run_ports()
                self._write_sessions()
                self._send_wires()
                self._report_lost()
        finally:
            self.flushing = False
            self.unchecked_bytes += self.unflushed_bytes
            self.unflushed_bytes = 0
        if (
            self.deliveries.held_bytes > self.deliveries.held_bytes_most
            or self.unchecked_bytes > UNCHECKED_MAX_BYTES
        ):
            self._look_for_room()
        return 0

    def _look_for_room(self):
        """Have room made where too much is held: between batches, when nothing is half routed."""
        self.unchecked_bytes = 0
        if self.on_no_room is None or self.is_making_room or self.now < self.no_room_until_s:
            return 0
        if not self.is_short:
            return 0
        self.is_making_room = True
        try:
            if not self.on_no_room():
                self.no_room_until_s = self.now + NO_ROOM_PAUSE_S
        finally:
            self.is_making_room = False
        return 0

    def tell_fault(self, who, error):
        """Tell of a fault in what somebody's handler did; raise it where nobody is told."""
        if self.on_error is None:
            raise error
        self.on_error(who, error)
        return 0

    def _run_ports(self):
        ports: list = self.dirty_ports
        if ports:
            self.dirty_ports = []
            _end_batches(ports)
        return 0

    def _write_sessions(self):
        sessions: list = self.dirty_sessions
        if sessions:
            self.dirty_sessions = []
            _end_batches(sessions)
        return 0

    def _send_wires(self):
        wires: list = self.dirty_wires
        if wires:
            self.dirty_wires = []
            _end_batches(wires)
        return 0

    def _report_lost(self):
        """Tell owners that their sockets failed: only now, when nothing is half routed."""
        wires: list = self.lost_wires
        if wires:
            self.lost_wires = []
            for wire in wires:
                wire.report_lost()
        return 0


@cython.cfunc
@cython.exceptval(-1)
def _end_batches(dues: list) -> cython.int:
    """End the batch of each; a fault of one, whom nobody else blames, costs the others nothing."""
    due: Due
    fault: object = None
    for due in dues:
        try:
            due.end_batch()
        except Exception as error:
            fault = error
    if fault is not None:
        raise fault
    return 0
