"""Logins from any address of the loopback network, frame by frame."""

from __future__ import annotations

import asyncio
import contextlib

from cogwork.amqp.frames import SASL_HEADER, FrameReader, FrameType, encode_frame
from cogwork.amqp.sasl import (
    PLAIN,
    SaslCode,
    SaslInit,
    SaslOutcome,
    build_plain,
    decode_sasl,
    encode_sasl,
)

__all__ = ("log_in",)


async def log_in(port: int, host: str, user: str, password: str) -> SaslCode | None:
    """Log in from an address of the loopback network; None where the container hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(host, 0))
    try:
        init = SaslInit(mechanism=PLAIN, initial_response=build_plain(user, password))
        writer.write(SASL_HEADER + encode_frame(0, encode_sasl(init), FrameType.SASL))
        frames = FrameReader(65536)
        await reader.readexactly(8)
        while data := await reader.read(4096):
            for frame in frames.feed(data):
                said = decode_sasl(frame.body)
                if isinstance(said, SaslOutcome):
                    return said.code
        return None
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
