"""What a reader of AMQP 1.0 sees of a stored message, whichever protocol brought it."""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import bytes_from
from cython.cimports.cogwork.dataplane.message.basic import BASIC_FORMAT

from cogwork.dataplane.message.basic_conversion import amqp_from_basic

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


def as_amqp(p, size, format):
    return _translated(p, size, format, False)


def as_amqp_whole(p, size, format):
    return _translated(p, size, format, True)


@cython.cfunc
def _translated(p: octets, size: uint32_t, format: uint32_t, is_whole: cython.bint) -> bytes:
    message: bytes = bytes_from(p, size)
    if format != BASIC_FORMAT:
        return message
    try:
        return amqp_from_basic(message, is_whole=is_whole)
    except ValueError:
        return message  # octets that only claim to be such a message
