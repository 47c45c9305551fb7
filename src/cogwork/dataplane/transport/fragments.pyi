from typing import Any

from cogwork.dataplane.addresses.space import AddressSpace
from cogwork.dataplane.transport.credit import CreditingEnd

SOURCE_HASH: str

class FragmentingEnd(CreditingEnd):
    permit: Any
    @property
    def space(self) -> AddressSpace | None: ...
