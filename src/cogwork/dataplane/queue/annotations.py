"""Annotations that a consumer adds to a message as it gives it back (AMQP 1.0 §3.4.5).

Theory of operation. The map of the outcome is merged into the section of message annotations, or
becomes one where there is none; all other octets of the message stay what they were. What is merged
is bounded, so that no consumer has messages grow without end by giving them back again and again,
or a turn of the loop take long.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from
from cython.cimports.cogwork.dataplane.encoding.values import (
    descriptor_code,
    list_header,
    skip_value,
)

from cogwork.amqp.errors import DecodeError, EncodeError
from cogwork.amqp.types import Described, ULong
from cogwork.dataplane.encoding.codec import decode, encode

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

SECTION = cython.declare(cython.int, 0x72)
BYTES_MAX = cython.declare(int64_t, 65536)
"""Annotations of a message beyond this size are left as they are."""


def annotated(message, size, state, state_size):
    """Make a message anew with what a modified outcome adds to its annotations.

    Args:
        message: Encoded, of AMQP 1.0 §3.2.
        size: Its size.
        state: The outcome, encoded.
        state_size: Its size.

    Returns:
        The message; None where nothing is added, or it cannot be.
    """
    start: int64_t = 0
    value: int64_t = 0
    end: int64_t = 0
    added: bytes = _added_by(state, state_size)
    if added is None or not _find(
        message, size, cython.address(start), cython.address(value), cython.address(end)
    ):
        return None
    if end - value + cython.cast(int64_t, len(added)) > BYTES_MAX:
        return None
    section: bytes = _merged(bytes_from(message + value, end - value), added)
    if section is None:
        return None
    return bytes_from(message, start) + section + bytes_from(message + end, size - end)


@cython.cfunc
def _added_by(state: octets, size: uint32_t) -> bytes:
    """Return the map of annotations of an outcome, encoded; None where it has none."""
    at: int64_t = 0
    end: int64_t = 0
    count: uint32_t = 0
    field: cython.int
    if state == cython.NULL or descriptor_code(state, size, cython.address(at)) < 0:
        return None
    at = list_header(state, at, size, cython.address(count), cython.address(end))
    if at < 0 or count < 3:
        return None
    for field in range(2):
        at = skip_value(state, at, end)
        if at < 0:
            return None
    if at >= end or (state[at] != 0xC1 and state[at] != 0xD1):
        return None
    end = skip_value(state, at, end)
    return None if end < 0 else bytes_from(state + at, end - at)


@cython.cfunc
@cython.exceptval(check=False)
def _find(
    p: octets,
    size: int64_t,
    start: cython.pointer(int64_t),
    value: cython.pointer(int64_t),
    end: cython.pointer(int64_t),
) -> cython.bint:
    """Find the annotations of a message, or where they belong; say whether that can be told."""
    body: int64_t = 0
    at: int64_t = 0
    code: cython.int
    while at < size:
        code = descriptor_code(p + at, size - at, cython.address(body))
        if code < 0x70 or code > SECTION:
            break
        start[0] = at
        value[0] = at + body
        at = skip_value(p, at + body, size)
        if at < 0:
            return False
        if code == SECTION:
            end[0] = at
            return True
    start[0] = value[0] = end[0] = at
    return True


@cython.cfunc
def _merged(there: bytes, added: bytes) -> bytes:
    """Encode a section of two maps: of two values with one key the added one stays."""
    try:
        old: object = decode(there)[0] if there else {}
        new: object = decode(added)[0]
        if type(old) is not dict or type(new) is not dict or not new:
            return None
        return encode(Described(ULong(SECTION), {**old, **new}))
    except (DecodeError, EncodeError):
        return None
