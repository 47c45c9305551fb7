"""How an address copies a message to all who want it.

A message that several get is counted in a record until all have settled (`fanouts`). Who cannot take
it now gets it queued; consumers share one copy of it, ways to other containers another, because
their outcomes count in another way.
"""

import cython
from cython.cimports.cogwork.dataplane.transport.sending import is_picky
from cython.cimports.libc.string import memset

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class CopyingEntry(HoldingEntry):
    """An address, as far as every outlet gets a copy of its own."""

    def multicast(self, s, outlets):
        """Gives a message to every outlet; those that cannot take it now get it queued."""
        outlet: Terminus
        link: OutgoingLink
        late: list = None
        given: uint32_t = 0
        record: uint32_t = 0
        shipment: Shipment = s[0]
        if not outlets:
            return self.unroutable(s)
        if not s.settled:
            record = self.core.fanouts.open(s)
            shipment.source_index = self.core.fanouts.index
            shipment.source_generation = self.core.fanouts.generation
            shipment.token = record
            shipment.tag_size = 0
        for outlet in outlets:
            if type(outlet) is OutgoingLink:
                link = cython.cast(OutgoingLink, outlet)
                if is_picky(link) and link.refuses(s):
                    continue
                given += 1
                if not s.settled:
                    self.core.fanouts.records[record].waiting += 1
                if link.is_ready():
                    if not s.settled:
                        _set_source(self.core, cython.address(shipment), link.is_branch)
                    link.take(cython.address(shipment))
                    continue
            elif outlet.refuses(s):
                continue
            else:
                given += 1
                if not s.settled:
                    self.core.fanouts.records[record].waiting += 1
                if outlet.is_ready():
                    if not s.settled:
                        _set_source(self.core, cython.address(shipment), is_branch(outlet))
                    outlet.take(cython.address(shipment))
                    continue
            if late is None:
                late = [outlet]
            else:
                late.append(outlet)
        if late is not None:
            self.multicast_late(cython.address(shipment), late)
        if given == 0:
            if not s.settled:
                self.core.fanouts.cancel(record)
            return self.unroutable(s)
        self.delivered += given
        if not s.settled:
            self.core.fanouts.close(record)
        return 0

    def multicast_late(self, s, late):
        """Queues a copy for every outlet that was not ready: consumers share one, branches another."""
        outlet: Terminus
        branch: cython.bint
        copies: cython.pointer(Delivery)[2]
        copies[0] = copies[1] = cython.NULL
        for outlet in late:
            if type(outlet) is OutgoingLink:
                branch = cython.cast(OutgoingLink, outlet).is_branch
                if copies[branch] == cython.NULL:
                    copies[branch] = self._copy_of(s, branch)
                cython.cast(OutgoingLink, outlet).enqueue(copies[branch])
                cython.cast(OutgoingLink, outlet).apply_policy(copies[branch])
            elif not s.settled:
                self.core.fanouts.close(cython.cast(uint32_t, s.token))
        for branch in range(2):
            if copies[branch] != cython.NULL:
                self.core.deliveries.release(copies[branch])
        return 0

    def _copy_of(self, s, branch):
        """Makes a whole delivery of a shipment that must wait; the caller releases it."""
        d: cython.pointer(Delivery)
        if not s.settled:
            _set_source(self.core, s, branch)
        d = self.core.deliveries.make(s)
        d.complete = True
        self.core.deliveries.append(d, s.data, s.size)
        self.limit_life(d)
        return d

    def multicast_run(self, s, pieces, count, outlets):
        """Gives a run to every outlet in turn, so that each one's output is written in one piece."""
        outlet: Terminus
        index: uint32_t
        taken: uint32_t
        step: int64_t
        late: cython.pointer(Delivery)[RUN_MAX]
        if not outlets or self._some_are_picky(outlets):
            for index in range(count):
                s.data = pieces[index].data
                s.size = pieces[index].size
                s.token = pieces[index].token
                self.multicast(s, outlets)
            return 0
        memset(late, 0, count * cython.sizeof(cython.pointer(Delivery)))
        if not s.settled:
            for index in range(count):
                s.token = pieces[index].token
                pieces[index].token = self.core.fanouts.open(s)
            s.source_index = self.core.fanouts.index
            s.source_generation = self.core.fanouts.generation
        for outlet in outlets:
            if not s.settled:
                for index in range(count):
                    self.core.fanouts.records[pieces[index].token].waiting += 1
                _set_source(self.core, s, is_branch(outlet))
            taken = 0
            # Until it takes no more: only then is it noted as one to be woken.
            while taken < count:
                step = outlet.take_run(s, pieces + taken, count - taken)
                if step == 0:
                    break
                taken += cython.cast(uint32_t, step)
            if taken < count:
                self._run_late(s, pieces, late, outlet, taken, count)
        self.delivered += cython.cast(uint64_t, len(outlets)) * count
        for index in range(count):
            if late[index] != cython.NULL:
                self.core.deliveries.release(late[index])
            if not s.settled:
                self.core.fanouts.close(cython.cast(uint32_t, pieces[index].token))
        return 0

    def _some_are_picky(self, outlets):
        outlet: Terminus
        for outlet in outlets:
            if type(outlet) is OutgoingLink:
                if is_picky(cython.cast(OutgoingLink, outlet)):
                    return True
            elif type(outlet) is LostBranch and cython.cast(LostBranch, outlet).gave_up:
                return True
        return False

    def _run_late(self, s, pieces, late, outlet, first, count):
        """Queues the rest of a run for an outlet that could not take it; copies are shared."""
        index: uint32_t
        d: cython.pointer(Delivery)
        for index in range(first, count):
            if type(outlet) is not OutgoingLink:
                if not s.settled:
                    self.core.fanouts.close(cython.cast(uint32_t, pieces[index].token))
                continue
            s.token = pieces[index].token
            s.data = pieces[index].data
            s.size = pieces[index].size
            if is_branch(outlet) and not s.settled:
                # Its outcome counts in another way, so it shares no copy.
                d = self._copy_of(s, True)
                cython.cast(OutgoingLink, outlet).enqueue(d)
                cython.cast(OutgoingLink, outlet).apply_policy(d)
                self.core.deliveries.release(d)
                continue
            if late[index] == cython.NULL:
                late[index] = self._copy_of(s, False)
            cython.cast(OutgoingLink, outlet).enqueue(late[index])
            cython.cast(OutgoingLink, outlet).apply_policy(late[index])
        if type(outlet) is OutgoingLink:
            # A run that filled the session's window leaves the link neither stalled nor without
            # credit: only this makes the wire wake it when the window opens.
            cython.cast(OutgoingLink, outlet).pump()
        return 0


@cython.cfunc
@cython.inline
def _set_source(core: Core, s: cython.pointer(Shipment), branch: cython.bint):
    """Names who hears of an outcome: that of a branch counts in another way than a subscriber's."""
    source: Terminus = core.branches if branch else core.fanouts
    s.source_index = source.index
    s.source_generation = source.generation
