from typing import Final

SOURCE_HASH: Final[str]

class Histogram:
    count: int
    def record(self, value: int) -> None: ...
    def percentile(self, percent: float) -> float: ...
