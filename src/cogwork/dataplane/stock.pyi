from typing import Final

from cogwork.dataplane.core import Core
from cogwork.dataplane.journal import Journal
from cogwork.dataplane.terminus import Terminus

SOURCE_HASH: str
EXPIRED: Final[str]
EXCEEDED: Final[str]
DROPPED: Final[str]

class Stock(Terminus):
    journal: Journal | None
    ttl_s: float
    maximum_length: int
    maximum_bytes: int
    maximum_delivery_count: int
    keeps_dead: bool
    def __init__(self, core: Core) -> None: ...
    @property
    def depth(self) -> int: ...
    def close(self) -> None: ...
    def take_exceptions(self) -> list[tuple[str, bytes, bytes | None, int]]: ...
    def peek(
        self, count: int, offset: int = 0
    ) -> list[tuple[bytes, dict[str, str | int | float | None]]]: ...
    def take_ready(self, count: int, numbers: list[int] | None = None) -> list[bytes]: ...
    def moved(self, numbers: list[int]) -> None: ...
    def purge(self, count_max: int = 0xFFFFFFFF) -> int: ...
