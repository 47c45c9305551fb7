"""The unsettled deliveries of a session's sending side, by delivery-id.

Theory of operation. Ids are consecutive, so a ring indexed by id holds what is under way. A slot is
as small as can be, for thousands of them are touched between a message and its settlement: the id,
and a number that stands for all the rest, the `Origin`. Deliveries whose ids and tokens go up
together, from one source over one link, share an origin; that is nearly all of them.

The ring starts at the oldest delivery that may be unsettled and grows up to `RING_MAX`. Beyond that
the oldest ones spill to a map: one item may be held for an hour while millions pass. One whose
outcome nobody waits for, a copy of a multicast say, is forgotten instead, so that a subscriber that
never settles takes no more memory than the ring.
"""

import cython
from cython.cimports.cogwork.dataplane.transport.shipment import NOWHERE
from cython.cimports.libc.stdlib import calloc, free, realloc

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

RING_MIN = cython.declare(uint32_t, 64)
RING_MAX = cython.declare(uint32_t, 65536)
"""Unsettled deliveries of a session indexed directly; older ones spill to a map."""

ORIGINS_MIN = cython.declare(uint32_t, 4)


class UnsettledRing:
    """What was sent and not settled: which link it went by, and which source waits to hear of it."""

    def __cinit__(self):
        self.spilled = {}

    def __dealloc__(self):
        free(self.slots)
        free(self.origins)

    def __len__(self) -> int:
        """Count the deliveries."""
        count: cython.Py_ssize_t = len(self.spilled)
        at: uint32_t
        for at in range(self.size):
            if self.slots[at]:
                count += 1
        return count

    def __contains__(self, delivery_id: int) -> bool:
        """Return whether a delivery is unsettled."""
        sent: Sent
        return self.find(delivery_id, cython.address(sent)) or delivery_id in self.spilled

    # -- what is sent

    def track(self, delivery_id, link_index, s):
        """Remember a delivery; ids come in order, with gaps where deliveries were sent settled."""
        origin: uint32_t = self._origin_of(s.token - delivery_id, link_index, s)
        if self.size == 0 or delivery_id - self.first >= self.size:
            self._make_room(delivery_id, delivery_id)
        self.slots[delivery_id & (self.size - 1)] = slot_of(delivery_id, origin)
        self.origins[origin].uses += 1
        return 0

    def track_run(self, first, link_index, s, pieces, count):
        """Remember deliveries with consecutive ids from `first` on."""
        index: uint32_t = 0
        last: uint32_t = first + count - 1
        if self.size < count or last - self.first >= self.size:
            self._make_room(first, last)
        while index < count:
            index += self._track_alike(first + index, link_index, s, pieces + index, count - index)
        return 0

    def _track_alike(self, first, link_index, s, pieces, count):
        """Remember as many as share an origin; return how many those were."""
        index: uint32_t
        mask: uint32_t = self.size - 1
        offset: uint64_t = pieces[0].token - first
        origin: uint32_t = self._origin_of(offset, link_index, s)
        for index in range(count):
            if pieces[index].token - (first + index) != offset:
                count = index
                break
            self.slots[(first + index) & mask] = slot_of(first + index, origin)
        self.origins[origin].uses += count
        return count

    def skip(self, first, following):
        """Note that the deliveries from `first` to before `following` are settled, or soon will be."""
        if self.first == first:
            self.first = following

    # -- what is settled

    def find(self, delivery_id, sent):
        """Describe a delivery that the ring holds; False where it does not."""
        slot: uint64_t
        if self.size == 0:
            return False
        slot = self.slots[delivery_id & (self.size - 1)]
        if not slot or id_of(slot) != delivery_id:
            return False
        self._describe(slot, sent)
        return True

    def forget(self, delivery_id):
        """Drop what is known of a delivery; return whether anything was."""
        at: uint32_t
        if self.size:
            at = delivery_id & (self.size - 1)
            if self.slots[at] and id_of(self.slots[at]) == delivery_id:
                self._free(at)
                return True
        return self.spilled.pop(delivery_id, None) is not None

    def take_run(self, first, last, sent):
        """Take out what has one origin from `first` on, up to `last`; describe the first of them.

        Returns how many there were; 0 where the ring does not hold `first`.
        """
        mask: uint32_t = self.size - 1
        limit: uint32_t = last - first + 1
        count: uint32_t = 1
        origin: uint32_t
        if not self.find(first, sent):
            return 0
        origin = origin_of(self.slots[first & mask])
        while count < limit:
            if self.slots[(first + count) & mask] != slot_of(first + count, origin):
                break
            self.slots[(first + count) & mask] = 0
            count += 1
        self.origins[origin].uses -= count - 1
        self._free(first & mask)
        self.skip(first, first + count)
        return count

    def clip(self, first, last):
        """Narrow a range of ids to what the ring may hold; False where that is nothing."""
        newest: uint32_t = self.first + self.size - 1
        if self.size == 0:
            return False
        if cython.cast(cython.int, first[0] - self.first) < 0:
            first[0] = self.first
        if cython.cast(cython.int, last[0] - newest) > 0:
            last[0] = newest
        return cython.cast(cython.int, last[0] - first[0]) >= 0

    def spilled_between(self, first, last):
        """List the spilled deliveries of a range as (id, link, source, generation, token)."""
        span: uint32_t = last - first
        delivery_id: uint32_t
        found: list = []
        if not self.spilled or (first - self.first < self.size and last - self.first < self.size):
            return found  # what the ring covers has not spilled
        if span < cython.cast(uint64_t, len(self.spilled)):
            for step in range(cython.cast(uint64_t, span) + 1):
                delivery_id = first + cython.cast(uint32_t, step)
                if delivery_id in self.spilled:
                    found.append((delivery_id, *self.spilled[delivery_id]))
            return found
        for key, fields in self.spilled.items():
            delivery_id = key
            if delivery_id - first <= span:
                found.append((delivery_id, *fields))
        return found

    def ids_of(self, link_index, token, count):
        """List the delivery-ids of what a link has sent with `count` tokens from `token` on."""
        at: uint32_t
        slot: uint64_t
        origin: cython.pointer(Origin)
        found: list = []
        for delivery_id, fields in self.spilled.items():
            if fields[0] == link_index and cython.cast(uint64_t, fields[3]) - token < count:
                found.append(delivery_id)
        for at in range(self.size):
            slot = self.slots[at]
            if slot:
                origin = self.origins + origin_of(slot)
                if origin.link_index == link_index:
                    if origin.token_offset + id_of(slot) - token < count:
                        found.append(id_of(slot))
        return found

    def take_next(self, link_index, cursor, sent):
        """Take out a link's oldest delivery in the ring from the id `cursor` on, and move that on."""
        at: uint32_t
        if cython.cast(cython.int, cursor[0] - self.first) < 0:
            cursor[0] = self.first
        while cursor[0] - self.first < self.size:
            at = cursor[0] & (self.size - 1)
            cursor[0] += 1
            if self.slots[at] and self.origins[origin_of(self.slots[at])].link_index == link_index:
                self._describe(self.slots[at], sent)
                self._free(at)
                return True
        return False

    def _describe(self, slot, sent):
        origin: cython.pointer(Origin) = self.origins + origin_of(slot)
        sent.delivery_id = id_of(slot)
        sent.token = origin.token_offset + id_of(slot)
        sent.link_index = origin.link_index
        sent.source_index = origin.source_index
        sent.source_generation = origin.source_generation

    def _free(self, at):
        number: uint32_t = origin_of(self.slots[at])
        origin: cython.pointer(Origin) = self.origins + number
        origin.uses -= 1
        if origin.uses == 0 and number != self.recent:
            # A free origin names the next free one.
            origin.link_index = self.free_origin
            self.free_origin = number
        self.slots[at] = 0

    # -- origins

    def _origin_of(self, token_offset, link_index, s):
        """Return the origin used last, where it is the one, else a free one that becomes it."""
        recent: cython.pointer(Origin) = self.origins + self.recent
        if self.recent:
            if (
                recent.token_offset == token_offset
                and recent.link_index == link_index
                and recent.source_index == s.source_index
                and recent.source_generation == s.source_generation
            ):
                return self.recent
        if not self.recent or recent.uses:
            if not self.free_origin:
                self._more_origins()
            self.recent = self.free_origin
            recent = self.origins + self.recent
            self.free_origin = recent.link_index
        recent.token_offset = token_offset
        recent.link_index = link_index
        recent.source_index = s.source_index
        recent.source_generation = s.source_generation
        recent.uses = 0
        return self.recent

    def _more_origins(self):
        """Double the origins and chains the new ones; number 0 stays out of use."""
        size: uint32_t = self.origins_size * 2 if self.origins_size else ORIGINS_MIN
        at: uint32_t
        grown: cython.pointer(Origin) = cython.cast(
            cython.pointer(Origin), realloc(self.origins, size * cython.sizeof(Origin))
        )
        if grown == cython.NULL:
            raise MemoryError("no room for more unsettled deliveries")
        self.origins = grown
        for at in range(max(self.origins_size, cython.cast(uint32_t, 1)), size):
            grown[at].uses = 0
            grown[at].link_index = self.free_origin
            self.free_origin = at
        self.origins_size = size
        return 0

    # -- room

    def _make_room(self, first, last):
        """Move the ring's start past what is settled; else grows it, else spills the oldest.

        Every slot in use has an id from `self.first` on, within the ring's size. Settled deliveries
        have none but count, so that one call may have to make room for many ids.
        """
        at: uint32_t
        end: uint32_t
        if self.size == 0:
            self.first = first
        while self.size <= last - first:
            self._grow()
        end = self.first + self.size
        while last - self.first >= self.size:
            if self.first == end:
                self.first = first
                break
            at = self.first & (self.size - 1)
            if self.slots[at]:
                if self.size < RING_MAX:
                    self._grow()
                    continue
                self._spill(at)
            self.first += 1
        return 0

    def _spill(self, at):
        sent: Sent
        link: LinkEnd
        self._describe(self.slots[at], cython.address(sent))
        if sent.source_index == NOWHERE and self.registry is not None:
            link = cython.cast(LinkEnd, self.registry.termini[sent.link_index])
            if link is not None:
                link.unsettled -= 1
            self._free(at)
            return 0
        self.spilled[sent.delivery_id] = (
            sent.link_index,
            sent.source_index,
            sent.source_generation,
            sent.token,
        )
        self._free(at)
        return 0

    def _grow(self):
        size: uint32_t = self.size * 2 if self.size else RING_MIN
        at: uint32_t
        slot: uint64_t
        grown: cython.pointer(uint64_t) = cython.cast(
            cython.pointer(uint64_t), calloc(size, cython.sizeof(uint64_t))
        )
        if grown == cython.NULL:
            raise MemoryError("no room for more unsettled deliveries")
        for at in range(self.size):
            slot = self.slots[at]
            if slot:
                grown[id_of(slot) & (size - 1)] = slot
        free(self.slots)
        self.slots = grown
        self.size = size
        return 0
