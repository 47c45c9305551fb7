"""Compiled roles without a socket: bytes in, bytes out."""

from dataclasses import dataclass
from typing import Any

from cogwork.amqp.frames import FrameReader, encode_frame
from cogwork.amqp.message import Data, Sections, encode_sections
from cogwork.amqp.performatives import (
    Flow,
    Performative,
    Transfer,
    decode_performative,
    encode_performative,
)
from cogwork.bench.wire import Wire


@dataclass
class Bench:
    """Stands in for a connection beyond its handshake."""

    window: int = 1000
    fd: int = -1
    channel: int = 0
    received: bytes = b""


def frame(performative: Performative, payload: bytes = b"") -> bytes:
    return encode_frame(0, encode_performative(performative) + payload)


def flow(credit: int, delivery_count: int = 0, window: int = 1000, seen: int = 0) -> bytes:
    return frame(
        Flow(
            next_incoming_id=seen,
            incoming_window=window,
            next_outgoing_id=0,
            outgoing_window=0,
            handle=0,
            delivery_count=delivery_count,
            link_credit=credit,
        )
    )


def numbered(number: int, *, delivery_id: int | None = None, **fields: Any) -> bytes:
    """Return a transfer as a producer sends it."""
    stamp = number.to_bytes(8, "big") + bytes(8)
    transfer = Transfer(
        handle=0,
        delivery_id=number if delivery_id is None else delivery_id,
        delivery_tag=b"t",
        **{"settled": True, **fields},
    )
    return frame(transfer, encode_sections(Sections(body=Data([stamp + b"rest"]))))


def feed(wire: Wire, octets: bytes) -> int:
    """Let bytes arrive."""
    wire.room()[: len(octets)] = octets
    return wire.note_received(len(octets))


def take(wire: Wire) -> bytes:
    """Take all that is to be sent."""
    taken = b""
    while output := bytes(wire.output()):
        taken += output
        wire.note_sent(len(output))
    return taken


def performatives(octets: bytes) -> list[Performative]:
    return [decode_performative(each.body)[0] for each in FrameReader(1 << 20).feed(octets)]
