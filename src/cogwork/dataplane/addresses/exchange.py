"""An exchange's address: finds each message's routing key, and gives the message to its queues.

Theory of operation. The outlet of an exchange's address takes each message at once and gives it to
the addresses of the queues that the router finds by the key, one after the other. To the queues the
publisher itself is who sends: it is charged for what they hold, and hears of the outcome. Where
there are several, a record (`fanouts`) waits for all of them, and the worst outcome is told.

The key is that of the address, if it has one (`exchange/NAME/KEY`). Else the message says it: by its
subject, or in the form of AMQP 0-9-1 (`message.basic`) in front of the rest. What the router found
for a key is kept until bindings change, as long as the keys alone decide. Where an exchange's bindings
are patterns that lead to queues, a key that is not kept is matched here, without Python.

A message of AMQP 0-9-1 may have further keys in its headers CC and BCC. Whether it may is looked for
in its octets; the rest of that rare case is the router's, which takes BCC out.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from, load_u32, octets_of
from cython.cimports.cogwork.dataplane.encoding.values import list_header, read_string, skip_value
from cython.cimports.cogwork.dataplane.message.basic import BASIC_FORMAT
from cython.cimports.cogwork.dataplane.message.sections import (
    BODY_RANK,
    FOUND,
    MALFORMED,
    PROPERTIES,
    PROPERTY_FIELDS,
    SUBJECT_FIELD,
    Layout,
    Section,
    locate,
    next_section,
)
from cython.cimports.cogwork.dataplane.transport.shipment import (
    NOWHERE,
    REJECTED,
    RELEASED,
    Verdict,
    fill_verdict,
)

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

ROUTES = cython.declare(cython.int, 2)
"""What a record of the copies of an exchange's message says in `judges` (`fanouts`)."""

KEPT_MAX = cython.declare(cython.Py_ssize_t, 4096)
"""Keys whose queues are kept for one exchange, about 1 MB; one more, and all are forgotten."""

KEPT_KEY_MAX = cython.declare(uint32_t, 255)
"""Octets of a key that is kept: as many as one of AMQP 0-9-1 can have."""


class Changes:
    """Counts the changes of all bindings of a virtual host, and says keys to what leads elsewhere."""

    def __init__(self):
        self.count = 1

    def note(self) -> None:
        """Have what is kept found anew."""
        self.count += 1


class Routes:
    """Where an exchange's messages go, as the router says.

    Attributes:
        interest: Matches keys to destinations, where patterns alone decide; None asks the finder.
        unroutable: Messages that nobody took.
        delivered: Copies that queues got.
    """

    def __init__(self, changes: Changes, finder):
        """Keep nothing yet.

        Args:
            changes: Of the bindings.
            finder: Says where messages go; `RouteFinder` in the stub is its contract.
        """
        self.changes = changes
        self.finder = finder
        self.kept = {}
        self.entries = {}

    def find(self, key, s, head_size, is_basic):
        """List the addresses that a message goes to; callers must not change the list."""
        found: object
        entries: list
        if self.seen != self.changes.count:
            self.kept.clear()
            self.entries.clear()
            self.seen = self.changes.count
        entries = self.kept.get(key)
        if entries is None and self.interest is not None:
            entries = self._matched(key)
            if entries is not None:
                self._keep(key, entries)
        if entries is not None:
            return entries
        found = None
        if not self.wants_head:
            found = self.finder.find(key, None, is_basic)
            self.wants_head = found is None
        if found is None:
            found = self.finder.find(key, bytes_from(s.data, head_size), is_basic)
        entries = found[0]
        if found[1]:
            self._keep(key, entries)
        return entries

    def _keep(self, key, entries):
        if len(key) <= KEPT_KEY_MAX:
            if len(self.kept) >= KEPT_MAX:
                self.kept.clear()
            self.kept[key] = entries
        return 0

    def _matched(self, key):
        """List the addresses of the queues that a key matches; None if more than that is to be done."""
        found: list = self.interest.match_octets(octets_of(key), len(key))
        entries: list = []
        entry: AddressEntry
        if len(found) == 0:
            return None
        for destination in found:
            entry = self.entries.get(destination)
            if entry is None:
                entry = self.finder.resolve(destination)
                if entry is None:
                    return None
                self.entries[destination] = entry
            entries.append(entry)
        return entries


