"""The few AMQP frames a load generator meets, read from and written to C buffers.

Theory of operation. A frame is split once into its performative's fields (`Fields`: where each
encoded value starts), then three performatives are read in full: transfer, flow and disposition.
Every read is checked against the end of the frame before it happens, so a hostile or broken peer
yields "malformed", never a read behind the buffer. Written frames have a fixed layout: all
numbers take their widest encoding, so that sizes are constants.
"""

import cython
from cython.cimports.cogwork.bench.layout import (
    ABSENT,
    CODE_DISPOSITION,
    CODE_EMPTY,
    CODE_FLOW,
    COGWORK_SOURCE_HASH,
    DISPOSITION_SIZE,
    FLOW_SIZE,
    MALFORMED,
    MAX_FIELDS,
    SECTION_DATA,
    SECTION_VALUE,
    STAMP_SIZE,
    Disposition,
    Fields,
    Flow,
    Frame,
    Transfer,
    octet,
)
from cython.cimports.libc.stdint import int64_t, uint8_t, uint32_t, uint64_t
from cython.cimports.libc.string import memcpy

SOURCE_HASH: str = COGWORK_SOURCE_HASH.decode()

_MAX_FRAME_SIZE = cython.declare(cython.Py_ssize_t, 1 << 24)
"""A frame said to be larger than any that we announce room for is noise."""

_WIDTH = cython.declare(uint8_t[256])
# A value's size where its constructor alone tells it (AMQP 1.0 §1.2.1), otherwise 0.
for _code in range(256):
    _WIDTH[_code] = {4: 1, 5: 2, 6: 3, 7: 5, 8: 9, 9: 17}.get(_code >> 4, 0)


def read_u32(at: cython.pointer(octet)) -> uint32_t:
    """Return four octets in network order."""
    return (
        (cython.cast(uint32_t, at[0]) << 24)
        | (cython.cast(uint32_t, at[1]) << 16)
        | (cython.cast(uint32_t, at[2]) << 8)
        | at[3]
    )


def read_u64(at: cython.pointer(octet)) -> uint64_t:
    """Return eight octets in network order."""
    return (cython.cast(uint64_t, read_u32(at)) << 32) | read_u32(at + 4)


def write_u32(at: cython.pointer(octet), value: uint32_t) -> cython.void:
    """Write four octets in network order."""
    at[0] = (value >> 24) & 0xFF
    at[1] = (value >> 16) & 0xFF
    at[2] = (value >> 8) & 0xFF
    at[3] = value & 0xFF


def write_u64(at: cython.pointer(octet), value: uint64_t) -> cython.void:
    """Write eight octets in network order."""
    write_u32(at, cython.cast(uint32_t, value >> 32))
    write_u32(at + 4, cython.cast(uint32_t, value))


def mix(word: uint64_t) -> uint64_t:
    """Scramble a sequence number: the sum over many, in any order, tells if each came once."""
    word = (word ^ (word >> 31)) * cython.cast(uint64_t, 0x9E3779B97F4A7C15)
    return word ^ (word >> 29)


def _plain_size(at: cython.pointer(octet), end: cython.pointer(octet)) -> cython.Py_ssize_t:
    """Return the size of the undescribed value at `at`, or MALFORMED."""
    size: cython.Py_ssize_t = MALFORMED
    nibble: cython.int
    if at >= end:
        return MALFORMED
    nibble = at[0] >> 4
    if _WIDTH[at[0]] > 0:
        size = _WIDTH[at[0]]
    elif nibble in (0xA, 0xC, 0xE) and end - at >= 2:
        size = 2 + at[1]
    elif nibble in (0xB, 0xD, 0xF) and end - at >= 5:
        size = 5 + cython.cast(cython.Py_ssize_t, read_u32(at + 1))
    return size if size <= end - at else MALFORMED


def value_size(at: cython.pointer(octet), end: cython.pointer(octet)) -> cython.Py_ssize_t:
    """Return the size of the value at `at`, described or not, or MALFORMED.

    A described value that is itself described is refused, which bounds the work.
    """
    descriptor: cython.Py_ssize_t
    value: cython.Py_ssize_t
    if at >= end:
        return MALFORMED
    if at[0] != 0:
        return _plain_size(at, end)
    descriptor = _plain_size(at + 1, end)
    if descriptor < 0:
        return MALFORMED
    value = _plain_size(at + 1 + descriptor, end)
    return MALFORMED if value < 0 else 1 + descriptor + value


