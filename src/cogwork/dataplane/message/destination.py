"""What a JMS client says of the address in a message: that it is a queue, or a topic.

Theory of operation. A link to one destination says so by its target's capabilities; one to the
anonymous relay has none, so each message says it by the annotation `x-opt-jms-dest`: 0 is a queue,
1 a topic, 2 and 3 are temporary ones. One walk from the front finds it, and ends at the first
section that is past the annotations.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.numbers import IS_NUMBER, read_integer
from cython.cimports.cogwork.dataplane.encoding.values import (
    descriptor_code,
    map_header,
    read_key,
    skip_value,
)
from cython.cimports.libc.string import memcmp

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


def read_destination(p, size):
    """Return what a message says that its address is."""
    at: int64_t = 0
    body: int64_t = 0
    code: cython.int
    while at < size:
        code = descriptor_code(p + at, size - at, cython.address(body))
        if code < 0x70 or code > 0x72:
            return SAYS_NOTHING
        at += body
        if code == 0x72:
            return _among_annotations(p, at, size)
        at = skip_value(p, at, size)
        if at < 0:
            return SAYS_NOTHING
    return SAYS_NOTHING


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _among_annotations(p: octets, at: int64_t, end: int64_t) -> cython.int:
    pairs_end: int64_t = 0
    kind: int64_t = -1
    size: uint32_t = 0
    key: octets
    at = map_header(p, at, end, cython.address(pairs_end))
    while 0 <= at < pairs_end:
        key = read_key(p, at, pairs_end, cython.address(size))
        at = skip_value(p, at, pairs_end)
        if at < 0 or at >= pairs_end:
            return SAYS_NOTHING
        if size == 14 and memcmp(key, b"x-opt-jms-dest", 14) == 0:
            if read_integer(p, at, pairs_end, cython.address(kind)) != IS_NUMBER:
                return SAYS_NOTHING
            if kind == 0 or kind == 2:
                return SAYS_QUEUE
            return SAYS_TOPIC if kind == 1 or kind == 3 else SAYS_NOTHING
        at = skip_value(p, at, pairs_end)
    return SAYS_NOTHING
