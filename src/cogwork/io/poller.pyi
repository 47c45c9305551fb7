from collections.abc import Callable

SOURCE_HASH: str

class Poller:
    """Waits on one epoll descriptor and calls readers."""

    is_wanted: bool
    def __init__(
        self,
        epoll_fd: int,
        urgent_fd: int,
        on_fault: Callable[[Callable[[], object], Exception], None],
    ) -> None: ...
    @property
    def readers(self) -> dict[int, Callable[[], object]]: ...
    @property
    def urgent(self) -> set[int]: ...
    @property
    def after(self) -> list[Callable[[], object]]: ...
    def poll(self, timeout_s: float | None = None) -> list[tuple[int, int]]: ...
