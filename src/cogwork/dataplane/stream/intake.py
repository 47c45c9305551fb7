"""Where a stream's messages come in: packed into batches while a read batch is scanned.

Theory of operation. What arrives in one read batch from one source becomes one record_batch: records,
each behind its length, as `cogwork.plugin.engine.batch` packs them, and the tokens by which its source
knows the deliveries. At the end of the read batch the node gets the record batches, appends each as one
batch, and settles it as a whole. Python sees no single message.

A record batch has one producer, and sequences without a gap. Where that does not fit, or it has become
large, the next one is begun. While more is under way than a bound, the address holds what comes,
and so its senders' credit.
"""

import cython
from cython.cimports.cogwork.dataplane.addresses.fanouts import Fanouts
from cython.cimports.cogwork.dataplane.amqp091.wire import DirectChannel
from cython.cimports.cogwork.dataplane.encoding.octets import (
    bytes_from,
    load_u64,
    octets,
    octets_of,
    store_u32,
)
from cython.cimports.cogwork.dataplane.message.basic import BASIC_FORMAT
from cython.cimports.cogwork.dataplane.message.translation import as_amqp
from cython.cimports.cogwork.dataplane.stream.records import (
    BAD_PRODUCER,
    BAD_SEQUENCE,
    FINE,
    MALFORMED_RECORD,
    NO_PRODUCER,
    NO_SEQUENCE,
    is_one_section,
    read_record,
    record_size,
    write_record,
)
from cython.cimports.cogwork.dataplane.transport.shipment import (
    LOST,
    MODIFIED,
    REJECTED,
    RELEASED,
    Verdict,
    fill_verdict,
)
from cython.cimports.libc.stdlib import free, realloc
from cython.cimports.libc.string import memcmp, memcpy

from cogwork.amqp import codec
from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.format_codes import not_understood
from cogwork.amqp.outcomes import Rejected

__all__ = ("SOURCE_HASH", "CaptureOutlet", "Intake", "RecordBatch")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

RECORD_BATCH_SIZE_MAX = cython.declare(int64_t, 256 * 1024)
"""A record batch that has so much gets no more: an append's time should stay small."""

RECORD_BATCH_COUNT_MAX = cython.declare(uint32_t, 8192)

PENDING_SIZE_MAX = cython.declare(int64_t, 16 * 1024 * 1024)
"""Under way at most; more than a disk takes in a tenth of a second."""

LENGTH_SIZE = cython.declare(int64_t, 4)

SIZE_MIN = cython.declare(int64_t, 1024)
"""Room that a record batch has at first, where the last one did not use more."""


def _rejection(condition, description):
    error = AmqpError(condition=condition, description=description)
    return codec.encode(Rejected(error=error).to_described())


MALFORMED_STATE = cython.declare(
    bytes, _rejection(Condition.DECODE_ERROR, "the message's sections are malformed")
)
FORMAT_STATE = cython.declare(
    bytes, _rejection(Condition.NOT_IMPLEMENTED, "a stream keeps messages of message-format 0 only")
)


def _not_understood(problem: cython.int, code: cython.int) -> bytes:
    """Return the outcome of a message whose producer, sequence or snapshot is not understood."""
    if problem == NO_PRODUCER:
        return _rejection(Condition.INVALID_FIELD, "x-opt-sequence without x-opt-producer")
    if problem == NO_SEQUENCE:
        return _rejection(Condition.INVALID_FIELD, "x-opt-producer without x-opt-sequence")
    if problem == BAD_PRODUCER:
        name, expected = "x-opt-producer", "a binary, a string or a UUID of 1 to 64 octets"
    else:
        name = "x-opt-sequence" if problem == BAD_SEQUENCE else "x-opt-snapshot"
        expected = "a whole number from 0 to 2^63 - 1"
    return _rejection(Condition.INVALID_FIELD, not_understood(name, code, expected))


