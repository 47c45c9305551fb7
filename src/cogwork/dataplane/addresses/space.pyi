from collections.abc import Callable

from cogwork.dataplane.addresses.entry import AddressEntry
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.core import Core
from cogwork.dataplane.transport.incoming import IncomingLink

SOURCE_HASH: str

class AddressSpace:
    resolver: Callable[[bytes], AddressEntry | None]
    meaning: Callable[[bytes, bool], bytes] | None
    topic_prefix: bytes
    topic_root: AddressEntry | None
    topic_exceptions: tuple[bytes, ...] | None
    unroutable: int
    @property
    def core(self) -> Core: ...
    def __init__(self, core: Core, resolver: Callable[[bytes], AddressEntry | None]) -> None: ...
    @property
    def entries(self) -> dict[bytes, AddressEntry]: ...
    @property
    def asker(self) -> IncomingLink | None: ...
    def send(self, port: Port, token: int, address: bytes, data: bytes, settled: bool) -> bool: ...
