SOURCE_HASH: str

class Ready:
    @property
    def count(self) -> int: ...
