from collections.abc import Sequence

from cogwork.dataplane.addresses.checkpoint import Checkpoint
from cogwork.dataplane.addresses.entry import AddressEntry
from cogwork.dataplane.addresses.space import AddressSpace
from cogwork.dataplane.transport.incoming import IncomingLink
from cogwork.dataplane.transport.session_end import Session

SOURCE_HASH: str

class CheckedLink(IncomingLink):
    @property
    def checkpoint(self) -> Checkpoint: ...
    @property
    def address(self) -> bytes | None: ...
    @property
    def waiting(self) -> int: ...
    def __init__(
        self,
        session: Session,
        handle: int,
        checkpoint: Checkpoint,
        address: bytes | None,
        entry: AddressEntry | None = None,
        space: AddressSpace | None = None,
        window: int = 0,
        max_message_size: int = 0,
    ) -> None: ...
    def look(self, count_max: int, size_max: int) -> list[tuple[bytes, bytes, bool]]: ...
    def decide(self, verdicts: Sequence[bytes | None]) -> None: ...
    def give_back(self) -> int: ...
