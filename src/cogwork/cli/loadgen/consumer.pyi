from typing import Final

from cogwork.cli.loadgen.histogram import Histogram
from cogwork.cli.loadgen.peer import Link, Peer
from cogwork.cli.loadgen.wire import Wire

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
