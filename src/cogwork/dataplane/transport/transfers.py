"""Transfers as nearly all of them look: read at once, and recognised again by their shape.

Any other shape is left to `scan.parse_transfer`, which takes whatever AMQP 1.0 §2.7.5 allows.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import load_u16, load_u32, load_word
from cython.cimports.libc.string import memset

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


def parse_common_transfer(p, at, end, t):
    """Parse a transfer in the shape that nearly all have; False leaves it to `parse_transfer`.

    That shape: a list8 of handle, delivery-id, tag, format and settled, perhaps `more`, and then
    only nulls and falses. Its fields end within 60 octets of `at`, so one check covers all reads.
    """
    list_end: int64_t
    count: uint8_t
    if at + 64 > end or p[at] != 0xC0:
        return False
    list_end = at + 2 + p[at + 1]
    count = p[at + 2]
    if count < 5 or count > 11 or list_end > end:
        return False
    at += 3
    if p[at] == 0x52:
        t.handle = p[at + 1]
        at += 2
    elif p[at] == 0x43:
        t.handle = 0
        at += 1
    elif p[at] == 0x70:
        t.handle = load_u32(p + at + 1)
        at += 5
    else:
        return False
    if p[at] == 0x70:
        t.delivery_id = load_u32(p + at + 1)
        at += 5
    elif p[at] == 0x52:
        t.delivery_id = p[at + 1]
        at += 2
    elif p[at] == 0x43:
        t.delivery_id = 0
        at += 1
    else:
        return False
    t.has_delivery_id = True
    if p[at] != 0xA0 or p[at + 1] > 32:
        return False
    t.tag_size = p[at + 1]
    t.tag = p + at + 2
    at += 2 + t.tag_size
    if p[at] == 0x43 or p[at] == 0x40:
        at += 1
    elif p[at] == 0x52 and p[at + 1] == 0:
        at += 2
    else:
        return False
    t.message_format = 0
    if p[at] == 0x41:
        t.settled = True
    elif p[at] == 0x42 or p[at] == 0x40:
        t.settled = False
    else:
        return False
    at += 1
    t.more = False
    count -= 5
    if count:
        if p[at] == 0x41:
            t.more = True
        elif p[at] != 0x42 and p[at] != 0x40:
            return False
        at += 1
        count -= 1
    while count:
        if p[at] != 0x40 and p[at] != 0x42:
            return False
        at += 1
        count -= 1
    if at != list_end:
        return False
    t.aborted = False
    t.resume = False
    t.state = cython.NULL
    t.state_size = 0
    t.payload = p + at
    t.payload_size = cython.cast(uint32_t, end - at)
    return True


def learn_shape(shape, frame, t):
    """Note what a frame like this one has where: all but its size, delivery-id and tag.

    A shape with `id_at` 0 fits no frame: where the delivery-id is not written in full, or more
    follows the tag than eight octets.
    """
    tail_size: uint32_t
    shape.size = cython.cast(uint32_t, t.payload - frame)
    shape.id_at = cython.cast(uint32_t, t.tag - frame) - 6
    shape.tail_at = shape.id_at + 6 + t.tag_size
    tail_size = shape.size - shape.tail_at
    if frame[shape.id_at - 1] != 0x70 or shape.id_at > 20 or tail_size > 8:
        shape.id_at = 0
        return
    shape.lead_mask = shape.tail_mask = 0
    memset(cython.address(shape.lead_mask), 0xFF, shape.id_at - 12)
    memset(cython.address(shape.tail_mask), 0xFF, tail_size)
    shape.head = load_word(frame + 4)
    shape.lead = load_word(frame + 12) & shape.lead_mask
    shape.tag_head = load_u16(frame + shape.id_at + 4)
    shape.tail = load_word(frame + shape.tail_at) & shape.tail_mask
