from collections.abc import Callable

from cogwork.dataplane.core import Wire

SOURCE_HASH: str

class Poller:
    is_wanted: bool
    def __init__(self, epoll_fd: int, on_error: Callable[[Exception], None]) -> None: ...
    @property
    def wires(self) -> dict[int, Wire]: ...
    def poll(self, timeout_s: float | None = None) -> list[tuple[int, int]]: ...
