import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any

from cogwork.dataplane.flusher import Flusher
from cogwork.dataplane.inbox import Inbox
from cogwork.dataplane.messages import Message

SOURCE_HASH: str
CAUGHT_UP_PREFIX: bytes

class Record(Message):
    @property
    def offset(self) -> int: ...
    @property
    def time_ms(self) -> int: ...
    @property
    def time(self) -> datetime: ...
    @property
    def producer(self) -> bytes | None: ...
    @property
    def producer_sequence(self) -> int | None: ...
    @property
    def is_snapshot(self) -> bool: ...

class StreamInbox(Inbox):
    on_caught_up: Callable[[], None] | None
    def __init__(
        self, flusher: Flusher, create_future: Callable[[], asyncio.Future[Any]], window: int
    ) -> None: ...
    @property
    def is_caught_up(self) -> bool: ...
    @property
    def next_offset(self) -> int | None: ...
