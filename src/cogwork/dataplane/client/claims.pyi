from collections.abc import Generator
from typing import Any

SOURCE_HASH: str

class Claim:
    def __await__(self) -> Generator[Any]: ...
