"""The receiving end of a link: credit given, deliveries counted and routed, their outcomes passed back.

A transfer goes by its link to an `AddressEntry`, and by that to an outlet. A delivery of several
frames cuts through frame by frame, or is assembled where the entry's outlets take only whole ones.
"""

import cython
from cython.cimports.cogwork.dataplane.addresses.holding import MULTICAST
from cython.cimports.cogwork.dataplane.core import UNFLUSHED_MAX_BYTES
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from, octets_of
from cython.cimports.cogwork.dataplane.message.sections import find_to
from cython.cimports.cogwork.dataplane.terminus import KEEP, SETTLE
from cython.cimports.cogwork.dataplane.transport.shipment import (
    ACCEPTED,
    RECEIVED,
    RUN_MAX,
)
from cython.cimports.libc.string import memchr, memcpy

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

DOT = cython.declare(cython.uchar, 0x2E)
ANY_WORD = cython.declare(cython.uchar, 0x2A)
ANY_WORDS = cython.declare(cython.uchar, 0x23)


class IncomingLink(FragmentingEnd):
    """A link on which the peer sends: credit given, deliveries counted, the entry they go to."""

    def __init__(
        self,
        session: Session,
        handle: int,
        entry=None,
        space=None,
        window: int = 0,
        max_message_size: int = 0,
    ):
        """Make the receiving end of a link.

        Args:
            session: The session it is attached on.
            handle: The handle this side sends its flows with.
            entry: Where its deliveries go; None for a link to the null target, whose messages name
                their address themselves.
            space: The addresses of its virtual host, for such a link.
            window: Deliveries that may be unsettled or held; 0 leaves credit to `grant`.
            max_message_size: Largest message in bytes; 0 for no limit.
        """
        self.core = session.core
        self.session = session
        self.handle = handle
        self.entry = entry
        self.space = space
        self.window = window
        self.max_message_size = max_message_size
        self.core.register(self)

    # -- deliveries

    def on_transfer(self, t):
        s: Shipment
        if self.detached:
            return 0
        if self.in_delivery:
            return self.on_fragment(t)
        if self.begin_delivery(t) == 0:
            return 0
        if t.more:
            return self.on_fragment(t)
        self.in_delivery = False
        if not t.settled:
            self.unsettled += 1
        s.data = t.payload
        s.size = t.payload_size
        s.format = t.message_format
        s.settled = t.settled
        s.acquired = False
        s.source_index = self.index
        s.source_generation = self.generation
        s.token = t.delivery_id
        s.tag = t.tag
        s.tag_size = t.tag_size
        s.origin = self.session.wire.origin
        s.via_index = self.index
        s.via_generation = self.generation
        self.route(cython.address(s))
        return self.top_up()

    def begin_delivery(self, t):
        """Check and count a delivery's first transfer; return 0 where it goes no further."""
        if not t.has_delivery_id:
            self.session.wire.owner.on_session_violation(
                self.session, "amqp:invalid-field", "a delivery's first transfer has no delivery-id"
            )
            return 0
        if self.credit:
            self.credit -= 1
        elif cython.cast(cython.int, self.limit - self.delivery_count) <= 0:
            self.session.wire.owner.on_link_violation(
                self, "amqp:link:transfer-limit-exceeded", "a transfer beyond the link credit"
            )
            return 0
        self.delivery_count += 1
        self.deliveries += 1
        if t.aborted:
            self.top_up()
            return 0
        if self.max_message_size and t.payload_size > self.max_message_size:
            self._too_large()
            return 0
        self.in_delivery = True
        self.discarding = False
        self.current = cython.NULL
        self.current_id = t.delivery_id
        self.current_tag_size = min(t.tag_size, cython.cast(uint32_t, 32))
        if self.current_tag_size:
            memcpy(self.current_tag, t.tag, self.current_tag_size)
        self.current_answered = False
        self.current_settled = t.settled
        self.current_size = 0
        return 1

    def route(self, s):
        entry: AddressEntry
        root: AddressEntry
        prefix: bytes
        found: octets = cython.NULL
        length: uint32_t = 0
        skip: uint32_t
        if self.entry is not None:
            return self.entry.route(s)
        if find_to(s.data, s.size, cython.address(found), cython.address(length)) != 1:
            return self._unroutable(s)
        if self.space.topic_root is not None:
            root = self.space.topic_root
            prefix = self.space.topic_prefix
            skip = cython.cast(uint32_t, len(prefix))
            if (
                length > skip
                and _starts_with(found, prefix, skip)
                and not _is_pattern(found + skip, length - skip)  # refused as any other address
                and self.space.is_of_root(found + skip, length - skip)
            ):
                if self.permit is not None and not self.permit[bytes_from(found, length)]:
                    return self._unroutable(s)
                root.received += 1
                root.received_bytes += s.size
                return root.multicast(
                    s,
                    root.interest.match_octets(found + skip, length - skip),
                )
        entry = self.choose_entry(s.data, s.size)
        if entry is None:
            return self._unroutable(s)
        return entry.route(s)

    def run_limit(self, size, message_size_max):
        limit: uint64_t = RUN_MAX
        share: uint64_t
        entry: AddressEntry = self.entry
        if self.detached or self.in_delivery or self.wants_tags:
            return 0
        limit = min(limit, cython.cast(uint64_t, self.credit))
        message_size_max[0] = self.max_message_size
        if entry is not None and entry.distribution == MULTICAST:
            share = cython.cast(uint64_t, len(entry.outlets)) * (size + 32) + 1
            limit = min(limit, cython.cast(uint64_t, UNFLUSHED_MAX_BYTES) // share + 1)
        return cython.cast(uint32_t, limit)

    def route_run(self, pieces, count, settled):
        s: Shipment
        entry: AddressEntry = self.entry
        s.format = 0
        s.settled = settled
        s.acquired = False
        s.source_index = self.index
        s.source_generation = self.generation
        s.tag = cython.NULL
        s.tag_size = 0
        s.origin = self.session.wire.origin
        s.via_index = self.index
        s.via_generation = self.generation
        if entry is None:
            count = self._route_each(cython.address(s), pieces, count)
            self.top_up()
            return count
        self._count(count, settled)
        entry.received += count
        entry.received_bytes += size_of(pieces, count)
        if entry.distribution == MULTICAST:
            entry.multicast_run(cython.address(s), pieces, count, entry.matching())
        else:
            entry.anycast_run(cython.address(s), pieces, count)
        self.top_up()
        return count

    def _count(self, count, settled):
        """Count deliveries of which each has come whole."""
        self.credit -= count
        self.delivery_count += count
        self.deliveries += count
        if not settled:
            self.unsettled += count
        return 0

    def _route_each(self, s, pieces, count):
        """Route messages that name their addresses themselves.

        Returns how many: addresses that are new take long, and the rest may have to wait.
        """
        index: uint32_t = 0
        while index < count and not self.session.wire.paused:
            s.data = pieces[index].data
            s.size = pieces[index].size
            s.token = pieces[index].token
            index += 1
            self._count(1, s.settled)
            self.route(s)
        return index

    def _unroutable(self, s):
        """Answer for a message whose `to` is missing, forbidden or leads nowhere."""
        address: bytes = None if s.settled else self.address_in(s.data, s.size)
        return self.turn_away(cython.cast(uint32_t, s.token), s.settled, address)

    def resolve_outcome(self, token, verdict):
        if verdict.code == RECEIVED:
            return KEEP
        if self.detached:
            return SETTLE
        self.unsettled -= 1
        self.session.settle(
            cython.address(self.session.to_sender),
            True,
            cython.cast(uint32_t, token),
            verdict,
            not self.settles_second or verdict.code != ACCEPTED,
        )
        if not self.in_delivery:
            self.top_up()
        elif token == self.current_id:
            self.current_answered = True
        return SETTLE

    def resolve_run(self, token, count, verdict):
        if verdict.code == RECEIVED or self.detached:
            return 0
        self.unsettled -= count
        self.session.settle_more(
            cython.address(self.session.to_sender),
            True,
            cython.cast(uint32_t, token),
            count,
            verdict,
            not self.settles_second or verdict.code != ACCEPTED,
        )
        if not self.in_delivery:
            self.top_up()
        elif self.current_id - cython.cast(uint32_t, token) < count:
            self.current_answered = True
        return 0

    def is_unfinished(self, now_s, limit_s):
        if not self.in_delivery:
            return False
        if self.watched_delivery != self.deliveries:
            self.watched_delivery = self.deliveries
            self.watched_since_s = now_s
        return now_s - self.watched_since_s > limit_s

    def add_to(self, totals):
        totals.links += 1
        totals.unsettled_in += self.unsettled
        if self.in_delivery:
            totals.partial_bytes += self.current_size
        return 0

    def detach(self) -> None:
        """End the link: a delivery in the middle is aborted, outcomes still to come are dropped."""
        if self.detached:
            return
        self.abort_delivery()
        self.detached = True
        if self.entry is not None:
            self.entry.remove_source(self)
        self.session.held_bytes -= self.held_bytes
        self.session.wire.held_bytes -= self.held_bytes
        self.session.replenish()
        self.core.unregister(self)


@cython.cfunc
@cython.inline
def _starts_with(p: octets, prefix: bytes, size: uint32_t) -> cython.bint:
    at: uint32_t
    q: octets = octets_of(prefix)
    for at in range(size):
        if p[at] != q[at]:
            return False
    return True


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_pattern(subject: octets, size: uint32_t) -> cython.bint:
    """Return whether a word of a subject is a wildcard."""
    return _has_word(subject, size, ANY_WORD) or _has_word(subject, size, ANY_WORDS)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _has_word(subject: octets, size: uint32_t, word: cython.uchar) -> cython.bint:
    """Return whether a character is a whole word of a subject."""
    end: octets = subject + size
    following: octets
    is_first: cython.bint
    p: octets = cython.cast(octets, memchr(subject, word, size))
    while p != cython.NULL:
        following = p + 1
        is_first = p == subject or (p - 1)[0] == DOT
        if is_first and (following == end or following[0] == DOT):
            return True
        p = cython.cast(octets, memchr(following, word, end - following))
    return False


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def size_of(pieces: cython.pointer(Piece), count: uint32_t) -> uint64_t:
    """Add up the sizes of the messages of a run."""
    at: uint32_t
    size_bytes: uint64_t = 0
    for at in range(count):
        size_bytes += pieces[at].size
    return size_bytes
