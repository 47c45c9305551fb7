from collections.abc import Callable

from cogwork.dataplane.addresses.entry import AddressEntry
from cogwork.dataplane.core import Core
from cogwork.dataplane.terminus import Terminus

SOURCE_HASH: str

class OwnerOutbox(Terminus):
    """What this container sends to the owner of a queue, until it is answered.

    Attributes:
        on_released: Called where the owner gives something back although the link stands.
        sent_again: How many were sent more than once.
        refused: How many were refused because the owner was away for too long.
        lost: Those of them of which nobody is told.
    """

    on_released: Callable[[], object] | None
    def __init__(
        self,
        entry: AddressEntry,
        origin: int,
        incarnation: int,
        first: int,
        *,
        holds_back: bool = False,
    ) -> None: ...
    @property
    def core(self) -> Core: ...
    @property
    def entry(self) -> AddressEntry: ...
    @property
    def link(self) -> Terminus | None: ...
    @property
    def holds_back(self) -> bool: ...
    @property
    def is_refusing(self) -> bool: ...
    @property
    def sent_again(self) -> int: ...
    @property
    def refused(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def unanswered(self) -> int: ...
    def room(self) -> int: ...
    def set_link(self, link: Terminus | None) -> None: ...
    def go_on(self) -> None: ...
    def refuse(self) -> int: ...
    def close(self) -> None: ...
