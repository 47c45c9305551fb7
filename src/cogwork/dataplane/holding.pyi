from cogwork.dataplane.core import Core
from cogwork.dataplane.terminus import Terminus

SOURCE_HASH: str

class Holding(Terminus):
    ttl_s: float
    @property
    def core(self) -> Core: ...
    @property
    def held(self) -> int: ...
