from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

from cogwork.amqp.outcomes import DeliveryState
from cogwork.dataplane.client.claims import Claim
from cogwork.dataplane.client.flusher import Flusher
from cogwork.dataplane.client.inbox import Inbox
from cogwork.dataplane.message.messages import Message

SOURCE_HASH: str

class Item(Message):
    delivery_tag: bytes
    @property
    def stage(self) -> Literal["waiting", "held", "claimed", "settled", "stale", "in-doubt"]: ...
    @property
    def is_settled(self) -> bool: ...
    def accept(self) -> Claim: ...
    def accept_nowait(self) -> None: ...
    def release(self) -> Claim: ...
    def reject(self, reason: object = "", condition: str = "amqp:precondition-failed") -> Claim: ...
    def modify(
        self,
        failed: bool = False,
        undeliverable_here: bool = False,
        annotations: Mapping[str, object] | None = None,
    ) -> Claim: ...

class ItemInbox(Inbox):
    marks_received: bool
    claimed: int
    marked: int
    silence_max_s: float
    def __init__(
        self,
        flusher: Flusher,
        create_future: Callable[[], Awaitable[Any]],
        window: int,
        on_late: Callable[[Sequence[Item]], Exception],
        mark_ahead: int = ...,
    ) -> None: ...
    def confirm(self, first: int, last: int, state: bytes) -> None: ...
    def accept_all(self, items: list[Item]) -> Claim: ...
    async def confirmed(self) -> None: ...
    def release_waiting(self) -> None: ...
    @property
    def has_earlier(self) -> bool: ...
    def unsettled_map(self, size_bytes_max: int) -> dict[bytes, DeliveryState | None]: ...
    def answered(
        self,
        marks_received: bool,
        known: Mapping[bytes, DeliveryState | None] | None,
        silence_max_s: float = 0.0,
    ) -> None: ...
    def expire(self) -> None: ...
