from cogwork.dataplane.incoming import IncomingLink
from cogwork.dataplane.port import Port
from cogwork.dataplane.sending import SendingEnd
from cogwork.dataplane.session_end import Session
from cogwork.dataplane.terminus import Terminus

SOURCE_HASH: str

class OutgoingLink(SendingEnd):
    feeder: Terminus | None
    policy: int
    is_branch: bool
    cost: int
    backlog_bytes_max: int
    def __init__(
        self, session: Session, handle: int, presettles: bool = False, next_tag: int = 0
    ) -> None: ...
    @property
    def backlog_bytes(self) -> int: ...
    @property
    def blocked_since_s(self) -> float: ...
    @property
    def queue_count(self) -> int: ...
    @property
    def dropped(self) -> int: ...
    @property
    def is_midway(self) -> bool: ...
    @property
    def waits_for(self) -> IncomingLink | None: ...
    def pardon(self) -> None: ...
    def send(
        self, port: Port, token: int, data: bytes, settled: bool, tag: bytes | None = None
    ) -> bool: ...
    def detach(self) -> None: ...
