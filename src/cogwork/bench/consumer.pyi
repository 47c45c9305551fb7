from typing import Final

from cogwork.bench.histogram import Histogram
from cogwork.bench.peer import Link, Peer
from cogwork.bench.wire import Wire

SOURCE_HASH: Final[str]

class Consumer(Wire):
    latency: Histogram
    target: int
    delivered: int
    payload_bytes: int
    digest: int
    missing: int
    repeated: int
    aborted: int
    def __init__(
        self,
        peer: Peer,
        links: list[Link],
        producers: int,
        credit: int,
        *,
        is_timed: bool = False,
    ) -> None: ...
    def aim(self, target: int) -> None: ...
