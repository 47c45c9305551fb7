from typing import Final

SOURCE_HASH: Final[str]
