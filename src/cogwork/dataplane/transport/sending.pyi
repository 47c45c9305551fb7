from cogwork.dataplane.terminus import Terminus
from cogwork.dataplane.transport.consumer_end import ConsumerEnd
from cogwork.dataplane.transport.session_end import Session

SOURCE_HASH: str

class SendingEnd(ConsumerEnd):
    @property
    def session(self) -> Session: ...
    @property
    def sent_bytes(self) -> int: ...
    def send(
        self, port: Terminus, token: int, data: bytes, settled: bool, tag: bytes | None = None
    ) -> bool: ...
    def send_buffer(
        self, port: Terminus, token: int, data: bytes | memoryview, settled: bool
    ) -> bool: ...
