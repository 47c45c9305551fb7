"""The formats, octet by octet: what a version wrote, every later program reads."""

from __future__ import annotations

from cogwork.log.block import Block, encode_block
from cogwork.log.file_header import FIRST_KEY, FileHeader
from cogwork.log.mark import KIND_MARK, Mark
from cogwork.log.position import lsn_of
from cogwork.log.record import encode_record
from cogwork.log.segment_footer import SegmentFooter
from cogwork.log.segment_header import SegmentHeader
from cogwork.log.segment_index import SegmentIndex


def crc32c(data: bytes) -> bytes:
    """Compute the checksum bit by bit, as RFC 3720 appendix B.4 has it."""
    state = 0xFFFFFFFF
    for octet in data:
        state ^= octet
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return (state ^ 0xFFFFFFFF).to_bytes(4, "big")


def test_the_checksum_is_that_of_the_rfc() -> None:
    assert crc32c(bytes(32)) == bytes.fromhex("8a9136aa")
    assert crc32c(bytes(range(32))) == bytes.fromhex("46dd794e")


def test_a_file_header() -> None:
    start = b"cogwkwal" + bytes.fromhex("0002 0080")
    rest = bytes.fromhex("0000000000000102 05") + b"north" + bytes(59 + 6) + b"\x04" + bytes(1)
    rest += b"sesame!!" + bytes(23)
    header = FileHeader("north", 0x102, 0x400, b"sesame!!")
    assert header.encode() == start + crc32c(start + rest) + rest
    assert FileHeader.decode(header.encode(), "x").key == b"sesame!!"


def test_a_file_header_of_version_1_has_a_key_that_all_have() -> None:
    start = b"cogwkwal" + bytes.fromhex("0001 0080")
    rest = bytes.fromhex("0000000000000102 05") + b"north" + bytes(59 + 6) + b"\x04" + bytes(1 + 31)
    header = FileHeader.decode(start + crc32c(start + rest) + rest, "x")
    assert (header.number, header.container_id, header.size_bytes) == (0x102, "north", 0x400)
    assert header.key == FIRST_KEY


def test_a_record() -> None:
    lsn = lsn_of(2, 0x80)
    assert lsn == 0x0000_0002_0000_0080
    rest = bytes.fromhex(
        "00000003"  # length
        "00000007"  # group
        "c8"  # kind
        "0000000000001234"  # index
        "0000000000000005"  # term
    )
    checksum = crc32c(lsn.to_bytes(8, "big") + rest + b"abc")
    assert b"".join(encode_record(lsn, 7, 200, 0x1234, 5, b"abc")) == checksum + rest + b"abc"


def test_a_mark() -> None:
    rest = bytes.fromhex("00000008 00000000 01 0000000200000080 0000000000000001 c06a3e81f4d92b57")
    lsn = lsn_of(2, 0x100)
    checksum = crc32c(lsn.to_bytes(8, "big") + rest)
    mark = Mark(lsn_of(2, 0x80), 1)
    assert b"".join(mark.encode(lsn, KIND_MARK, FIRST_KEY)) == checksum + rest


def test_a_segment_header() -> None:
    start = b"cogwkseg" + bytes.fromhex("0001 0040")
    rest = b"sixteen octets!!" + bytes.fromhex("0000000000000064") + bytes(24)
    encoded = SegmentHeader(b"sixteen octets!!", 100).encode()
    assert encoded == start + crc32c(start + rest) + rest
    assert len(encoded) == 64


def test_a_block() -> None:
    rest = bytes.fromhex("00000003 0000000000000064 0000000a fffffffffffffffe") + b"abc"
    assert b"".join(encode_block(Block(100, 10, -2, b"abc"))) == crc32c(rest) + rest


def test_an_index() -> None:
    index = SegmentIndex()
    for offset, position in ((100, 64), (110, 64 + 65_535), (120, 64 + 65_536)):
        index.note(offset, -1, position)
    assert index.encode() == bytes.fromhex(
        "0000000000000064 ffffffffffffffff 0000000000000040"
        "0000000000000078 ffffffffffffffff 0000000000010040"
    )


def test_a_footer() -> None:
    fields = bytes.fromhex(
        "0000000000010000"  # index position
        "00000002"  # index entries
        "89abcdef"  # index checksum
        "00000003"  # blocks
        "0000000000000064"  # first offset
        "0000000000000082"  # next offset
        "fffffffffffffffe"  # first time
        "0000000000000001"  # last time
    )
    footer = SegmentFooter(0x10000, 2, 0x89ABCDEF, 3, 100, 130, -2, 1)
    assert footer.encode() == b"cogwkend" + crc32c(fields) + fields