class ExchangeInlet(Terminus):
    """The outlet of an exchange's address.

    Attributes:
        routes: Where its messages go.
        key: The routing key of all of them; None if each says its own.
    """

    def __init__(self, core: Core, routes: Routes, key: bytes = None):
        """Take messages from now on.

        Args:
            core: The core it belongs to.
            routes: Where its messages go.
            key: The routing key of all of them; None if each says its own.
        """
        self.core = core
        self.routes = routes
        self.key = key
        self.keys = None if key is None else pack_keys((key,))

    def take(self, s):
        has_copies: cython.bint = False
        entries: list = self._entries_for(s, cython.address(has_copies))
        if has_copies:
            return self._take_with_copies(s)
        if entries is None:
            return self._answer(s, REJECTED)
        return self._give(s, entries, self.keys)

    def take_run(self, s, pieces, count):
        at: uint32_t = 0
        length: uint32_t
        has_copies: cython.bint = False
        entries: list
        following: list
        entries = self._entries_of(s, pieces, cython.address(has_copies))
        while at < count:
            length = 1
            following = None
            while at + length < count:
                if entries is None or has_copies:
                    break
                following = self._entries_of(s, pieces + at + length, cython.address(has_copies))
                if following is not entries or has_copies:
                    break
                length += 1
            if length > 1:
                has_copies = False
                self._give_run(s, pieces + at, length, entries)
            else:
                self._aim(s, pieces + at)
                self.take(s)
            at += length
            if at < count:
                has_copies = False
                entries = self._entries_of(s, pieces + at, cython.address(has_copies))
        return count

    def _aim(self, s, piece):
        s.data = piece.data
        s.size = piece.size
        s.token = piece.token
        return 0

    def _entries_of(self, s, piece, has_copies):
        self._aim(s, piece)
        return self._entries_for(s, has_copies)

    # -- whose a message is

    def _entries_for(self, s, has_copies):
        """Find where a message goes; None where it cannot be read.

        `has_copies` becomes true where its headers may name further keys: then nothing is found.
        """
        key: octets = cython.NULL
        key_size: uint32_t = 0
        head_size: uint32_t = s.size
        is_basic: cython.bint = s.format == BASIC_FORMAT
        if is_basic:
            head_size = read_basic(
                s.data, s.size, cython.address(key), cython.address(key_size), has_copies
            )
            if head_size == 0:
                return None
            if has_copies[0]:
                return None
        elif self.key is None or self.routes.wants_head:
            if _find_subject(s.data, s.size, cython.address(key), cython.address(key_size)) < 0:
                return None
            if self.routes.wants_head:
                head_size = _head_of(s.data, s.size)
        if self.key is not None:
            return self.routes.find(self.key, s, head_size, is_basic)
        return self.routes.find(bytes_from(key, key_size), s, head_size, is_basic)

    def _take_with_copies(self, s):
        """Take a message whose headers may name further keys, and may have to change for that."""
        key: octets = cython.NULL
        key_size: uint32_t = 0
        has_copies: cython.bint = False
        changed: bytes
        found: object
        head_size: uint32_t = read_basic(
            s.data,
            s.size,
            cython.address(key),
            cython.address(key_size),
            cython.address(has_copies),
        )
        found = self.routes.finder.find_copies(
            bytes_from(key, key_size) if self.key is None else self.key,
            bytes_from(s.data, head_size),
        )
        if found is None:
            return self._answer(s, REJECTED)
        if found[1] is None:
            return self._give(s, found[0], found[2])
        changed = found[1] + bytes_from(s.data + head_size, s.size - head_size)
        s.data = octets_of(changed)
        s.size = cython.cast(uint32_t, len(changed))
        return self._give(s, found[0], found[2])

    # -- giving it to them

    def _answer(self, s, code):
        verdict: Verdict
        if not s.settled:
            fill_verdict(cython.address(verdict), code, None)
            self.core.answer(s.source_index, s.source_generation, s.token, cython.address(verdict))
        return 0

    def _give(self, s, entries, keys):
        shipment: Shipment
        entry: AddressEntry
        changes: Changes = self.routes.changes
        record: uint32_t = NOWHERE
        count: cython.Py_ssize_t = len(entries)
        if count == 0:
            self.routes.unroutable += 1
            return self._answer(s, RELEASED)
        self.routes.delivered += count
        if count == 1:
            entry = entries[0]
            if changes.keys is not keys:
                changes.keys = keys
            return entry.route(s)
        shipment = s[0]
        if not s.settled:
            record = self.core.fanouts.open(s, True)
            self.core.fanouts.records[record].judges = ROUTES
            self._await(cython.address(shipment))
            shipment.token = record
        for entry in entries:
            if changes.keys is not keys:
                changes.keys = keys
            if record != NOWHERE:
                self.core.fanouts.records[record].waiting += 1
            entry.route(cython.address(shipment))
            shipment.data = s.data
            shipment.size = s.size
        if record != NOWHERE:
            return self.core.fanouts.close(record)
        return 0

    def _give_run(self, s, pieces, count, entries):
        """Give messages with the same queues to each of these in one piece."""
        shipment: Shipment
        entry: AddressEntry
        changes: Changes = self.routes.changes
        index: uint32_t
        size_bytes: uint64_t = 0
        if len(entries) == 0:
            for index in range(count):
                self._aim(s, pieces + index)
                self._give(s, entries, self.keys)
            return 0
        for index in range(count):
            size_bytes += pieces[index].size
        self.routes.delivered += cython.cast(uint64_t, count) * len(entries)
        shipment = s[0]
        if len(entries) > 1 and not s.settled:
            for index in range(count):
                s.token = pieces[index].token
                pieces[index].token = self.core.fanouts.open(s, True)
                self.core.fanouts.records[pieces[index].token].judges = ROUTES
            self._await(cython.address(shipment))
        for entry in entries:
            if len(entries) > 1 and not s.settled:
                for index in range(count):
                    self.core.fanouts.records[pieces[index].token].waiting += 1
            if changes.keys is not self.keys:
                changes.keys = self.keys
            entry.received += count
            entry.received_bytes += size_bytes
            entry.anycast_run(cython.address(shipment), pieces, count)
        if len(entries) > 1 and not s.settled:
            for index in range(count):
                self.core.fanouts.close(cython.cast(uint32_t, pieces[index].token))
        return 0

    def _await(self, shipment):
        """Have the outcomes of copies go to a record; their token is its number."""
        shipment.tag_size = 0
        shipment.source_index = self.core.fanouts.index
        shipment.source_generation = self.core.fanouts.generation
        return 0


