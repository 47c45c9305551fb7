"""Page files: what queues on disk have beyond memory.

`docs/internals/queue-journal.md` says what each octet is.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from itertools import accumulate
from struct import Struct
from typing import TYPE_CHECKING

from google_crc32c import value

from cogwork.dataplane.queue.pages import INDEX_ENTRY_BYTES
from cogwork.log.errors import ForeignFile, LogCorrupt
from cogwork.log.header import HeaderFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogwork.dataplane.queue.pages import Block

__all__ = ("HEADER_BYTES", "BlockPlace", "PageTable", "encode_page_file")

HEADER_BYTES = 64
_FORMAT = HeaderFormat(b"cogwkpag", 1, HEADER_BYTES, "page file")
_FIELDS = Struct(">IQIIII")
_BLOCK = Struct(">QIIIIQQ")


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """A block of a page file.

    Attributes:
        position: Where it begins, from the file's beginning.
        size_bytes: How large it is.
        checksum: CRC32C of its octets.
        first: Which of the file's items is its first.
        count: How many it has.
        stored_ms: When the first of them came, in milliseconds since 1970.
        expires_ms: When the first of them expires; 0 where none does.
    """

    position: int
    size_bytes: int
    checksum: int
    first: int
    count: int
    stored_ms: int
    expires_ms: int

    def check(self, data: bytes, file: str) -> bytes:
        """Return what was read of it.

        Args:
            data: From its place in the file.
            file: The file's name, for errors.

        Raises:
            LogCorrupt: That is not what was written.
        """
        if len(data) != self.size_bytes or value(data) != self.checksum:
            raise LogCorrupt(file, self.position, "a block's checksum is wrong")
        return data


@dataclass(frozen=True, slots=True)
class PageTable:
    """What a page file says of itself.

    Attributes:
        level: The level of its items.
        blocks: Where its items are.
        index: Of each item number, place and size.
    """

    level: int
    blocks: list[BlockPlace]
    index: bytes

    @staticmethod
    def size_of(data: bytes, file: str) -> int:
        """Return how many octets of a file its header and its table are.

        Args:
            data: Its first octets.
            file: Its name, for errors.

        Raises:
            LogCorrupt: It is no page file.
        """
        *_, blocks, items, _ = _FIELDS.unpack_from(_FORMAT.decode(data, file))
        return HEADER_BYTES + int(blocks) * _BLOCK.size + int(items) * INDEX_ENTRY_BYTES

    @classmethod
    def decode(cls, data: bytes, group: int, number: int, file: str) -> PageTable:
        """Read a file's header and table.

        Args:
            data: As many octets as `size_of` says.
            group: The queue's number in the log.
            number: The file's number.
            file: Its name, for errors.

        Raises:
            LogCorrupt: It is damaged.
            ForeignFile: It is another queue's, or has another one's name.
        """
        of, called, level, blocks, _, checksum = _FIELDS.unpack_from(_FORMAT.decode(data, file))
        if (of, called) != (group, number):
            raise ForeignFile(file, f"queue {of}, as file {called}", f"queue {group}")
        if value(data[HEADER_BYTES:]) != checksum:
            raise LogCorrupt(file, HEADER_BYTES, "the table's checksum is wrong")
        index_at = HEADER_BYTES + blocks * _BLOCK.size
        places = [BlockPlace(*each) for each in _BLOCK.iter_unpack(data[HEADER_BYTES:index_at])]
        return cls(level, places, data[index_at:])


def encode_page_file(
    group: int, number: int, level: int, blocks: Sequence[Block], index: bytes
) -> tuple[list[bytes], list[BlockPlace]]:
    """Return what a page file holds, in parts, and where its blocks are in it.

    Args:
        group: The queue's number in the log.
        number: The file's number.
        level: The level of its items.
        blocks: Them.
        index: Of each item number, place and size.
    """
    table_bytes = HEADER_BYTES + len(blocks) * _BLOCK.size + len(index)
    positions = accumulate((len(each.data) for each in blocks), initial=table_bytes)
    places = [
        BlockPlace(
            position,
            len(each.data),
            value(each.data),
            each.first,
            each.count,
            each.stored_ms,
            each.expires_ms,
        )
        for position, each in zip(positions, blocks, strict=False)
    ]
    table = b"".join(_BLOCK.pack(*astuple(each)) for each in places) + index
    items = len(index) // INDEX_ENTRY_BYTES
    fields = _FIELDS.pack(group, number, level, len(blocks), items, value(table))
    return [_FORMAT.encode(fields), table, *(each.data for each in blocks)], places
