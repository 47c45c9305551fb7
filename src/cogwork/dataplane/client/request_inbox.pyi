from cogwork.dataplane.client.inbox import Inbox
from cogwork.dataplane.transport.incoming import IncomingLink

SOURCE_HASH: str

class RequestInbox(Inbox):
    @property
    def credit(self) -> int: ...
    def offer(self, credit: int) -> None: ...
    def settle_request(
        self, link: IncomingLink | None, delivery_id: int, is_taken: bool
    ) -> None: ...
