from collections.abc import Callable, Container
from typing import Final, Protocol, TypeVar

from cogwork.dataplane.addresses.entry import AddressEntry
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.core import Core
from cogwork.dataplane.queue.pages import Page
from cogwork.dataplane.queue.settlement import ABANDONED as ABANDONED
from cogwork.dataplane.queue.settlement import LEFT_IN_DOUBT as LEFT_IN_DOUBT
from cogwork.dataplane.queue.settlement import REJECTED_BY_CONSUMER as REJECTED_BY_CONSUMER
from cogwork.dataplane.queue.settlement import Settlement
from cogwork.dataplane.queue.state import DROPPED as DROPPED
from cogwork.dataplane.queue.state import EXCEEDED as EXCEEDED
from cogwork.dataplane.queue.state import EXPIRED as EXPIRED
from cogwork.dataplane.queue.state import OVERACQUIRED as OVERACQUIRED
from cogwork.dataplane.transport.consumer_end import ConsumerEnd

_Node = TypeVar("_Node")

SOURCE_HASH: str
KEEP_CODE: Final[int]
NO_CEILING: int
SETTLE_CODE: Final[int]
STALE_CODE: Final[int]
UNKNOWN_CODE: Final[int]

class StoreHandler(Protocol):
    """Called once after each batch in which items died."""

    def on_batch(self, store: Store) -> None: ...

class Store(Settlement):
    policy: str
    ceiling_bytes: int
    @property
    def is_held_up(self) -> bool: ...
    on_durable: Callable[[], object] | None
    @property
    def durable_in_memory(self) -> int: ...
    def room(self) -> int | None: ...
    def put(
        self,
        message: bytes,
        message_format: int = 0,
        history: tuple[float, float, int, int] | None = None,
    ) -> bool: ...
    def flaw_of(self, message: bytes, message_format: int) -> str | None: ...
    handler: StoreHandler | None
    inlet: AddressEntry | None
    near_inlet: AddressEntry | None
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
    def reopen(self) -> None: ...
    def add_consumer(
        self,
        link: ConsumerEnd,
        marks_received: bool = False,
        is_browser: bool = False,
        is_far: bool = False,
    ) -> None: ...
    def feed_alike(self) -> None: ...
    def remove_consumer(self, link: ConsumerEnd, is_over: bool = True) -> None: ...
    def end_consumer(
        self, link: ConsumerEnd, code: int = 0, state: bytes | None = None
    ) -> None: ...
    def keep_consumer(self, link: ConsumerEnd) -> int: ...
    def end_kept(self, serial: int, code: int = 0, state: bytes | None = None) -> None: ...
    def lose_kept(self, serial: int) -> None: ...
    def serial_of(self, link: ConsumerEnd) -> int: ...
    def take_back(self, serial: int) -> None: ...
    def leased_to(self) -> set[int]: ...
    def resume(
        self,
        link: ConsumerEnd,
        tags: list[bytes],
        handed: Container[bytes] = (),
        is_there: bool = False,
    ) -> list[int]: ...
    def holders(self) -> list[tuple[ConsumerEnd, bool, bool]]: ...
    def clear(self) -> None: ...
    def page_in(self, page: Page, data: bytes) -> None: ...
    def tick(self, now_s: float) -> None: ...
    @property
    def is_idle(self) -> bool: ...
    @property
    def consumer_count(self) -> int: ...
    def on_batch(self, port: Port) -> None: ...

def awake(queues: list[tuple[str, _Node, Store]]) -> list[tuple[str, _Node, Store]]: ...
