"""The compiled codec: `encoder` and `decoder` in one place, as in `cogwork.amqp.codec`."""

from __future__ import annotations

from cogwork.dataplane.encoding.decoder import decode
from cogwork.dataplane.encoding.encoder import encode

__all__ = ("decode", "encode")
