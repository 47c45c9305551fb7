from cogwork.dataplane.core import Core
from cogwork.dataplane.terminus import Terminus

SOURCE_HASH: str

class LostBranch(Terminus):
    """Stands for a container that wants copies and cannot be reached.

    Attributes:
        gave_up: Whether it is nobody any more; else publishers are left in doubt.
        messages: Those that left their publishers in doubt.
        missed: Those that were none of its business any more, and not settled by the publisher.
        missed_at_s: When the last of these came.
    """

    def __init__(self, core: Core, gave_up: bool = False) -> None: ...
    @property
    def core(self) -> Core: ...
    @property
    def gave_up(self) -> bool: ...
    @property
    def messages(self) -> int: ...
    @property
    def missed(self) -> int: ...
    @property
    def missed_at_s(self) -> float: ...
    def close(self) -> None: ...
