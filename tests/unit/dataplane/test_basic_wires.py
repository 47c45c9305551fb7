"""Octets of AMQP 0-9-1 connections: cut into whole frames, in any pieces."""

from __future__ import annotations

import random

import pytest
from basic_client import BasicClient

from cogwork.amqp091.frames import FrameType, write_frame
from cogwork.dataplane.core import Core


def frames(*payloads: bytes) -> bytes:
    out = bytearray()
    for payload in payloads:
        write_frame(out, FrameType.METHOD, 1, payload)
    return bytes(out)


@pytest.fixture
def client() -> BasicClient:
    return BasicClient(Core())


def test_whole_frames_come_together(client: BasicClient) -> None:
    octets = frames(b"a", b"", b"abc")
    client.wire.feed(octets)
    assert client.frames == [octets]
    assert client.wire.frames_in == 3


def test_frames_in_pieces_of_one_octet_come_whole(client: BasicClient) -> None:
    octets = frames(b"a", b"bc", b"")
    for at in range(len(octets)):
        client.wire.feed(octets[at : at + 1])
    assert client.frames == [frames(b"a"), frames(b"bc"), frames(b"")]


def test_a_frame_that_is_too_large_goes_to_its_owner_before_it_is_whole(
    client: BasicClient,
) -> None:
    client.wire.allow_frames(4096)
    client.wire.feed(frames(b"a") + b"\x01\x00\x01\x00\x00\x10\x00" + b"x" * 10)
    assert b"".join(client.frames).startswith(frames(b"a") + b"\x01\x00\x01\x00\x00\x10\x00")


def test_many_frames_keep_their_order(client: BasicClient) -> None:
    octets = frames(*(str(n).encode() for n in range(500)))
    client.wire.feed(octets)
    assert b"".join(client.frames) == octets
    assert len(client.frames) > 1


def test_a_closed_wire_gives_nothing_more(client: BasicClient) -> None:
    client.wire.stop()
    client.wire.feed(frames(b"a"))
    assert client.frames == []


def test_a_fault_of_its_owner_stays_with_its_connection(
    client: BasicClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(octets: bytes) -> None:
        raise RuntimeError(octets.hex())

    monkeypatch.setattr(client, "on_frames", fail)
    client.wire.feed(frames(b"a"))
    assert [type(fault) for fault in client.faults] == [RuntimeError]


def test_random_octets_harm_nobody(client: BasicClient) -> None:
    octets = random.Random(7)
    for _ in range(200):
        client.wire.feed(octets.randbytes(64))
    assert client.faults == []
