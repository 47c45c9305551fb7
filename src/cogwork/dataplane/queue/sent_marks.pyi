from typing import Final

from cogwork.dataplane.core import Core

SOURCE_HASH: str
SIZE_BYTES: Final[int]

class SentMarks:
    def __init__(self, core: Core, memory: memoryview) -> None: ...

def read_marks(data: bytes) -> dict[int, list[tuple[int, int]]]: ...
