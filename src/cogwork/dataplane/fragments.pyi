from typing import Any

from cogwork.dataplane.credit import CreditingEnd
from cogwork.dataplane.space import AddressSpace

SOURCE_HASH: str

class FragmentingEnd(CreditingEnd):
    permit: Any
    @property
    def space(self) -> AddressSpace | None: ...
