from typing import Protocol

from cogwork.dataplane.core import Core
from cogwork.dataplane.terminus import Terminus
from cogwork.dataplane.transport.outgoing import OutgoingLink

SOURCE_HASH: str

class BatchHandler(Protocol):
    """Called once after each batch in which its port got something."""

    def on_batch(self, port: Port) -> None: ...

class Port(Terminus):
    handler: BatchHandler
    arrivals: list[tuple[bytes, int, Terminus | None, bool]]
    outcomes: list[tuple[int, int, bytes | None, bool]]
    woken: list[OutgoingLink]
    open: bool
    @property
    def core(self) -> Core: ...
    def __init__(self, core: Core, handler: BatchHandler) -> None: ...
    def close(self) -> None: ...
