from typing import Final

from cogwork.dataplane.queue.item_table import ItemTable

SOURCE_HASH: str
FACTS_MAX: Final[int]
OUTCOMES: Final[tuple[str | None, ...]]

Fact = tuple[int, int, int, int, int, int, int | None, int]

class AuditEvents:
    sequence_base: int
    pending: list[list[Fact]]
    def __init__(
        self,
        items: ItemTable,
        shard: int,
        sample: float = 1.0,
        *,
        has_digests: bool = False,
        facts_max: int = ...,
    ) -> None: ...
    @property
    def shard(self) -> int: ...
    @property
    def has_digests(self) -> bool: ...
    @property
    def missed(self) -> int: ...
    @property
    def is_empty(self) -> bool: ...
    @property
    def waiting(self) -> int: ...
    def take(self, count: int) -> list[Fact]: ...

def render(
    facts: list[Fact], where: str, consumers: dict[int, str], middles: tuple[bytes, bytes]
) -> list[bytes]: ...
