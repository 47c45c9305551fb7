from collections.abc import Callable

from cogwork.dataplane.queue.settlement import Settlement

SOURCE_HASH: str

NO_CEILING: int

class Enqueue(Settlement):
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
