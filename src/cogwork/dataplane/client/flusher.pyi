from collections.abc import Callable

from cogwork.dataplane.core import Core

SOURCE_HASH: str

class Flusher:
    core: Core
    passes: int
    def __init__(self, core: Core, call_soon: Callable[..., object]) -> None: ...
    def request(self) -> None: ...
    def run(self) -> None: ...
