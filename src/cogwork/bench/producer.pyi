from typing import Final

from cogwork.bench.image import Image
from cogwork.bench.peer import Link, Peer
from cogwork.bench.wire import Wire

SOURCE_HASH: Final[str]

class Producer(Wire):
    target: int
    sent: int
    digest: int
    accepted: int
    released: int
    rejected: int
    modified: int
    def __init__(self, peer: Peer, link: Link, image: Image, number: int) -> None: ...
    @property
    def resolved(self) -> int: ...
    def aim(self, target: int) -> None: ...
