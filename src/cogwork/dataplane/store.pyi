from typing import Final, Protocol

from cogwork.dataplane.core import AddressEntry, Core, OutgoingLink, Port, Terminus

SOURCE_HASH: str
KEEP_CODE: Final[int]
SETTLE_CODE: Final[int]
STALE_CODE: Final[int]
EXPIRED: Final[str]
REJECTED_BY_CONSUMER: Final[str]
EXCEEDED: Final[str]
IN_DOUBT: Final[str]
DROPPED: Final[str]

class StoreHandler(Protocol):
    """Called once after each batch in which items died."""

    def on_batch(self, store: Store) -> None: ...

class Store(Terminus):
    handler: StoreHandler | None
    inlet: AddressEntry | None
    ttl_s: float
    maximum_length: int
    maximum_bytes: int
    maximum_delivery_count: int
    in_doubt_timeout_s: float
    redelivers_doubtful: bool
    keeps_dead: bool
    policy: str
    def __init__(
        self,
        core: Core,
        shard: int = 0,
        *,
        priorities: int = 10,
        delays: bool = True,
        is_ordered: bool = False,
        deduplication_window_s: float = 0.0,
        deduplication_count: int = 100_000,
    ) -> None: ...
    @property
    def shard(self) -> int: ...
    @property
    def depth(self) -> int: ...
    def close(self) -> None: ...
    def put(self, message: bytes) -> bool: ...
    def add_consumer(
        self, link: OutgoingLink, marks_received: bool = False, is_browser: bool = False
    ) -> None: ...
    def remove_consumer(self, link: OutgoingLink) -> None: ...
    def resume(self, link: OutgoingLink, tags: list[bytes]) -> list[int]: ...
    def claim(
        self, item: int, attempt: int, code: int = 0x24, state: bytes | None = None
    ) -> int: ...
    def redeliver_doubtful(self) -> int: ...
    def tick(self, now_s: float) -> None: ...
    def on_batch(self, port: Port) -> None: ...
    def take_exceptions(self) -> list[tuple[str, bytes, bytes | None, int]]: ...
    def counts(self) -> dict[str, int]: ...
    def peek(
        self, count: int, offset: int = 0
    ) -> list[tuple[bytes, dict[str, str | int | float | None]]]: ...
    def take_ready(self, count: int) -> list[bytes]: ...
    def purge(self) -> int: ...
