"""How much room a value takes at the least, whichever codec writes it.

Theory of operation. A value that is larger than what is carried would be written whole before that
shows: gigabytes, for nothing. So it is walked through first, and each part counted as the fewest
octets that any codec needs for it, until more are counted than there is room for. What is counted
below the limit may still be larger in the end, by a small factor, and its writer finds that.
"""

from __future__ import annotations

import cython
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.libc.stdint import int64_t

__all__ = ("SOURCE_HASH", "exceeds")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

DEPTH_MAX = cython.declare(cython.int, 100)
"""What nests deeper is left to its codec, which refuses it: it may contain itself."""

GIVEN_UP = cython.declare(cython.int, 1)
TOO_LARGE = cython.declare(cython.int, 2)


def exceeds(value: object, limit: int64_t) -> bool:
    """Tell whether a value cannot be written in so many octets.

    Args:
        value: What is to be written.
        limit: The octets that there is room for.
    """
    left: int64_t = limit
    return count_value(value, cython.address(left), 0) == TOO_LARGE


@cython.cfunc
@cython.exceptval(-1)
def count_value(value: object, left: cython.pointer(int64_t), depth: cython.int) -> cython.int:
    """Take a value from what is left; return 0 where the count goes on."""
    left[0] -= 1
    if isinstance(value, str):
        left[0] -= len(cython.cast(str, value))
    elif isinstance(value, bytes):
        left[0] -= len(cython.cast(bytes, value))
    elif isinstance(value, bytearray):
        left[0] -= len(cython.cast(bytearray, value))
    elif isinstance(value, memoryview):
        left[0] -= value.nbytes
    elif not isinstance(value, (int, float)) and value is not None:
        return count_parts(value, left, depth + 1)
    return TOO_LARGE if left[0] < 0 else 0


@cython.cfunc
@cython.exceptval(-1)
def count_parts(value: object, left: cython.pointer(int64_t), depth: cython.int) -> cython.int:
    """Take what a value consists of from what is left."""
    found: cython.int = 0
    if depth > DEPTH_MAX:
        return GIVEN_UP
    if isinstance(value, dict):
        for key, part in cython.cast(dict, value).items():
            found = count_value(key, left, depth) or count_value(part, left, depth)
            if found:
                return found
    elif isinstance(value, (list, tuple, set, frozenset)):
        for part in value:
            found = count_value(part, left, depth)
            if found:
                return found
    else:
        for name in fields_of(type(value)):
            found = count_value(getattr(value, name, None), left, depth)
            if found:
                return found
    return TOO_LARGE if left[0] < 0 else 0


@cython.cfunc
def fields_of(kind: object) -> object:
    """List the fields of a dataclass or a Struct; other types have none."""
    names = getattr(kind, "__dataclass_fields__", None)
    return getattr(kind, "__struct_fields__", ()) if names is None else names
