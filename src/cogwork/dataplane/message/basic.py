"""The stored form of a message that was published by AMQP 0-9-1: octet for octet what came.

Theory of operation. A message of 0-9-1 is kept as exchange and routing key (short strings), the size
of its property flags and list, these octets as they stood in the content header, and the body. Its
message-format tells it from AMQP 1.0. So it goes out again without being decoded; only what a store
heeds is read, once, by a walk over the property list (AMQP 0-9-1 §4.2.6.1).

Octets may be anybody's: a client of AMQP 1.0 can send any message-format. All reading is within
bounds, and says whether it could.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import (
    bytes_from,
    load_u16,
    load_u32,
    octets_of,
    store_u32,
)
from cython.cimports.cogwork.dataplane.message.header import clear_header
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import uint64_t
from cython.cimports.libc.string import memcpy

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

BASIC_MESSAGE_FORMAT = BASIC_FORMAT
"""The message-format of such messages, as Python names it."""

SHORT_MAX = 255
"""What the length octet of a short string can say."""

HAS_HEADERS = cython.declare(uint32_t, 1 << 13)
HAS_DELIVERY_MODE = cython.declare(uint32_t, 1 << 12)
HAS_PRIORITY = cython.declare(uint32_t, 1 << 11)
HAS_REPLY_TO = cython.declare(uint32_t, 1 << 9)
HAS_EXPIRATION = cython.declare(uint32_t, 1 << 8)
HAS_MESSAGE_ID = cython.declare(uint32_t, 1 << 7)
HAS_TIMESTAMP = cython.declare(uint32_t, 1 << 6)
HAS_USER_ID = cython.declare(uint32_t, 1 << 4)
UNKNOWN_FLAGS = cython.declare(uint32_t, 3)
"""Flags of properties, in the order in which these stand; the last two name none."""

PERSISTENT = cython.declare(uint8_t, 2)
"""The delivery-mode of what is to outlive its queue's container."""

EXPIRATION_DIGITS_MAX = cython.declare(uint32_t, 20)
TABLE_DEPTH_MAX = cython.declare(cython.int, 32)
"""As deep as `cogwork.amqp091.tables` reads."""

TABLE_CODE = cython.declare(uint8_t, 0x46)
ARRAY_CODE = cython.declare(uint8_t, 0x41)
TTL_MAX_MS = cython.declare(uint64_t, 0xFFFFFFFF)


def find_basic_parts(p, size, parts):
    """Find the parts of a stored message; return whether they are all there."""
    at: uint32_t
    if size < 6:
        return False
    parts.route = p
    parts.exchange = p + 1
    parts.exchange_size = p[0]
    at = 1 + parts.exchange_size
    if at >= size:
        return False
    parts.key = p + at + 1
    parts.key_size = p[at]
    at += 1 + parts.key_size
    parts.route_size = at
    if cython.cast(uint64_t, at) + 4 > size:
        return False
    parts.properties_size = load_u32(p + at)
    at += 4
    if parts.properties_size > size - at or parts.properties_size < 2:
        return False
    parts.properties = p + at
    at += parts.properties_size
    parts.body = p + at
    parts.body_size = size - at
    return True


def read_basic_facts(p, size, facts):
    """Read what a store heeds in property flags and list; return whether these are well formed."""
    flags: uint32_t
    flag: uint32_t = 1 << 15
    at: uint32_t = 2
    start: uint32_t
    clear_header(cython.address(facts.header))
    # Absent means the lowest priority (RabbitMQ), not the middle one of AMQP 1.0.
    facts.header.priority = 0
    facts.message_id = facts.headers = facts.reply_to = cython.NULL
    facts.message_id_size = facts.headers_size = facts.reply_to_size = 0
    if size < 2:
        return False
    flags = load_u16(p)
    if flags & UNKNOWN_FLAGS:
        return False
    facts.has_user_id = flags & HAS_USER_ID != 0
    while flag > UNKNOWN_FLAGS:
        if flags & flag:
            start = at
            at = _skip_property(p, size, at, flag)
            if at == 0:
                return False
            if flag & (HAS_HEADERS | HAS_DELIVERY_MODE | HAS_PRIORITY | HAS_EXPIRATION):
                if not _note(p + start, at - start, flag, facts):
                    return False
            elif flag == HAS_MESSAGE_ID:
                facts.message_id = p + start
                facts.message_id_size = at - start
            elif flag == HAS_REPLY_TO:
                facts.reply_to = p + start
                facts.reply_to_size = at - start
        flag >>= 1
    return at == size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _skip_property(p: octets, size: uint32_t, at: uint32_t, flag: uint32_t) -> uint32_t:
    """Return where a property ends; 0 where it does not within `size`."""
    left: uint32_t = size - at
    needed: uint64_t
    if flag & (HAS_DELIVERY_MODE | HAS_PRIORITY):
        needed = 1
    elif flag == HAS_TIMESTAMP:
        needed = 8
    elif flag == HAS_HEADERS:
        needed = 4 if left < 4 else cython.cast(uint64_t, 4) + load_u32(p + at)
    else:
        needed = 1 if left < 1 else cython.cast(uint64_t, 1) + p[at]
    return 0 if needed > left else at + cython.cast(uint32_t, needed)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _note(
    p: octets, size: uint32_t, flag: uint32_t, facts: cython.pointer(BasicFacts)
) -> cython.bint:
    """Note one property; return whether it can be understood."""
    if flag == HAS_DELIVERY_MODE:
        facts.header.durable = p[0] == PERSISTENT
    elif flag == HAS_PRIORITY:
        facts.header.priority = p[0]
    elif flag == HAS_HEADERS:
        facts.headers = p + 4
        facts.headers_size = size - 4
    else:
        return _note_expiration(p + 1, size - 1, cython.address(facts.header))
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _note_expiration(p: octets, size: uint32_t, header: cython.pointer(Header)) -> cython.bint:
    """Read digits of milliseconds; more than fit are as good as the most that do."""
    ttl_ms: uint64_t = 0
    index: uint32_t
    if size == 0 or size > EXPIRATION_DIGITS_MAX:
        return False
    for index in range(size):
        if not 0x30 <= p[index] <= 0x39:
            return False
        if ttl_ms <= TTL_MAX_MS:
            ttl_ms = ttl_ms * 10 + (p[index] - 0x30)
    header.has_ttl = True
    header.ttl_ms = cython.cast(uint32_t, min(ttl_ms, TTL_MAX_MS))
    return True


