from typing import Final

from cogwork.bench.consumer import Consumer
from cogwork.bench.histogram import Histogram
from cogwork.bench.image import Image
from cogwork.bench.peer import Link, Peer
from cogwork.bench.producer import Producer

SOURCE_HASH: Final[str]

class Requester(Producer):
    latency: Histogram
    answered: int
    reply_digest: int
    def __init__(
        self, peer: Peer, link: Link, image: Image, number: int, replies: Link, depth: int
    ) -> None: ...

class Replier(Consumer):
    replied: int
    def __init__(
        self, peer: Peer, link: Link, image: Image, replies: Link, credit: int
    ) -> None: ...
