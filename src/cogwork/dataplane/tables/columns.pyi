from collections.abc import Iterable
from mmap import mmap

from cogwork.dataplane.client.stream_records import Records
from cogwork.dataplane.tables.column import Column

SOURCE_HASH: str

class Columns:
    start: int
    next: int
    limit: int
    held_bytes: int
    malformed: int
    is_full: bool
    def __init__(
        self, names: Iterable[str], start: int, limit: int, size_max: int, own_mark: bytes
    ) -> None: ...
    # One for each name that was given, and those of the keys and values of `properties`.
    def __getattr__(self, name: str) -> Column | None: ...
    def go_on(self, before: Columns) -> None: ...
    def add_chunk(self, data: bytes | memoryview, at: int = 0, end: int = -1) -> bool: ...
    def add_blocks(self, data: bytes | memoryview | mmap, at: int, end: int) -> int: ...
    def add_records(self, records: Records, at: int) -> int: ...
