"""Values to bytes and back: the readable reference (AMQP 1.0 §1.6).

The compiled twin in `dataplane.codec` is held to these functions by a differential test.
"""

from __future__ import annotations

from cogwork.amqp.decoding import decode
from cogwork.amqp.encoding import encode, encode_into
from cogwork.amqp.limits import MAX_DEPTH, MAX_EMPTY_ITEMS, MAX_HASH_CLASHES

__all__ = ("MAX_DEPTH", "MAX_EMPTY_ITEMS", "MAX_HASH_CLASHES", "decode", "encode", "encode_into")
