"""Deliveries encoded once: the codec reads what the load generator will patch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.amqp.frames import FrameReader
from cogwork.amqp.message import Data, decode_sections
from cogwork.amqp.performatives import Transfer, decode_performative
from cogwork.bench.image import Image, Subject, delivery


def transfers(image: Image) -> list[tuple[Transfer, bytes]]:
    found = []
    for frame in FrameReader(1 << 20).feed(image.octets):
        performative, payload_at = decode_performative(frame.body)
        assert isinstance(performative, Transfer)
        found.append((performative, frame.body[payload_at:]))
    return found


@given(st.integers(16, 5000), st.integers(512, 2048), st.booleans())
def test_a_delivery_is_cut_into_frames_that_the_peer_takes(
    size: int, max_frame_size: int, settled: bool
) -> None:
    image = delivery(3, size, max_frame_size, settled=settled)
    parts = transfers(image)
    assert sum(image.frame_sizes) == len(image.octets)
    assert max(image.frame_sizes) <= max_frame_size
    assert [part.more for part, _ in parts] == [True] * (len(parts) - 1) + [False]
    assert all(part.handle == 3 and part.settled is settled for part, _ in parts)
    body = decode_sections(b"".join(payload for _, payload in parts)).body
    assert isinstance(body, Data)
    assert len(b"".join(body.parts)) == size


def test_what_changes_stands_where_the_image_says() -> None:
    image = delivery(0, 100, 65536, settled=False, to="a/b", reply_to="c/d")
    patched = bytearray(image.octets)
    patched[image.id_at : image.id_at + 4] = (7).to_bytes(4, "big")
    patched[image.tag_at : image.tag_at + 4] = b"tag!"
    patched[image.stamp_at : image.stamp_at + 16] = b"0123456789abcdef"
    patched[image.correlation_at : image.correlation_at + 8] = (99).to_bytes(8, "big")
    ((transfer, payload),) = transfers(Image(bytes(patched), (len(patched),), False, 0, 0))
    sections = decode_sections(payload)
    assert (transfer.delivery_id, transfer.delivery_tag) == (7, b"tag!")
    assert isinstance(sections.body, Data)
    assert sections.body.parts[0].startswith(b"0123456789abcdef")
    assert sections.properties is not None
    assert sections.properties.correlation_id == 99
    assert (sections.properties.to, sections.properties.reply_to) == ("a/b", "c/d")


def test_a_body_too_small_for_its_stamp_is_refused() -> None:
    with pytest.raises(ValueError, match="16 bytes or more, not 15"):
        delivery(0, 15, 65536, settled=True)


def test_a_million_subjects_are_distinct() -> None:
    never = 1 << 62
    subject = Subject("t/", ((3333, 1, never), (3333, 1009, 3333), (3333, 2003, never)))
    assert len({subject.address(index) for index in range(0, 1_000_000, 7)}) == 142_858
    assert subject.address(3334) == "t/0001.1010.2003"