def read_list(
    at: cython.pointer(octet), end: cython.pointer(octet), fields: cython.pointer(Fields)
) -> cython.Py_ssize_t:
    """Split the list at `at`; return its whole size, or MALFORMED."""
    size: cython.Py_ssize_t = _plain_size(at, end)
    field: cython.Py_ssize_t
    fields.count = 0
    fields.end = at + size
    if size < 0:
        return MALFORMED
    if at[0] == 0x45:
        return size
    if at[0] == 0xC0 and size >= 3:
        fields.count = at[2]
        at += 3
    elif at[0] == 0xD0 and size >= 9:
        fields.count = read_u32(at + 5)
        at += 9
    else:
        return MALFORMED
    if fields.count > MAX_FIELDS:
        return MALFORMED
    for index in range(fields.count):
        field = _WIDTH[at[0]] if at < fields.end else MALFORMED
        if field == 0:
            field = value_size(at, fields.end)
        if field < 0 or field > fields.end - at:
            return MALFORMED
        fields.at[index] = at
        at += field
    return size


def read_frame(
    at: cython.pointer(octet), end: cython.pointer(octet), frame: cython.pointer(Frame)
) -> cython.Py_ssize_t:
    """Read the frame at `at`.

    Returns its size, 0 where it is not complete yet, or MALFORMED. An empty frame (a heartbeat,
    AMQP 1.0 §2.4.5) has the code CODE_EMPTY.
    """
    size: cython.Py_ssize_t
    doff: cython.Py_ssize_t
    if end - at < 8:
        return 0
    size = read_u32(at)
    doff = cython.cast(cython.Py_ssize_t, at[4]) * 4
    if size > _MAX_FRAME_SIZE or doff < 8 or doff > size or at[5] != 0:
        return MALFORMED
    if end - at < size:
        return 0
    frame.size = size
    frame.channel = (at[6] << 8) | at[7]
    frame.end = at + size
    frame.code = CODE_EMPTY
    frame.fields.count = 0
    if doff == size:
        return size
    return size if _read_performative(at + doff, frame) else MALFORMED


def _read_performative(at: cython.pointer(octet), frame: cython.pointer(Frame)) -> cython.bint:
    room: cython.Py_ssize_t = frame.end - at
    if room >= 4 and at[0] == 0 and at[1] == 0x53:
        frame.code = at[2]
        at += 3
    elif room >= 11 and at[0] == 0 and at[1] == 0x80 and read_u64(at + 2) <= 0xFF:
        frame.code = at[9]
        at += 10
    else:
        return False
    return read_list(at, frame.end, cython.address(frame.fields)) >= 0


def _is_absent(fields: cython.pointer(Fields), index: cython.Py_ssize_t) -> cython.bint:
    return index >= fields.count or fields.at[index][0] == 0x40


def _uint(fields: cython.pointer(Fields), index: cython.Py_ssize_t) -> int64_t:
    """Return an unsigned field, ABSENT or MALFORMED; the list has checked the sizes."""
    if _is_absent(fields, index):
        return ABSENT
    at = fields.at[index]
    if at[0] == 0x43:
        return 0
    if at[0] == 0x52:
        return at[1]
    return read_u32(at + 1) if at[0] == 0x70 else MALFORMED


def _is_true(fields: cython.pointer(Fields), index: cython.Py_ssize_t) -> cython.bint:
    """Return whether a boolean field is there and true; any other type counts as false."""
    if _is_absent(fields, index):
        return False
    at = fields.at[index]
    return at[0] == 0x41 or (at[0] == 0x56 and at[1] == 1)


def _outcome(fields: cython.pointer(Fields), index: cython.Py_ssize_t) -> cython.int:
    """Return the code of the delivery state in a field, 0 where there is none."""
    if _is_absent(fields, index):
        return 0
    at = fields.at[index]
    if at[0] == 0 and at[1] == 0x53:
        return at[2]
    return at[9] if at[0] == 0 and at[1] == 0x80 else 0


def read_transfer(frame: cython.pointer(Frame), transfer: cython.pointer(Transfer)) -> cython.bint:
    """Read a transfer's fields (AMQP 1.0 §2.7.5); return false where one is malformed."""
    fields: cython.pointer(Fields) = cython.address(frame.fields)
    transfer.handle = _uint(fields, 0)
    transfer.delivery_id = _uint(fields, 1)
    transfer.settled = _is_true(fields, 4)
    transfer.more = _is_true(fields, 5)
    transfer.aborted = _is_true(fields, 9)
    transfer.payload = fields.end
    transfer.payload_size = frame.end - fields.end
    return transfer.handle >= 0 and transfer.delivery_id != MALFORMED


