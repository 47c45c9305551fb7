from cogwork.dataplane.due import Due

SOURCE_HASH: str

class Terminus(Due):
    @property
    def index(self) -> int: ...
    @property
    def generation(self) -> int: ...
    def settle(self, token: int, code: int, state: bytes | None = None) -> None: ...
