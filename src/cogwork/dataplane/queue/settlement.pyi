from typing import Final

from cogwork.dataplane.queue.histogram import Histogram
from cogwork.dataplane.queue.state import QueueState

SOURCE_HASH: str
REJECTED_BY_CONSUMER: Final[str]
LEFT_IN_DOUBT: Final[str]
ABANDONED: Final[str]

class Settlement(QueueState):
    in_doubt_timeout_s: float
    redelivers_in_doubt: bool
    waits: Histogram | None
    def claim(
        self, item: int, attempt: int, code: int = 0x24, state: bytes | None = None
    ) -> int: ...
    def counts(self) -> dict[str, int]: ...
