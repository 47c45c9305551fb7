"""Parses the three hot performatives, transfer, flow and disposition, straight out of a buffer.

Theory of operation. Each function walks a performative's list field by field with an offset that
never passes `end`. Fields that a routing decision does not need are skipped over, not decoded.
Parsers return NULL when all is well, else a text for the peer; nothing here allocates, raises or
touches Python objects.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from, octets_of
from cython.cimports.cogwork.dataplane.encoding.values import (
    descriptor_code,
    list_header,
    read_binary,
    read_bool,
    read_uint,
    skip_value,
)
from cython.cimports.cpython.bytes import PyBytes_GET_SIZE
from cython.cimports.libc.string import memset

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


def state_code(p, size):
    """Return the descriptor code of a delivery state (0x23 to 0x27); 0 for any other, or none."""
    body: int64_t = 0
    if p == cython.NULL or size < 1 or p[0] == 0x40:
        return 0
    code: cython.int = descriptor_code(p, size, cython.address(body))
    return code if 0x23 <= code <= 0x27 else 0


def read_modified(state, size, failed, undeliverable):
    """Read the first two fields of a modified state (AMQP 1.0 §3.4.5); what is amiss is false."""
    at: int64_t = 0
    list_end: int64_t = 0
    count: uint32_t = 0
    failed[0] = undeliverable[0] = False
    if state == cython.NULL or descriptor_code(state, size, cython.address(at)) < 0:
        return
    at = list_header(state, at, size, cython.address(count), cython.address(list_end))
    if at >= 0 and count > 0:
        at = read_bool(state, at, list_end, failed)
    if at >= 0 and count > 1:
        read_bool(state, at, list_end, undeliverable)


def parse_transfer(p, at, end, t):
    """Fill in a transfer's fields (AMQP 1.0 §2.7.5)."""
    count: uint32_t = 0
    field: uint32_t = 0
    list_end: int64_t = 0
    start: int64_t
    present: cython.bint = False
    ignored: cython.bint = False
    memset(t, 0, cython.sizeof(TransferFields))
    at = list_header(p, at, end, cython.address(count), cython.address(list_end))
    if at < 0:
        return b"transfer: the performative is not a list"
    if count < 1 or count > 11:
        return b"transfer: wrong number of fields"
    while field < count:
        if field == 0:
            at = read_uint(p, at, list_end, cython.address(t.handle), cython.address(present))
            if at < 0 or not present:
                return b"transfer: the handle must be a uint"
        elif field == 1:
            at = read_uint(
                p, at, list_end, cython.address(t.delivery_id), cython.address(t.has_delivery_id)
            )
        elif field == 2:
            at = read_binary(p, at, list_end, cython.address(t.tag), cython.address(t.tag_size))
            if at >= 0 and t.tag_size > 32:
                return b"transfer: a delivery-tag has at most 32 octets"
        elif field == 3:
            at = read_uint(
                p, at, list_end, cython.address(t.message_format), cython.address(present)
            )
        elif field == 4:
            at = read_bool(p, at, list_end, cython.address(t.settled))
        elif field == 5:
            at = read_bool(p, at, list_end, cython.address(t.more))
        elif field == 7:
            start = at
            at = skip_value(p, at, list_end)
            if at >= 0 and p[start] != 0x40:
                t.state = p + start
                t.state_size = cython.cast(uint32_t, at - start)
        elif field == 8:
            at = read_bool(p, at, list_end, cython.address(t.resume))
        elif field == 9:
            at = read_bool(p, at, list_end, cython.address(t.aborted))
        elif field == 10:
            at = read_bool(p, at, list_end, cython.address(ignored))
        else:
            at = skip_value(p, at, list_end)
        if at < 0:
            return b"transfer: malformed field"
        field += 1
    if at != list_end:
        return b"transfer: the list's size does not fit its fields"
    t.payload = p + list_end
    t.payload_size = cython.cast(uint32_t, end - list_end)
    return cython.NULL


def parse_flow(p, at, end, f):
    """Fill in a flow's fields (AMQP 1.0 §2.7.4)."""
    count: uint32_t = 0
    field: uint32_t = 0
    list_end: int64_t = 0
    present: cython.bint = False
    memset(f, 0, cython.sizeof(FlowFields))
    at = list_header(p, at, end, cython.address(count), cython.address(list_end))
    if at < 0:
        return b"flow: the performative is not a list"
    if count < 4 or count > 11:
        return b"flow: wrong number of fields"
    while field < count:
        if field == 0:
            at = read_uint(
                p,
                at,
                list_end,
                cython.address(f.next_incoming_id),
                cython.address(f.has_next_incoming_id),
            )
        elif field == 1:
            at = read_uint(
                p, at, list_end, cython.address(f.incoming_window), cython.address(present)
            )
        elif field == 2:
            at = read_uint(
                p, at, list_end, cython.address(f.next_outgoing_id), cython.address(present)
            )
        elif field == 3:
            at = read_uint(
                p, at, list_end, cython.address(f.outgoing_window), cython.address(present)
            )
        elif field == 4:
            at = read_uint(p, at, list_end, cython.address(f.handle), cython.address(f.has_handle))
        elif field == 5:
            at = read_uint(
                p,
                at,
                list_end,
                cython.address(f.delivery_count),
                cython.address(f.has_delivery_count),
            )
        elif field == 6:
            at = read_uint(
                p, at, list_end, cython.address(f.link_credit), cython.address(f.has_link_credit)
            )
        elif field == 7:
            at = read_uint(p, at, list_end, cython.address(f.available), cython.address(present))
        elif field == 8:
            at = read_bool(p, at, list_end, cython.address(f.drain))
        elif field == 9:
            at = read_bool(p, at, list_end, cython.address(f.echo))
        else:
            at = skip_value(p, at, list_end)
        if at < 0:
            return b"flow: malformed field"
        if 1 <= field <= 3 and not present:
            return b"flow: a mandatory field is missing"
        field += 1
    if at != list_end:
        return b"flow: the list's size does not fit its fields"
    return cython.NULL