def pack_keys(keys: tuple) -> bytes:
    """Return routing keys as a wrapping has them: each behind its size, four octets."""
    return b"".join([len(key).to_bytes(4, "big") + key for key in keys])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _find_subject(
    data: octets, size: int64_t, value: cython.pointer(octets), value_size: cython.pointer(uint32_t)
) -> cython.int:
    """Find a message's subject; -1 where its sections are malformed up to there."""
    section = cython.declare(Section)
    at: int64_t = 0
    list_end: int64_t = 0
    count: uint32_t = 0
    field: cython.int
    code: cython.int = 0
    while at < size and code < PROPERTIES:
        code = next_section(data, size, at, cython.address(section))
        if code == MALFORMED:
            return -1
        at = section.end
    if code != PROPERTIES:
        return 0
    at = list_header(
        data, section.value, section.end, cython.address(count), cython.address(list_end)
    )
    if at < 0 or count > PROPERTY_FIELDS:
        return -1
    if count <= SUBJECT_FIELD:
        return 0
    for field in range(SUBJECT_FIELD):
        at = skip_value(data, at, list_end)
        if at < 0:
            return -1
    return read_string(data, at, list_end, value, value_size)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _head_of(data: octets, size: uint32_t) -> uint32_t:
    """Return how long a message is without its body; all of it where it cannot be read."""
    layout = cython.declare(Layout)
    if locate(data, size, cython.address(layout)) != FOUND:
        return size
    if layout.sections[BODY_RANK].start < 0:
        return size
    return cython.cast(uint32_t, layout.sections[BODY_RANK].start)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def read_basic(
    data: octets,
    size: uint32_t,
    key: cython.pointer(octets),
    key_size: cython.pointer(uint32_t),
    has_copies: cython.pointer(cython.bint),
) -> uint32_t:
    """Find the routing key of a message of AMQP 0-9-1; return where its body begins, or 0.

    It begins with exchange and key as short strings, and the size of the properties that follow.
    """
    at: uint32_t
    properties_size: uint32_t
    if size < 1:
        return 0
    at = 1 + data[0]
    if at >= size:
        return 0
    key_size[0] = data[at]
    at += 1
    if size - at < key_size[0] or size - at - key_size[0] < 4:
        return 0
    key[0] = data + at
    at += key_size[0]
    properties_size = load_u32(data + at)
    at += 4
    if size - at < properties_size:
        return 0
    has_copies[0] = cogwork_has_copies(data + at, properties_size)
    return at + properties_size
