from typing import Final

from cogwork.cli.loadgen.consumer import Consumer
from cogwork.cli.loadgen.histogram import Histogram
from cogwork.cli.loadgen.image import Image
from cogwork.cli.loadgen.peer import Link, Peer
from cogwork.cli.loadgen.producer import Producer

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
