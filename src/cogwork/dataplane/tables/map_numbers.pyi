SOURCE_HASH: str

class MapNumbers:
    def __init__(
        self,
        maps: tuple[int, int, int],
        keys: tuple[int, int, int],
        values: tuple[int, int, int, int],
    ) -> None: ...
    def take(self, name: bytes, numbers: object, found: object) -> None: ...
