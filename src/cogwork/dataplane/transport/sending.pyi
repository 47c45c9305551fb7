from collections.abc import Callable

from cogwork.dataplane.core import Core
from cogwork.dataplane.terminus import Terminus
from cogwork.dataplane.transport.ends import LinkEnd
from cogwork.dataplane.transport.session_end import Session

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
    def send(
        self, port: Terminus, token: int, data: bytes, settled: bool, tag: bytes | None = None
    ) -> bool: ...
    def send_buffer(
        self, port: Terminus, token: int, data: bytes | memoryview, settled: bool
    ) -> bool: ...
