"""The compiled codec: `encoder` and `decoder` in one place, as in `cogwork.amqp.codec`."""

from __future__ import annotations

from cogwork.dataplane.decoder import decode
from cogwork.dataplane.encoder import encode

__all__ = ("decode", "encode")
