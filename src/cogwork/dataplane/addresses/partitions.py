"""A queue's inlet where several containers share it: each message goes to its partition's owner.

Theory of operation. A message's partition follows from its group-id, else its message-id, by a hash
that every container computes alike. What has neither stays here. Each partition has one owner: this
container's store, or the link to another container. The address holds what its owner has no room
for now, and all behind it, so that a publisher's messages stay in order.

What other containers send comes by `near`, which gives back what is another's: they see it
differently for a moment, and nothing is sent on twice.

A partition is held while messages of it that were stored here matter to later ones. The others
leave it to its holder, so that it has one owner also while containers come and go. A queue on disk
writes down what is held, and holds it again after a restart.
"""

import cython
from cython.cimports.cogwork.dataplane.addresses.owner_outbox import OwnerOutbox
from cython.cimports.cogwork.dataplane.message.envelope import (
    WANTS_GROUP_ID,
    WANTS_MESSAGE_ID,
    Envelope,
    read_any_envelope,
)
from cython.cimports.cogwork.dataplane.queue.forward_dedup import FORWARD_TAG_BYTES
from cython.cimports.cogwork.dataplane.queue.recent import MessageId, cogwork_check, read_message_id
from cython.cimports.cogwork.dataplane.transport.outgoing import OutgoingLink
from cython.cimports.cogwork.dataplane.transport.shipment import RELEASED, Verdict, fill_verdict
from cython.cimports.libc.string import memset

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

COUNT_MAX = PARTITIONS_MAX
"""Partitions of one queue: which of them are held fits one figure of an interest."""


class PartitionedInlet(Terminus):
    """Where publishers of this container come in.

    Attributes:
        store: This container's part of the queue.
        entry: The address that this is the outlet of.
        count: How many partitions there are.
        is_whole: Whether every message belongs to the one partition, whatever it says.
        near: The inlet for what other containers send.
        owners: For each partition the store or a link; None while its owner has no link.
    """

    def __init__(self, store: Store, entry: AddressEntry, count: int, is_whole: bool = False):
        """Take no message that has a partition, until it is told who owns what.

        Args:
            store: This container's part of the queue.
            entry: The address whose outlet this will be.
            count: How many partitions there are.
            is_whole: Whether every message belongs to the one partition, whatever it says.
        """
        assert count == 1 or not is_whole
        if not 1 <= count <= PARTITIONS_MAX:
            raise ValueError(f"{count} partitions; 1 to {PARTITIONS_MAX} are possible")
        self.core = store.core
        self.store = store
        self.entry = entry
        self.count = count
        self.is_whole = is_whole
        self.owners = [None] * count
        self.wants = store.wants & (WANTS_GROUP_ID | WANTS_MESSAGE_ID)
        memset(self.seen_s, 0, cython.sizeof(self.seen_s))
        if store.journal is not None:
            self.bits = store.journal.held_partitions
            for partition in range(count):
                if self.bits >> partition & 1:
                    self.seen_s[partition] = store.now()
        self.core.register(self)
        self.near = NearInlet(self)

    def set_owners(self, owners: list) -> None:
        """Say who owns each partition, and let what waits for its owner go on."""
        assert len(owners) == self.count
        former: object = self.owners[0]
        self.owners = list(owners)
        if self.is_whole and isinstance(former, OwnerOutbox) and self.owners[0] is self.store:
            # What another owner has not answered comes first, and is known if that took it.
            cython.cast(OwnerOutbox, former).set_link(self.near)
        self.entry.serve_held()
        self.entry.renew_credit()

    def held(self, quiet_s: float) -> int:
        """Return which partitions are held here, as bits.

        Args:
            quiet_s: So long one is held after the last message, at least. Where groups are kept in
                order, it is held as long as the store has items, too.
        """
        partition: uint32_t
        bits: uint64_t = 0
        now_s: cython.double = self.store.now()
        has_items: cython.bint = self.store.items.depth > 0 and self.wants & WANTS_GROUP_ID
        for partition in range(self.count):
            if self.seen_s[partition] == 0.0:
                continue
            if has_items or now_s - self.seen_s[partition] < quiet_s:
                bits |= cython.cast(uint64_t, 1) << partition
            else:
                self.seen_s[partition] = 0.0
        self._hold(bits)
        return bits

    def _hold(self, bits):
        """Take note of what is held from now on."""
        if bits != self.bits:
            self.bits = bits
            if self.store.journal is not None:
                self.store.journal.hold_partitions(bits)
        return 0

    def _note(self, partition):
        """Take note of a message that will be stored here."""
        if self.seen_s[partition] == 0.0:
            self._hold(self.bits | (cython.cast(uint64_t, 1) << partition))
        self.seen_s[partition] = self.store.now()
        return 0

    # -- whose a message is

    def locate(self, s):
        """Find a message's partition; -1 where it has none."""
        e: Envelope
        message_id: MessageId
        check: uint64_t
        if self.is_whole:
            return 0
        if read_any_envelope(s.data, s.size, s.format, self.wants, cython.address(e)) < 0:
            return -1
        if e.group_id_size:
            check = cogwork_check(0xA1, e.group_id, e.group_id_size)
        elif e.message_id != cython.NULL:
            read_message_id(e.message_id, e.message_id_size, cython.address(message_id))
            check = cogwork_check(message_id.kind, message_id.data, message_id.size)
        else:
            return -1
        return cython.cast(cython.int, (check ^ (check >> 32)) % self.count)

    def owner_of(self, s):
        """Find who takes a message, and note what will be stored here; None where nobody can."""
        owner: Terminus
        partition: cython.int = self.locate(s)
        if partition < 0:
            return self.store
        owner = self.owners[partition]
        if owner is self.store and not self.is_whole:
            self._note(partition)
        return owner

    def stretch(self, s, pieces, count, owner):
        """Count the first messages of a run that have one owner."""
        index: uint32_t = 1
        while index < count:
            s.data = pieces[index].data
            s.size = pieces[index].size
            if self.owner_of(s) is not owner:
                break
            index += 1
        return index

    # -- taking messages

    def room(self) -> object:
        """Return how many messages can go on at most; None for any number.

        Which of them do depends on their partitions: what is more than its owner takes is held.
        """
        owner: Terminus
        total: object = 0
        for owner in set(self.owners):
            if owner is self.store:
                room: object = self.store.room()
                if room is None:
                    return None
                total += room
            elif isinstance(owner, OwnerOutbox):
                if cython.cast(OwnerOutbox, owner).holds_back:
                    self.entry.rationed = True
                total += cython.cast(OwnerOutbox, owner).room()
            elif owner is not None:
                self.entry.rationed = True
                total += cython.cast(OutgoingLink, owner).credit
        return total

    def refuses(self, s):
        owner: Terminus = self.owner_of(s)
        return owner is None or not owner.is_ready()

    def makes_way(self, s):
        owner: Terminus = self.owner_of(s)
        return owner is not None and owner.makes_way(s)

    def take(self, s):
        owner: Terminus = self.owner_of(s)
        return owner.take(s)

    def take_run(self, s, pieces, count):
        at: uint32_t = 0
        length: uint32_t
        taken: int64_t
        owner: Terminus
        while at < count:
            s.data = pieces[at].data
            s.size = pieces[at].size
            owner = self.owner_of(s)
            if owner is None:
                return at
            length = self.stretch(s, pieces + at, count - at, owner)
            taken = owner.take_run(s, pieces + at, length)
            at += cython.cast(uint32_t, taken)
            if taken < length:
                return at
        return count

    def close(self) -> None:
        """Take it out of use."""
        self.core.unregister(self.near)
        self.core.unregister(self)


