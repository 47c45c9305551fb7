from collections.abc import Callable

from cogwork.dataplane.core import Core
from cogwork.dataplane.ends import LinkEnd
from cogwork.dataplane.session_end import Session

SOURCE_HASH: str

class SendingEnd(LinkEnd):
    selector: Callable[[bytes], bool] | None
    no_local: bool
    @property
    def core(self) -> Core: ...
    @property
    def session(self) -> Session: ...
    @property
    def sent_bytes(self) -> int: ...
    @property
    def presettles(self) -> bool: ...
