from collections.abc import Sequence
from typing import Protocol

from cogwork.dataplane.addresses.checked import CheckedLink
from cogwork.dataplane.core import Core
from cogwork.dataplane.due import Due

SOURCE_HASH: str

class CheckHandler(Protocol):
    """Looks at messages before they are routed."""

    def on_arrivals(self, links: Sequence[CheckedLink]) -> None: ...

class Checkpoint(Due):
    handler: CheckHandler
    @property
    def core(self) -> Core: ...
    @property
    def guards(self) -> dict[bytes, int]: ...
    def __init__(self, core: Core, guards: dict[bytes, int], handler: CheckHandler) -> None: ...
