"""How an address copies a message to all who want it.

Theory of operation. What cannot go out at once is queued at its outlet, where the outlet's policy
bounds it. So by default a publisher's message is accepted as soon as every outlet of this container
has it, and waits only for other containers and for nodes, by a record (`fanouts`). Where the address
awaits settlement, the record counts every subscriber. Consumers share one queued copy, links to other
containers another, for their outcomes count differently.
"""

import cython
from cython.cimports.cogwork.dataplane.transport.consumer_end import is_picky, must_wait
from cython.cimports.cogwork.dataplane.transport.shipment import (
    ACCEPTED,
    NOWHERE,
    Verdict,
    fill_verdict,
)
from cython.cimports.libc.string import memset

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class CopyingEntry(HoldingEntry):
    """An address, as far as every outlet gets a copy of its own.

    Attributes:
        awaits_settlement: Whether publishers wait until all subscribers have settled, and hear the
            worst of their outcomes.
    """

    def multicast(self, s, outlets):
        """Give a message to every outlet; those that cannot take it now get it queued."""
        outlet: Terminus
        link: OutgoingLink
        late: list = None
        unjudged: cython.bint
        given: uint32_t = 0
        record: uint32_t = NOWHERE
        shipment: Shipment = s[0]
        if not outlets:
            return self.unroutable(s)
        if not s.settled:
            shipment.tag_size = 0
        for outlet in outlets:
            if type(outlet) is OutgoingLink:
                link = cython.cast(OutgoingLink, outlet)
                unjudged = False
                if is_picky(link):
                    if link.unjudged or must_wait(link):
                        # Its selector is asked in a later turn, at the head of its queue.
                        link.queues_unjudged = unjudged = True
                        self.core.postpone(link)
                    elif link.refuses(s):
                        continue
                given += 1
                if not s.settled:
                    if link.is_branch or self.awaits_settlement:
                        record = self._await(cython.address(shipment), s, record, link.is_branch)
                    else:
                        shipment.source_index = NOWHERE
                if not unjudged and link.is_ready():
                    link.take(cython.address(shipment))
                    continue
            elif outlet.refuses(s):
                continue
            else:
                given += 1
                if not s.settled:
                    record = self._await(cython.address(shipment), s, record, is_branch(outlet))
                if outlet.is_ready():
                    outlet.take(cython.address(shipment))
                    continue
            if late is None:
                late = [outlet]
            else:
                late.append(outlet)
        if late is not None:
            self.multicast_late(cython.address(shipment), late)
        if given == 0:
            return self.unroutable(s)
        self.delivered += given
        if record != NOWHERE:
            return self.core.fanouts.close(record)
        return self._answer(s, ACCEPTED)

    def _await(self, shipment, s, record, branch):
        """Have the publisher wait for one more copy, in a record that is opened for the first one."""
        source: Terminus = self.core.branches if branch else self.core.fanouts
        if record == NOWHERE:
            record = self.core.fanouts.open(s, self.awaits_settlement)
        self.core.fanouts.records[record].waiting += 1
        shipment.token = record
        shipment.source_index = source.index
        shipment.source_generation = source.generation
        return record

    def multicast_late(self, s, late):
        """Queue a copy for every outlet that was not ready: consumers share one, branches another."""
        outlet: Terminus
        branch: cython.bint
        copies: cython.pointer(Delivery)[2]
        copies[0] = copies[1] = cython.NULL
        for outlet in late:
            if type(outlet) is OutgoingLink:
                branch = cython.cast(OutgoingLink, outlet).is_branch
                if copies[branch] == cython.NULL:
                    copies[branch] = self._copy_of(s, outlet)
                cython.cast(OutgoingLink, outlet).enqueue(copies[branch])
                cython.cast(OutgoingLink, outlet).apply_policy(copies[branch])
            elif not s.settled:
                self.core.fanouts.close(cython.cast(uint32_t, s.token))
        for branch in range(2):
            if copies[branch] != cython.NULL:
                self.core.deliveries.release(copies[branch])
        return 0

    def _copy_of(self, s, outlet):
        """Make a whole delivery of a shipment that must wait; the caller releases it."""
        d: cython.pointer(Delivery)
        if not s.settled:
            self._set_source(s, outlet)
        d = self.core.deliveries.make(s)
        d.complete = True
        self.core.deliveries.append(d, s.data, s.size)
        self.limit_life(d)
        return d

    def multicast_run(self, s, pieces, count, outlets):
        """Give a run to every outlet in turn, so that each one's output is written in one piece."""
        outlet: Terminus
        index: uint32_t
        source_index: uint32_t = s.source_index
        source_generation: uint32_t = s.source_generation
        traits: cython.int = self._traits_of(outlets)
        awaited: cython.bint = not s.settled and (self.awaits_settlement or traits & LEADS_ON)
        late: cython.pointer(Delivery)[RUN_MAX]
        if not outlets or traits & PICKY:
            for index in range(count):
                s.data = pieces[index].data
                s.size = pieces[index].size
                s.token = pieces[index].token
                self.multicast(s, outlets)
            return 0
        memset(late, 0, count * cython.sizeof(cython.pointer(Delivery)))
        if awaited:
            for index in range(count):
                s.token = pieces[index].token
                pieces[index].token = self.core.fanouts.open(s, self.awaits_settlement)
        for outlet in outlets:
            if not s.settled:
                self._set_source(s, outlet)
                if awaited and self._is_awaited(outlet):
                    for index in range(count):
                        self.core.fanouts.records[pieces[index].token].waiting += 1
            self._give_run(s, pieces, late, outlet, count)
        self.delivered += cython.cast(uint64_t, len(outlets)) * count
        for index in range(count):
            if late[index] != cython.NULL:
                self.core.deliveries.release(late[index])
            if awaited:
                self.core.fanouts.close(cython.cast(uint32_t, pieces[index].token))
        if s.settled or awaited:
            return 0
        return self._accept_run(source_index, source_generation, pieces, count)

    def _give_run(self, s, pieces, late, outlet, count):
        """Give a run to one outlet, until it takes no more; then the rest of it is queued there.

        Only an outlet that takes no more has noted that it is to be woken.
        """
        taken: uint32_t = 0
        step: int64_t
        while taken < count:
            step = outlet.take_run(s, pieces + taken, count - taken)
            if step == 0:
                return self._run_late(s, pieces, late, outlet, taken, count)
            taken += cython.cast(uint32_t, step)
        return 0

    def _accept_run(self, source_index, source_generation, pieces, count):
        """Answer for a run that nobody is waited for; consecutive deliveries in one go."""
        verdict: Verdict
        first: uint32_t = 0
        following: uint32_t
        source: Terminus = self.core.resolve(source_index, source_generation)
        if source is None:
            return 0
        fill_verdict(cython.address(verdict), ACCEPTED, None)
        while first < count:
            following = first + 1
            while following < count and (
                pieces[following].token == pieces[following - 1].token + 1
            ):
                following += 1
            if following == first + 1:
                source.resolve_outcome(pieces[first].token, cython.address(verdict))
            else:
                source.resolve_run(pieces[first].token, following - first, cython.address(verdict))
            first = following
        return 0

    def _traits_of(self, outlets):
        """Return what is to be heeded about outlets: `PICKY`, `LEADS_ON`."""
        outlet: Terminus
        traits: cython.int = 0
        for outlet in outlets:
            if type(outlet) is OutgoingLink:
                if is_picky(cython.cast(OutgoingLink, outlet)):
                    return PICKY
                if cython.cast(OutgoingLink, outlet).is_branch:
                    traits = LEADS_ON
            elif type(outlet) is LostBranch and cython.cast(LostBranch, outlet).gave_up:
                return PICKY
            else:
                traits = LEADS_ON
        return traits

    def _is_awaited(self, outlet):
        """Return whether publishers wait for the outcome of an outlet's copy."""
        return self.awaits_settlement or type(outlet) is not OutgoingLink or is_branch(outlet)

    def _set_source(self, s, outlet):
        """Name who hears of the outcome of an outlet's copy: nobody where it is not awaited."""
        source: Terminus
        if not self._is_awaited(outlet):
            s.source_index = NOWHERE
            return 0
        source = self.core.branches if is_branch(outlet) else self.core.fanouts
        s.source_index = source.index
        s.source_generation = source.generation
        return 0

    def _run_late(self, s, pieces, late, outlet, first, count):
        """Queue the rest of a run for an outlet that could not take it; copies are shared."""
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
                d = self._copy_of(s, outlet)
                cython.cast(OutgoingLink, outlet).enqueue(d)
                cython.cast(OutgoingLink, outlet).apply_policy(d)
                self.core.deliveries.release(d)
                continue
            if late[index] == cython.NULL:
                late[index] = self._copy_of(s, outlet)
            cython.cast(OutgoingLink, outlet).enqueue(late[index])
            cython.cast(OutgoingLink, outlet).apply_policy(late[index])
        if type(outlet) is OutgoingLink:
            # A run that filled the session's window leaves the link neither stalled nor without
            # credit: only this makes the wire wake it when the window opens.
            cython.cast(OutgoingLink, outlet).pump()
        return 0
