"""A buffer that encoded values are written to.

Theory of operation. A `Writer` starts on the C stack and moves to the heap when it outgrows that. A
compound leaves room for its wide header, and moves its items up where the small one does. What runs
for every field is inline, in `writer.pxd`; here is what is rare, and what ends a compound.
"""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import store_u32
from cython.cimports.cogwork.dataplane.encoding.writer import COMPOUND_HEADER_BYTES, Writer
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.libc.stdint import uint8_t
from cython.cimports.libc.stdlib import malloc, realloc
from cython.cimports.libc.string import memcpy, memmove

from cogwork.amqp.errors import EncodeError

__all__ = ("SOURCE_HASH",)

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


def enlarge(out: cython.pointer(Writer), more: cython.Py_ssize_t) -> cython.int:
    """Make room for `more` bytes."""
    capacity: cython.Py_ssize_t = max(2 * out.capacity, out.size + more)
    moved: cython.pointer(uint8_t)
    if out.data == out.small:
        moved = cython.cast(cython.pointer(uint8_t), malloc(capacity))
        if moved != cython.NULL:
            memcpy(moved, out.small, out.size)
    else:
        moved = cython.cast(cython.pointer(uint8_t), realloc(out.data, capacity))
    if moved == cython.NULL:
        raise MemoryError
    out.data = moved
    out.capacity = capacity
    return 0


def refuse_size(size: cython.Py_ssize_t) -> cython.int:
    """Raise: a length has 32 bits."""
    raise EncodeError(f"{size} bytes are more than AMQP can say the length of")


def end_compound(
    out: cython.pointer(Writer),
    start: cython.Py_ssize_t,
    small_code: uint8_t,
    count: cython.Py_ssize_t,
) -> cython.int:
    """Write code, size and count before what was written since `begin_compound`."""
    header: cython.pointer(uint8_t) = out.data + start
    body: cython.Py_ssize_t = out.size - start - COMPOUND_HEADER_BYTES
    if body < 0xFF and count <= 0xFF:
        header[0] = small_code
        header[1] = body + 1
        header[2] = count
        memmove(header + 3, header + COMPOUND_HEADER_BYTES, body)
        out.size = start + 3 + body
        return 0
    if (body + 4) >> 32:
        refuse_size(body)
    header[0] = small_code + 0x10
    store_u32(header + 1, body + 4)
    store_u32(header + 5, count)
    return 0