def parse_disposition(p, at, end, d):
    """Fill in a disposition's fields (AMQP 1.0 §2.7.6)."""
    count: uint32_t = 0
    field: uint32_t = 0
    list_end: int64_t = 0
    start: int64_t
    present: cython.bint = False
    ignored: cython.bint = False
    memset(d, 0, cython.sizeof(DispositionFields))
    at = list_header(p, at, end, cython.address(count), cython.address(list_end))
    if at < 0:
        return b"disposition: the performative is not a list"
    if count < 2 or count > 6:
        return b"disposition: wrong number of fields"
    while field < count:
        if field == 0:
            if at < list_end and p[at] == 0x40:
                return b"disposition: the role is missing"
            at = read_bool(p, at, list_end, cython.address(d.from_receiver))
        elif field == 1:
            at = read_uint(p, at, list_end, cython.address(d.first), cython.address(present))
            if at < 0 or not present:
                return b"disposition: first must be a uint"
            d.last = d.first
        elif field == 2:
            at = read_uint(p, at, list_end, cython.address(d.last), cython.address(present))
            if at >= 0 and not present:
                d.last = d.first
        elif field == 3:
            at = read_bool(p, at, list_end, cython.address(d.settled))
        elif field == 4:
            start = at
            at = skip_value(p, at, list_end)
            if at >= 0 and p[start] != 0x40:
                d.state = p + start
                d.state_size = cython.cast(uint32_t, at - start)
        else:
            at = read_bool(p, at, list_end, cython.address(ignored))
        if at < 0:
            return b"disposition: malformed field"
        field += 1
    if at != list_end:
        return b"disposition: the list's size does not fit its fields"
    d.code = state_code(d.state, d.state_size)
    return cython.NULL


def fields_of(body: bytes):
    """Read a transfer, flow or disposition as the data plane does: for tests and tools.

    Args:
        body: A frame's body.

    Returns:
        The fields by name, with None for those that are absent; or, as a string, what is wrong.
    """
    p: octets = octets_of(body)
    end: int64_t = PyBytes_GET_SIZE(body)
    at: int64_t = 0
    code: cython.int = descriptor_code(p, end, cython.address(at))
    if code == 0x14:
        return _transfer_fields(p, at, end)
    if code == 0x13:
        return _flow_fields(p, at, end)
    if code == 0x15:
        return _disposition_fields(p, at, end)
    return "neither transfer, flow nor disposition"


def _transfer_fields(p, at, end):
    t: TransferFields
    problem: cython.p_const_char = parse_transfer(p, at, end, cython.address(t))
    if problem != cython.NULL:
        return problem.decode()
    return {
        "handle": t.handle,
        "delivery_id": t.delivery_id if t.has_delivery_id else None,
        "delivery_tag": bytes_from(t.tag, t.tag_size),
        "message_format": t.message_format,
        "settled": bool(t.settled),
        "more": bool(t.more),
        "state": bytes_from(t.state, t.state_size),
        "resume": bool(t.resume),
        "aborted": bool(t.aborted),
        "payload": bytes_from(t.payload, t.payload_size),
    }


def _flow_fields(p, at, end):
    f: FlowFields
    problem: cython.p_const_char = parse_flow(p, at, end, cython.address(f))
    if problem != cython.NULL:
        return problem.decode()
    return {
        "next_incoming_id": f.next_incoming_id if f.has_next_incoming_id else None,
        "incoming_window": f.incoming_window,
        "next_outgoing_id": f.next_outgoing_id,
        "outgoing_window": f.outgoing_window,
        "handle": f.handle if f.has_handle else None,
        "delivery_count": f.delivery_count if f.has_delivery_count else None,
        "link_credit": f.link_credit if f.has_link_credit else None,
        "available": f.available,
        "drain": bool(f.drain),
        "echo": bool(f.echo),
    }


def _disposition_fields(p, at, end):
    d: DispositionFields
    problem: cython.p_const_char = parse_disposition(p, at, end, cython.address(d))
    if problem != cython.NULL:
        return problem.decode()
    return {
        "from_receiver": bool(d.from_receiver),
        "first": d.first,
        "last": d.last,
        "settled": bool(d.settled),
        "state": bytes_from(d.state, d.state_size),
        "code": d.code,
    }
