from collections.abc import Callable

from cogwork.dataplane.addresses.entry import AddressEntry
from cogwork.dataplane.core import Core
from cogwork.dataplane.terminus import Terminus

SOURCE_HASH: str

class HoldingEntry(Terminus):
    distribution: int
    release_unmatched: bool
    dead_letter: Callable[[AddressEntry, bytes, str], bool] | None
    ttl_s: float
    @property
    def core(self) -> Core: ...
    @property
    def name(self) -> str: ...
    @property
    def held(self) -> int: ...
    @property
    def released(self) -> int: ...
    @property
    def dropped(self) -> int: ...
    @property
    def expired(self) -> int: ...
    @property
    def unmatched(self) -> int: ...