class RecordBatch:
    """Messages of one source that are appended together.

    Attributes:
        source_index: Names the source, with `source_generation`.
        count: How many messages.
        producer: Who made them; empty where nobody says.
        sequence: The first one's.
        is_snapshot: Whether it is no batch but an application's snapshot, one message.
        snapshot: The offset that follows what is in it.
        context: Whatever the node keeps with it.
    """

    def __dealloc__(self):
        free(self.data)
        free(self.ranges)

    @property
    def payload(self) -> bytes:
        """The packed records; of a snapshot the one record without its length."""
        start: int64_t = LENGTH_SIZE if self.is_snapshot else 0
        return bytes_from(self.data + start, self.size - start)

    @property
    def size_bytes(self) -> int:
        """Counts the octets of the payload."""
        return self.size

    @property
    def is_awaited(self) -> bool:
        """Whether anybody waits for the outcome of any of it."""
        return self.ranges_count > 0

    def fits(self, s, record):
        """Return whether a message may join."""
        if (
            self.source_index != s.source_index
            or self.source_generation != s.source_generation
            or self.is_snapshot
            or record.is_snapshot
            or self.size >= RECORD_BATCH_SIZE_MAX
            or self.count >= RECORD_BATCH_COUNT_MAX
            or cython.cast(uint32_t, len(self.producer)) != record.producer_size
        ):
            return False
        if record.producer_size == 0:
            return True
        return (
            record.sequence == self.sequence + self.count
            and memcmp(octets_of(self.producer), record.producer, record.producer_size) == 0
        )

    def add(self, s, record):
        size: int64_t = record_size(record)
        p: cython.pointer(uint8_t) = self.reserve(size + LENGTH_SIZE)
        store_u32(p, cython.cast(uint32_t, size))
        write_record(p + LENGTH_SIZE, record)
        return self.count_one(s, size)

    def count_one(self, s, size):
        """Count a record that was written."""
        self.size += size + LENGTH_SIZE
        self.count += 1
        return 0 if s.settled else self.add_token(s.token)

    def reserve(self, size):
        """Make room for more; return where it starts."""
        capacity: int64_t = self.capacity
        grown: cython.pointer(uint8_t)
        if self.size + size > capacity:
            capacity = max(self.size + size, capacity * 2)
            grown = cython.cast(cython.pointer(uint8_t), realloc(self.data, capacity))
            if grown == cython.NULL:
                raise MemoryError("no room for more of a batch")
            self.data = grown
            self.capacity = capacity
        return self.data + self.size

    def add_token(self, token):
        capacity: uint32_t = self.ranges_capacity
        last: cython.pointer(TokenRange)
        grown: cython.pointer(TokenRange)
        if self.ranges_count:
            last = self.ranges + (self.ranges_count - 1)
            if token == last.first + last.count:
                last.count += 1
                return 0
        if self.ranges_count == capacity:
            capacity = capacity * 2 if capacity else 1
            grown = cython.cast(
                cython.pointer(TokenRange),
                realloc(self.ranges, capacity * cython.sizeof(TokenRange)),
            )
            if grown == cython.NULL:
                raise MemoryError("no room for more of a batch")
            self.ranges = grown
            self.ranges_capacity = capacity
        self.ranges[self.ranges_count].first = token
        self.ranges[self.ranges_count].count = 1
        self.ranges_count += 1
        return 0

    def settle(self, code: int, state: bytes = None) -> None:
        """Say what became of its messages; once.

        Args:
            code: The outcome's descriptor code.
            state: The outcome encoded, where it says more than its code.
        """
        verdict: Verdict
        source: Terminus
        index: uint32_t
        if self.is_settled:
            return
        self.is_settled = True
        source = self.intake.core.resolve(self.source_index, self.source_generation)
        if type(source) is Fanouts:
            # A topic's subscriber that refuses its copy has been served; a stream that did not
            # keep it has not, and the publisher hears of that.
            source = self.intake.core.branches
        elif code == RELEASED and isinstance(source, DirectChannel):
            # There it would say that nothing wants the message, which is as good as taken.
            code, state = MODIFIED, None
        fill_verdict(cython.address(verdict), code, state)
        if source is not None:
            for index in range(self.ranges_count):
                if self.ranges[index].count == 1:
                    source.resolve_outcome(self.ranges[index].first, cython.address(verdict))
                else:
                    source.resolve_run(
                        self.ranges[index].first,
                        self.ranges[index].count,
                        cython.address(verdict),
                    )
        self.intake.let_go(self.size)