def read_flow(frame: cython.pointer(Frame), flow: cython.pointer(Flow)) -> cython.bint:
    """Read a flow's fields (AMQP 1.0 §2.7.4); return false where one is malformed."""
    fields: cython.pointer(Fields) = cython.address(frame.fields)
    flow.next_incoming_id = _uint(fields, 0)
    flow.incoming_window = _uint(fields, 1)
    flow.next_outgoing_id = _uint(fields, 2)
    flow.outgoing_window = _uint(fields, 3)
    flow.handle = _uint(fields, 4)
    flow.delivery_count = _uint(fields, 5)
    flow.link_credit = _uint(fields, 6)
    flow.echo = _is_true(fields, 9)
    return (
        flow.incoming_window >= 0
        and flow.next_incoming_id > MALFORMED
        and flow.handle > MALFORMED
        and flow.delivery_count > MALFORMED
        and flow.link_credit > MALFORMED
    )


def read_disposition(
    frame: cython.pointer(Frame), disposition: cython.pointer(Disposition)
) -> cython.bint:
    """Read a disposition's fields (AMQP 1.0 §2.7.6); return false where one is malformed."""
    fields: cython.pointer(Fields) = cython.address(frame.fields)
    disposition.receiver = _is_true(fields, 0)
    disposition.first = _uint(fields, 1)
    disposition.last = _uint(fields, 2)
    disposition.settled = _is_true(fields, 3)
    disposition.outcome = _outcome(fields, 4)
    if disposition.last == ABSENT:
        disposition.last = disposition.first
    return disposition.first >= 0 and disposition.last >= 0


def find_section(
    at: cython.pointer(octet), end: cython.pointer(octet), code: cython.int
) -> cython.pointer(octet):
    """Return where the value of the message section `code` starts, NULL where it is missing."""
    size: cython.Py_ssize_t
    while end - at >= 4 and at[0] == 0 and at[1] == 0x53:
        if at[2] == code:
            return at + 3
        size = value_size(at + 3, end)
        if size < 0:
            break
        at += 3 + size
    return cython.NULL


def find_stamp(at: cython.pointer(octet), end: cython.pointer(octet)) -> cython.pointer(octet):
    """Return where the body's first STAMP_SIZE octets stand, NULL where it has none."""
    value: cython.pointer(octet) = find_section(at, end, SECTION_DATA)
    if value == cython.NULL:
        value = find_section(at, end, SECTION_VALUE)
    if value == cython.NULL or end - value < 5:
        return cython.NULL
    if value[0] == 0xA0:
        value += 2
    elif value[0] == 0xB0:
        value += 5
    else:
        return cython.NULL
    return value if end - value >= STAMP_SIZE else cython.NULL


def _put_uint(at: cython.pointer(octet), value: int64_t) -> cython.pointer(octet):
    at[0] = 0x70
    write_u32(at + 1, cython.cast(uint32_t, value))
    return at + 5


def _put_head(
    at: cython.pointer(octet),
    size: cython.Py_ssize_t,
    channel: cython.int,
    code: cython.int,
    count: cython.int,
) -> cython.pointer(octet):
    """Write the frame header, the descriptor and the head of a list8 that fills the frame."""
    write_u32(at, size)
    at[4] = 2
    at[5] = 0
    at[6] = (channel >> 8) & 0xFF
    at[7] = channel & 0xFF
    at[8] = 0
    at[9] = 0x53
    at[10] = code
    at[11] = 0xC0
    at[12] = size - 13
    at[13] = count
    return at + 14


def write_flow(
    at: cython.pointer(octet), channel: cython.int, flow: cython.pointer(Flow)
) -> cython.Py_ssize_t:
    """Write FLOW_SIZE octets: the session's windows and a link's credit."""
    at = _put_head(at, FLOW_SIZE, channel, CODE_FLOW, 7)
    at = _put_uint(at, flow.next_incoming_id)
    at = _put_uint(at, flow.incoming_window)
    at = _put_uint(at, flow.next_outgoing_id)
    at = _put_uint(at, flow.outgoing_window)
    at = _put_uint(at, flow.handle)
    at = _put_uint(at, flow.delivery_count)
    _put_uint(at, flow.link_credit)
    return FLOW_SIZE


def write_accepted(
    at: cython.pointer(octet), channel: cython.int, first: uint32_t, last: uint32_t
) -> cython.Py_ssize_t:
    """Write DISPOSITION_SIZE octets: the receiver settles `first` to `last` as accepted."""
    at = _put_head(at, DISPOSITION_SIZE, channel, CODE_DISPOSITION, 5)
    at[0] = 0x41
    at = _put_uint(at + 1, first)
    at = _put_uint(at, last)
    memcpy(at, b"\x41\x00\x53\x24\x45", 5)
    return DISPOSITION_SIZE
