SOURCE_HASH: str

class Groups:
    @property
    def count(self) -> int: ...
    @property
    def parked_count(self) -> int: ...
