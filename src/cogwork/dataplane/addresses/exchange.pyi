from typing import Protocol

from cogwork.dataplane.addresses.entry import AddressEntry
from cogwork.dataplane.addresses.interest import Interest
from cogwork.dataplane.core import Core
from cogwork.dataplane.terminus import Terminus

SOURCE_HASH: str

class RouteFinder(Protocol):
    """Says where messages go."""

    def find(
        self, key: bytes, head: bytes | None, is_basic: bool, /
    ) -> tuple[list[AddressEntry], bool] | None:
        """Return the addresses of the queues, and whether the key alone has decided.

        None asks to be called again with the head: the message without its body.
        """

    def resolve(self, destination: object, /) -> AddressEntry | None:
        """Return where messages of a destination come in; None if it is none of a queue."""

    def find_copies(
        self, key: bytes, head: bytes, /
    ) -> tuple[list[AddressEntry], bytes | None, bytes | None] | None:
        """Do the same for a message of AMQP 0-9-1 whose headers may name further keys.

        Returns the addresses, the head that is to be in the place of this one, or None for this
        one, and the keys as `pack_keys` has them; None where the head cannot be read.
        """

def pack_keys(keys: tuple[bytes, ...]) -> bytes: ...

class Changes:
    @property
    def count(self) -> int: ...
    def note(self) -> None: ...

class Routes:
    interest: Interest | None
    def __init__(self, changes: Changes, finder: RouteFinder) -> None: ...
    @property
    def unroutable(self) -> int: ...
    @property
    def delivered(self) -> int: ...

class ExchangeInlet(Terminus):
    @property
    def core(self) -> Core: ...
    @property
    def routes(self) -> Routes: ...
    @property
    def key(self) -> bytes | None: ...
    def __init__(self, core: Core, routes: Routes, key: bytes | None = None) -> None: ...
