from collections.abc import Awaitable, Callable
from typing import Any

from cogwork.dataplane.client.flusher import Flusher
from cogwork.dataplane.client.inbox import Inbox
from cogwork.dataplane.client.stream_records import Records

SOURCE_HASH: str
CAUGHT_UP_PREFIX: bytes

class StreamInbox(Inbox):
    on_caught_up: Callable[[], None] | None
    on_placed: Callable[[], None] | None
    def __init__(
        self, flusher: Flusher, create_future: Callable[[], Awaitable[Any]], window: int
    ) -> None: ...
    async def take_batch(self, count_max: int) -> Records: ...  # type: ignore[override]  # no list, but as good
    async def drain(self) -> Records: ...  # type: ignore[override]  # no list, but as good
    def forget(self) -> None: ...
    def forget_from(self, end: int) -> None: ...
    @property
    def is_caught_up(self) -> bool: ...
    @property
    def next_offset(self) -> int | None: ...
