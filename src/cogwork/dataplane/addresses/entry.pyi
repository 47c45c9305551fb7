from collections.abc import Callable
from typing import Protocol

from cogwork.dataplane.addresses.copying import CopyingEntry
from cogwork.dataplane.addresses.interest import Interest
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.core import Core
from cogwork.dataplane.terminus import Terminus
from cogwork.dataplane.transport.ends import ReceivingEnd

SOURCE_HASH: str
MULTICAST_CODE: int
CLOSEST_CODE: int
BALANCED_CODE: int

class Stored(Protocol):
    """What stores an address's messages."""

    def room(self) -> int | None: ...

class AddressEntry(CopyingEntry):
    assembles: bool
    near: AddressEntry | None
    is_used: bool
    expand: Callable[[list[Terminus]], list[Terminus]] | None
    stored: Stored | None
    def __init__(
        self,
        core: Core,
        name: str,
        distribution: int,
        interest: Interest | None = None,
        subject: bytes | None = None,
        assembles: bool = False,
    ) -> None: ...
    @property
    def outlets(self) -> list[Terminus]: ...
    @property
    def sources(self) -> list[ReceivingEnd]: ...
    @property
    def received(self) -> int: ...
    @property
    def received_bytes(self) -> int: ...
    @property
    def is_idle(self) -> bool: ...
    def add_source(self, link: ReceivingEnd) -> None: ...
    def remove_source(self, link: ReceivingEnd) -> None: ...
    def add_outlet(self, outlet: Terminus) -> None: ...
    def show_near(self, near: AddressEntry) -> None: ...
    def remove_outlet(self, outlet: Terminus) -> None: ...
    def reconsider(self) -> None: ...
    def send(self, port: Terminus, token: int, data: bytes, settled: bool) -> None: ...
    def close(self) -> None: ...
    def renew_credit(self) -> int: ...
