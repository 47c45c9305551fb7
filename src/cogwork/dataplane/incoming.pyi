from typing import Any

from cogwork.dataplane.core import Core
from cogwork.dataplane.ends import ReceivingEnd
from cogwork.dataplane.entry import AddressEntry
from cogwork.dataplane.session_end import Session
from cogwork.dataplane.space import AddressSpace

SOURCE_HASH: str

class IncomingLink(ReceivingEnd):
    permit: Any
    settles_second: bool
    wants_tags: bool
    @property
    def core(self) -> Core: ...
    def __init__(
        self,
        session: Session,
        handle: int,
        entry: AddressEntry | None = None,
        space: AddressSpace | None = None,
        window: int = 0,
        max_message_size: int = 0,
    ) -> None: ...
    @property
    def session(self) -> Session: ...
    @property
    def entry(self) -> AddressEntry | None: ...
    @property
    def space(self) -> AddressSpace | None: ...
    @property
    def window(self) -> int: ...
    def start_at(self, delivery_count: int) -> None: ...
    def grant(self, credit: int, drain: bool = False) -> None: ...
    def open_credit(self) -> None: ...
    def detach(self) -> None: ...
