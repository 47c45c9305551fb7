from collections.abc import Callable

from cogwork.dataplane.core import Core
from cogwork.dataplane.terminus import Terminus
from cogwork.dataplane.transport.ends import LinkEnd

SOURCE_HASH: str

class ConsumerEnd(LinkEnd):
    selector: Callable[[bytes], bool] | None
    no_local: bool
    is_branch: bool
    keeps_format: bool
    marks_acquired: bool
    cost: int
    priority: int
    feeder: Terminus | None
    is_federated: bool
    @property
    def core(self) -> Core: ...
    @property
    def presettles(self) -> bool: ...
    def exhaust(self) -> None: ...
