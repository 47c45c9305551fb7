SOURCE_HASH: str

class Branches:
    def __init__(self, secret: int) -> None: ...
