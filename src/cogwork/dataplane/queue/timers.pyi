SOURCE_HASH: str

class TimerHeap:
    @property
    def count(self) -> int: ...
