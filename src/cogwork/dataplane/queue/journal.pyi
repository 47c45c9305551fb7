from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from cogwork.dataplane.core import Core
from cogwork.dataplane.queue.sent_marks import SentMarks

SOURCE_HASH: str
MESSAGE_BYTES_MAX: Final[int]

def recovered_entry(at_ms: int) -> bytes: ...

class Journal:
    on_dirty: Callable[[], object] | None
    is_open: bool
    is_low: bool
    is_failed: bool
    failed_state: bytes | None
    seen: deque[tuple[int, bytes]] | None
    held_partitions: int
    def __init__(
        self,
        core: Core,
        sequence_base: int = 0,
        seen_max: int = 0,
        seen: Iterable[tuple[int, bytes]] = (),
    ) -> None: ...
    message_bytes_max: int
    @property
    def sequence_base(self) -> int: ...
    @property
    def wall_offset_s(self) -> float: ...
    def take(self) -> list[bytes]: ...
    def hold_output(self) -> None: ...
    def mark_sent(self, marks: SentMarks, group: int) -> None: ...
    def gathered(self, mark: int) -> int: ...
    def reported(self, mark: int) -> int: ...
