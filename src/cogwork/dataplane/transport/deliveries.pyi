SOURCE_HASH: str

class Deliveries:
    held_bytes_max: int
    @property
    def held_bytes(self) -> int: ...
    @property
    def count(self) -> int: ...
