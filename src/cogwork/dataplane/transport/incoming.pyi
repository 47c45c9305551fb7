from cogwork.dataplane.addresses.entry import AddressEntry
from cogwork.dataplane.addresses.space import AddressSpace
from cogwork.dataplane.transport.fragments import FragmentingEnd
from cogwork.dataplane.transport.session_end import Session

SOURCE_HASH: str

class IncomingLink(FragmentingEnd):
    settles_second: bool
    wants_tags: bool
    def __init__(
        self,
        session: Session,
        handle: int,
        entry: AddressEntry | None = None,
        space: AddressSpace | None = None,
        window: int = 0,
        max_message_size: int = 0,
    ) -> None: ...
    def detach(self) -> None: ...