class Intake(Terminus):
    """Takes a stream's messages, and hands them over in record batches.

    `handler.on_record_batches(record batches)` is called at the end of each batch; each record batch is to be settled.

    Attributes:
        inlet: The address whose held messages go on when there is room again.
        is_open: Whether messages are taken now; while they are not, the address holds them.
        pending_bytes: What has not been settled.
        pending_bytes_max: How much that may be before no more is taken.
        messages: Counts the messages that were taken.
        refused: Counts those that were rejected at once.
        missed: Counts captured messages that there was no room for.
    """

    def __init__(self, core: Core, handler):
        self.core = core
        self.handler = handler
        self.record_batches = []
        self.pending_bytes_max = PENDING_SIZE_MAX
        core.register(self)

    def is_full(self):
        pending: int64_t = self.pending_bytes
        if self.current is not None:
            pending += self.current.size
        return pending >= self.pending_bytes_max

    def is_ready(self):
        if self.is_open and not self.is_full():
            return True
        self.has_refused = True
        return False

    def take(self, s):
        return self.receive(s)

    def take_run(self, s, pieces, count):
        index: uint32_t
        for index in range(count):
            if not self.is_ready():
                return index
            s.data = pieces[index].data
            s.size = pieces[index].size
            s.token = pieces[index].token
            if self.is_alike(s):
                self.receive_alike(s)
            else:
                self.receive(s)
        return count

    def is_alike(self, s):
        """Return whether a message follows the last one, and differs from it in its body only."""
        record_batch: RecordBatch = self.current
        size: int64_t = self.beginning.size
        at: int64_t = self.beginning.sequence_at
        p: octets = s.data
        return (
            size != 0
            and s.size > size
            and s.format == 0
            and record_batch.source_index == s.source_index
            and record_batch.source_generation == s.source_generation
            and record_batch.size < RECORD_BATCH_SIZE_MAX
            and record_batch.count < RECORD_BATCH_COUNT_MAX
            and p[at] < 0x80
            and load_u64(p + at) == record_batch.sequence + record_batch.count
            and memcmp(p, self.beginning.octets, at) == 0
            and memcmp(p + at + 8, self.beginning.octets + at + 8, size - at - 8) == 0
            and is_one_section(p + size, s.size - size)
        )

    def receive_alike(self, s):
        """Take such a message: the octets before its body are the last one's."""
        size: int64_t = s.size - self.beginning.size
        p: cython.pointer(uint8_t) = self.current.reserve(size + LENGTH_SIZE)
        store_u32(p, cython.cast(uint32_t, size))
        memcpy(p + LENGTH_SIZE, s.data + self.beginning.size, size)
        self.messages += 1
        return self.current.count_one(s, size)

    def learn(self, record):
        """Note how a message of the current record batch begins, where that is all that is to be known."""
        self.beginning.size = 0
        if (
            record.sequence_at
            and record.rest <= BEGINNING_SIZE_MAX
            and not (record.head_end or record.kept or record.is_snapshot)
        ):
            memcpy(self.beginning.octets, record.data, record.rest)
            self.beginning.size = record.rest
            self.beginning.sequence_at = record.sequence_at
        return 0

    def receive(self, s):
        """Take a message in, or reject it."""
        record: Record
        problem: cython.int
        if s.format == BASIC_FORMAT:
            translated: bytes = as_amqp(s.data, s.size, s.format)
            shipment: Shipment = s[0]
            shipment.data = octets_of(translated)
            shipment.size = cython.cast(uint32_t, len(translated))
            shipment.format = 0
            return self.receive(cython.address(shipment))
        if s.format != 0:
            return self.reject(s, FORMAT_STATE)
        problem = read_record(s.data, s.size, cython.address(record))
        if problem == MALFORMED_RECORD:
            return self.reject(s, MALFORMED_STATE)
        if problem != FINE:
            return self.reject(s, _not_understood(problem, record.odd_code))
        if self.current is None or not self.current.fits(s, cython.address(record)):
            self.current = self.begin(s, cython.address(record))
        self.learn(cython.address(record))
        self.messages += 1
        return self.current.add(s, cython.address(record))

    def begin(self, s, record):
        """Begin a record_batch."""
        record_batch: RecordBatch = RecordBatch.__new__(RecordBatch)
        self.close_current()
        record_batch.reserve(max(self.expected_size, SIZE_MIN))
        record_batch.intake = self
        record_batch.source_index = s.source_index
        record_batch.source_generation = s.source_generation
        record_batch.producer = b""
        if record.producer_size:
            record_batch.producer = bytes_from(record.producer, record.producer_size)
            record_batch.sequence = record.sequence
        record_batch.is_snapshot = record.is_snapshot
        record_batch.snapshot = record.snapshot
        self.record_batches.append(record_batch)
        self.core.put_off(self)
        return record_batch

    def close_current(self):
        """Add nothing more to the last record batch; the next one gets as much room as that has used."""
        if self.current is not None:
            self.pending_bytes += self.current.size
            self.expected_size = min(self.current.size, RECORD_BATCH_SIZE_MAX)
            self.current = None
            self.beginning.size = 0
        return 0

    def reject(self, s, state):
        verdict: Verdict
        self.refused += 1
        if s.settled:
            return 0
        fill_verdict(cython.address(verdict), REJECTED, state)
        self.core.answer(s.source_index, s.source_generation, s.token, cython.address(verdict))
        return 0

    def end_batch(self):
        self.dirty = False
        self.close_current()
        record_batches: list = self.record_batches
        self.record_batches = []
        try:
            self.handler.on_record_batches(record_batches)
        except Exception as error:
            self.core.tell_fault(self, error)
        return 0

    def let_go(self, size):
        self.pending_bytes -= size
        if self.has_refused and self.pending_bytes < self.pending_bytes_max // 2:
            self.resume()
        return 0

    def resume(self) -> None:
        """Take what the address holds, once there is room."""
        self.has_refused = False
        if self.inlet is not None:
            self.inlet.serve_held()

    def close(self) -> None:
        """Take no more."""
        self.is_open = False
        self.current = None
        self.beginning.size = 0
        self.record_batches = []
        self.core.unregister(self)


class CaptureOutlet(Terminus):
    """A topic's outlet that has a stream keep what is published.

    It is always ready, for a topic does not wait for those that are not links. What publishers wait
    for is bounded by their credit; of the rest that is dropped, and counted, which is too much.
    """

    def __init__(self, intake: Intake):
        self.intake = intake

    def take(self, s):
        if not self.intake.is_open or (s.settled and self.intake.is_full()):
            self.intake.missed += 1
            return _miss(self.intake, s)
        return self.intake.receive(s)


@cython.cfunc
@cython.exceptval(-1)
def _miss(intake: Intake, s: cython.pointer(Shipment)) -> cython.int:
    """Answer for a message that a stream could not capture: it may be lost to it."""
    verdict: Verdict
    source: Terminus
    if s.settled:
        return 0
    source = intake.core.resolve(s.source_index, s.source_generation)
    if type(source) is Fanouts:
        source = intake.core.branches
    fill_verdict(cython.address(verdict), LOST, None)
    if source is not None:
        source.resolve_outcome(s.token, cython.address(verdict))
    return 0
