from collections.abc import Callable
from typing import Any

from cogwork.dataplane.addresses.space import AddressSpace
from cogwork.dataplane.transport.credit import CreditingEnd

SOURCE_HASH: str

class FragmentingEnd(CreditingEnd):
    permit: Any
    refuser: Callable[[FragmentingEnd, int, bytes | None], None] | None
    @property
    def space(self) -> AddressSpace | None: ...
    def answer(self, token: int, state: bytes | None) -> None: ...
