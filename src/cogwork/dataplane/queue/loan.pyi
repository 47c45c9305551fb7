from cogwork.dataplane.queue.borrower import Borrower
from cogwork.dataplane.transport.incoming import IncomingLink
from cogwork.dataplane.transport.session_end import Session

SOURCE_HASH: str

class Loan(IncomingLink):
    owed: int
    keeps_order: bool
    awaited: int
    items_max: int
    is_resting: bool
    def __init__(
        self, session: Session, handle: int, borrower: Borrower, container: str
    ) -> None: ...
    @property
    def borrower(self) -> Borrower: ...
    @property
    def container(self) -> str: ...
    @property
    def returned(self) -> int: ...
    def rest(self) -> None: ...
    def confirm(self, first: int, last: int, code: int, state: bytes | None = None) -> None: ...
