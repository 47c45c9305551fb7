from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeVar

from cogwork.dataplane.client.dispatches import Batch, Post
from cogwork.dataplane.client.flusher import Flusher
from cogwork.dataplane.client.outbox import Outbox

SOURCE_HASH: str

class _Outcome(Protocol):
    def error(self) -> Exception | None: ...

T = TypeVar("T", bound=_Outcome)

class StreamOutbox(Outbox[T]):
    patience_s: float
    @property
    def producer(self) -> bytes: ...
    @property
    def sequence(self) -> int: ...
    @property
    def is_paused(self) -> bool: ...
    def __init__(
        self,
        flusher: Flusher,
        create_future: Callable[[], Awaitable[Any]],
        explain: Callable[[int, bytes | None], T],
        new_producer: Callable[[], bytes],
        call_later: Callable[..., object],
        producer: bytes | None = None,
    ) -> None: ...
    def append_one(self, body: object) -> Post: ...
    def append_encoded(self, messages: list[bytes]) -> Batch[T]: ...
    def append_all(self, bodies: Iterable[object]) -> Batch[T]: ...