class NearInlet(Terminus):
    """Where other containers' publishers come in.

    Attributes:
        outer: The inlet of this container's own publishers.
        misdirected: Messages that were given back, as another container owns them.
    """

    def __init__(self, outer: PartitionedInlet):
        """Take what `outer` would store here.

        Args:
            outer: The inlet of this container's own publishers.
        """
        self.outer = outer
        outer.core.register(self)

    def is_ready(self):
        return self.outer.store.is_ready()

    def makes_way(self, s):
        return self.outer.owner_of(s) is self.outer.store and self.outer.store.makes_way(s)

    def take(self, s):
        # Nobody would hear that a settled one was given back: late and out of order beats lost.
        if self.outer.owner_of(s) is not self.outer.store and not s.settled:
            return self._return(s)
        if s.tag_size == FORWARD_TAG_BYTES and self.outer.is_whole:
            return self.outer.store.take_forwarded(s)
        return self.outer.store.take(s)

    def take_run(self, s, pieces, count):
        at: uint32_t = 0
        length: uint32_t
        taken: int64_t
        owner: Terminus
        while at < count:
            s.data = pieces[at].data
            s.size = pieces[at].size
            s.token = pieces[at].token
            owner = self.outer.owner_of(s)
            if owner is not self.outer.store:
                if not self.is_ready():
                    return at
                self.take(s)
                at += 1
                continue
            length = self.outer.stretch(s, pieces + at, count - at, owner)
            taken = owner.take_run(s, pieces + at, length)
            at += cython.cast(uint32_t, taken)
            if taken < length:
                return at
        return count

    def _return(self, s):
        verdict: Verdict
        self.misdirected += 1
        fill_verdict(cython.address(verdict), RELEASED, None)
        self.outer.core.answer(
            s.source_index, s.source_generation, s.token, cython.address(verdict)
        )
        return 0
