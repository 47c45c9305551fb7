from cogwork.dataplane.queue.federated_consumer import FederatedConsumer
from cogwork.dataplane.transport.incoming import IncomingLink
from cogwork.dataplane.transport.session_end import Session

SOURCE_HASH: str

class UpstreamLink(IncomingLink):
    owed: int
    keeps_order: bool
    awaited: int
    items_max: int
    is_resting: bool
    def __init__(
        self, session: Session, handle: int, federated: FederatedConsumer, container: str
    ) -> None: ...
    @property
    def federated(self) -> FederatedConsumer: ...
    @property
    def container(self) -> str: ...
    @property
    def returned(self) -> int: ...
    def rest(self) -> None: ...
    def confirm(self, first: int, last: int, code: int, state: bytes | None = None) -> None: ...
