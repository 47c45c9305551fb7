from collections.abc import Callable, Generator
from typing import Any, Generic, Protocol, TypeVar

from cogwork.dataplane.terminus import Terminus

SOURCE_HASH: str

class _Outcome(Protocol):
    def error(self) -> Exception | None: ...

_O = TypeVar("_O", bound=_Outcome)

class Shipper(Terminus): ...

class Post:
    code: int
    queued: bool
    was_sent: bool
    expired: bool
    failure: Exception | None
    on_error: Callable[[Exception], object] | None
    on_done: Callable[[Post], object] | None
    @property
    def is_done(self) -> bool: ...
    def withdraw(self) -> bool: ...
    def error(self) -> Exception | None: ...
    def __await__(self) -> Generator[Any]: ...

class Batch(Generic[_O]):
    failure: Exception | None
    def __len__(self) -> int: ...
    def leave(self, unsent: _O, unanswered: _O) -> list[_O]: ...
    def outcomes(self) -> list[_O]: ...
    def __await__(self) -> Generator[Any, None, list[_O]]: ...