def is_table(p, size):
    """Return whether octets are the fields of a table (AMQP 0-9-1 §4.2.5.5)."""
    return _are_values(p, size, True, TABLE_DEPTH_MAX)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _are_values(p: octets, size: uint32_t, named: cython.bint, depth: cython.int) -> cython.bint:
    """Return whether octets are values one behind the other, in a table each with its name."""
    at: uint64_t = 0
    length: uint64_t
    if depth == 0:
        return False
    while at < size:
        if named:
            at += cython.cast(uint64_t, 1) + p[at]
            if at >= size:
                return False
        length = _value_size(p + at, cython.cast(uint32_t, size - at))
        if length == 0:
            return False
        if p[at] == TABLE_CODE or p[at] == ARRAY_CODE:
            if not _are_values(
                p + at + 5, cython.cast(uint32_t, length - 5), p[at] == TABLE_CODE, depth - 1
            ):
                return False
        at += length
    return True


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _value_size(p: octets, size: uint32_t) -> uint64_t:
    """Return how many octets a value takes, its type included; 0 where it does not fit."""
    code: uint8_t = p[0]
    length: uint64_t
    if code == 0x56:  # V
        length = 1
    elif code == 0x74 or code == 0x62 or code == 0x42:  # t b B
        length = 2
    elif code == 0x73 or code == 0x75:  # s u
        length = 3
    elif code == 0x49 or code == 0x69 or code == 0x66:  # I i f
        length = 5
    elif code == 0x44:  # D
        length = 6
    elif code == 0x6C or code == 0x4C or code == 0x64 or code == 0x54:  # l L d T
        length = 9
    elif code == 0x53 or code == 0x78 or code == 0x46 or code == 0x41:  # S x F A
        length = 5 if size < 5 else cython.cast(uint64_t, 5) + load_u32(p + 1)
    else:
        return 0
    return 0 if length > size else length


def is_basic_durable(p, size):
    """Return whether a stored message is persistent."""
    parts: BasicParts
    facts: BasicFacts
    if not find_basic_parts(p, size, cython.address(parts)):
        return False
    read_basic_facts(parts.properties, parts.properties_size, cython.address(facts))
    return facts.header.durable


# -- for Python


def is_field_table(fields: bytes) -> bool:
    """Return whether octets are the fields of a table; without its size."""
    return is_table(octets_of(fields), cython.cast(uint32_t, len(fields)))


def pack_basic(exchange: bytes, key: bytes, properties: bytes, body: bytes) -> bytes:
    """Return a message in its stored form.

    Args:
        exchange: The exchange's name.
        key: The routing key.
        properties: Property flags and list, as in the content header.
        body: The content's body.

    Raises:
        ValueError: A name is longer than a short string can be, or the flags are missing.
    """
    exchange_size: cython.Py_ssize_t = len(exchange)
    key_size: cython.Py_ssize_t = len(key)
    size: cython.Py_ssize_t = len(properties)
    body_size: cython.Py_ssize_t = len(body)
    if exchange_size > SHORT_MAX or key_size > SHORT_MAX:
        raise ValueError(f"names of {exchange_size} and {key_size} octets (at most {SHORT_MAX})")
    if size < 2:
        raise ValueError(f"property flags of {size} octets (at least 2)")
    message: bytes = PyBytes_FromStringAndSize(
        cython.NULL, 6 + exchange_size + key_size + size + body_size
    )
    p: cython.pointer(uint8_t) = cython.cast(cython.pointer(uint8_t), PyBytes_AS_STRING(message))
    p[0] = cython.cast(uint8_t, exchange_size)
    memcpy(p + 1, octets_of(exchange), exchange_size)
    p += 1 + exchange_size
    p[0] = cython.cast(uint8_t, key_size)
    memcpy(p + 1, octets_of(key), key_size)
    p += 1 + key_size
    store_u32(p, cython.cast(uint32_t, size))
    memcpy(p + 4, octets_of(properties), size)
    memcpy(p + 4 + size, octets_of(body), body_size)
    return message


def unpack_basic(message: bytes) -> tuple:
    """Return exchange, routing key, property octets and body of a stored message.

    Raises:
        ValueError: It is damaged.
    """
    parts: BasicParts
    if not find_basic_parts(
        octets_of(message), cython.cast(uint32_t, len(message)), cython.address(parts)
    ):
        raise ValueError(f"a stored message of {len(message)} octets is damaged")
    return (
        bytes_from(parts.exchange, parts.exchange_size),
        bytes_from(parts.key, parts.key_size),
        bytes_from(parts.properties, parts.properties_size),
        bytes_from(parts.body, parts.body_size),
    )
